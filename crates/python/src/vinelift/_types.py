"""Element types."""

from __future__ import annotations

from typing import Any, ClassVar, Union

import numpy as np
import numpy.typing as npt

# Name; bits of an element; NumPy's type of the memory; whether it is a real number, signed, packed below the byte.
# NumPy has no `bf16` nor any of 8 bits: these are seen as their bits.
_TABLE: list[tuple[str, int, Any, bool, bool]] = [
    ("boolean", 8, np.bool_, False, True),
    ("bf16", 16, np.uint16, True, True),
    ("f16", 16, np.float16, True, True),
    ("f32", 32, np.float32, True, True),
    ("f64", 64, np.float64, True, True),
    ("i4", 4, np.int8, False, True),
    ("i8", 8, np.int8, False, True),
    ("i16", 16, np.int16, False, True),
    ("i32", 32, np.int32, False, True),
    ("i64", 64, np.int64, False, True),
    ("u1", 1, np.uint8, False, False),
    ("u2", 2, np.uint8, False, False),
    ("u3", 3, np.uint8, False, False),
    ("u4", 4, np.uint8, False, False),
    ("u6", 6, np.uint8, False, False),
    ("u8", 8, np.uint8, False, False),
    ("u16", 16, np.uint16, False, False),
    ("u32", 32, np.uint32, False, False),
    ("u64", 64, np.uint64, False, False),
    ("nf4", 4, np.uint8, True, True),
    ("f8e4m3", 8, np.uint8, True, True),
    ("f8e5m2", 8, np.uint8, True, True),
    ("string", 0, np.str_, False, True),
    ("f4e2m1", 4, np.uint8, True, True),
    ("f8e8m0", 8, np.uint8, True, True),
]
# Types that the package `ml_dtypes` gives to NumPy.
_OTHER_PACKAGES = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
}


class Type:
    """The type of the elements of a tensor, as ``Type.f32``; ``Type(numpy.float32)`` is that of NumPy."""

    __slots__ = ("_code", "_name", "bitwidth", "_dtype", "_is_real", "_is_signed")

    boolean: ClassVar[Type]
    bf16: ClassVar[Type]
    f16: ClassVar[Type]
    f32: ClassVar[Type]
    f64: ClassVar[Type]
    i4: ClassVar[Type]
    i8: ClassVar[Type]
    i16: ClassVar[Type]
    i32: ClassVar[Type]
    i64: ClassVar[Type]
    u1: ClassVar[Type]
    u2: ClassVar[Type]
    u3: ClassVar[Type]
    u4: ClassVar[Type]
    u6: ClassVar[Type]
    u8: ClassVar[Type]
    u16: ClassVar[Type]
    u32: ClassVar[Type]
    u64: ClassVar[Type]
    nf4: ClassVar[Type]
    f8e4m3: ClassVar[Type]
    f8e5m2: ClassVar[Type]
    string: ClassVar[Type]
    f4e2m1: ClassVar[Type]
    f8e8m0: ClassVar[Type]
    dynamic: ClassVar[Type]

    _code: int
    _name: str
    bitwidth: int
    _dtype: np.dtype[Any] | None
    _is_real: bool
    _is_signed: bool

    # Types are single objects, so that they compare and hash as such.
    def __new__(cls, dtype: TypeLike) -> Type:
        """The type of NumPy's `dtype`, or of a type or the name of one."""
        return as_type(dtype)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_type, (self._name,)

    def __repr__(self) -> str:
        has_own_name = self._dtype is not None and self._code in _SAME_IN_NUMPY
        return f"<Type: '{self._dtype.name if has_own_name else self._name}'>"  # type: ignore[union-attr]

    def to_dtype(self) -> np.dtype[Any]:
        """NumPy's type of the memory. Where NumPy has no such type it is one of the same bits, `uint16` for ``bf16``; of
        types of less than a byte it is that of the bytes they are packed in."""
        if self._dtype is None:
            raise TypeError("the dynamic type has no type of NumPy")
        return self._dtype

    def get_type_name(self) -> str:
        """The short name, such as ``f32``."""
        return self._name

    @property
    def type_name(self) -> str:
        """The short name, such as ``f32``."""
        return self._name

    to_string = get_type_name

    @property
    def size(self) -> int:
        """The bytes of an element, rounded up."""
        return (self.bitwidth + 7) // 8

    def get_size(self) -> int:
        """The bytes of an element, rounded up."""
        return self.size

    def get_bitwidth(self) -> int:
        """The bits of an element."""
        return self.bitwidth

    def is_real(self) -> bool:
        """Whether elements are numbers with a fraction."""
        return self._is_real

    def is_integral(self) -> bool:
        """Whether elements are integers or booleans."""
        return not self._is_real and self._name not in ("string", "dynamic")

    def is_integral_number(self) -> bool:
        """Whether elements are integers."""
        return self.is_integral() and self._name != "boolean"

    def is_signed(self) -> bool:
        """Whether elements can be negative."""
        return self._is_signed

    def is_static(self) -> bool:
        """Whether the type is known."""
        return self._code != 0

    def is_dynamic(self) -> bool:
        """Whether the type is not known."""
        return self._code == 0

    @property
    def _is_packed(self) -> bool:
        """Whether elements take less than a byte each."""
        return 0 < self.bitwidth < 8


TypeLike = Union[Type, str, npt.DTypeLike]


def _make(code: int, name: str, bits: int, dtype: Any, is_real: bool, is_signed: bool) -> Type:
    made = object.__new__(Type)
    made._code, made._name, made.bitwidth = code, name, bits
    made._dtype = None if dtype is None else np.dtype(dtype)
    made._is_real, made._is_signed = is_real, is_signed
    setattr(Type, name, made)
    return made


_SAME_IN_NUMPY = {
    k + 1 for k, row in enumerate(_TABLE) if row[0][0] in "fiu" and row[1] >= 8 and not row[0].startswith("f8")
}
BY_CODE = [_make(0, "dynamic", 0, None, False, False)]
BY_CODE += [_make(k + 1, *row) for k, row in enumerate(_TABLE)]
_BY_NAME = {each._name: each for each in BY_CODE}
# The element type of each dtype of NumPy: of two types with the same bits, the one that NumPy means.
_BY_DTYPE = {BY_CODE[k]._dtype: BY_CODE[k] for k in sorted(_SAME_IN_NUMPY | {1})}


def as_type(given: TypeLike) -> Type:
    """The type that is meant by a type of NumPy, a name, or a type."""
    if isinstance(given, Type):
        return given
    if isinstance(given, str) and given in _BY_NAME:
        return _BY_NAME[given]
    dtype = np.dtype(given)
    found = _BY_DTYPE.get(dtype) or _BY_DTYPE.get(dtype.newbyteorder("="))
    if found is None and dtype.kind in "USO":
        found = Type.string
    if found is None and dtype.name in _OTHER_PACKAGES:
        found = _BY_NAME[_OTHER_PACKAGES[dtype.name]]
    if found is None:
        raise TypeError(f"there is no element type for NumPy's {dtype}")
    return found
