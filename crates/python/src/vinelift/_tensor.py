"""Tensors, and the memory that NumPy's arrays share with them.

Who keeps whom: a tensor of an array keeps the array. An array that views a tensor's own memory keeps that memory (not the
tensor), so it stays good whatever becomes of the tensor, its shape and its request.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from ._extents import take_extents, to_extents
from ._library import C, Error, Handle, Pointer, ask_handle, ask_number, check, texts
from ._shapes import PartialShape, Shape, ShapeLike
from ._types import BY_CODE, Type, TypeLike, as_type

_CLASS = type  # Within :class:`Tensor`, `type` is a parameter.


class _Memory(Handle):
    """Memory of the library that an array views."""

    __slots__ = ("__array_interface__",)

    def __init__(self, pointer: Pointer, address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        super().__init__(pointer, C.vinelift_memory_free)
        self.__array_interface__ = {"version": 3, "data": (address, False), "typestr": dtype.str, "shape": tuple(shape)}


class Tensor:
    """A tensor: ``Tensor(array)`` copies an array, with `shared_memory` it is one of its memory; ``Tensor(type, shape)`` is
    of zeros; ``Tensor(array, shape, type)`` sees the bytes of an array as another type."""

    __slots__ = ("_handle", "_array", "_type", "_changes")

    _handle: Handle
    _array: npt.NDArray[Any] | None
    _type: Type
    _changes: int

    def __init__(
        self,
        array: Any = None,
        shape: ShapeLike | None = None,
        type: TypeLike | None = None,
        shared_memory: bool = False,
    ) -> None:
        self._array, self._changes = None, 0
        if isinstance(shape, bool):  # ``Tensor(array, True)``, as OpenVINO's has it.
            shape, shared_memory = None, shape
        if isinstance(array, Tensor):
            array = array.data
        elif hasattr(array, "partial_shape") and hasattr(array, "element_type"):
            array, shape = array.element_type, array.shape
        if array is None or isinstance(array, (str, Type, np.dtype, _CLASS)):
            kind, shape = as_type(array if array is not None else type or Type.dynamic), () if shape is None else shape
            self._make(kind, PartialShape(shape).to_shape())
            return
        array = np.asarray(array)
        kind = as_type(array.dtype) if type is None else as_type(type)
        if kind is Type.string:
            self._make_strings(array)
        else:
            self._make_of_array(array, kind, shape, type is not None, shared_memory)

    @classmethod
    def _of_handle(cls, pointer: Pointer) -> Tensor:
        """A tensor that the library has made for us."""
        made = cls.__new__(cls)
        made._handle, made._array, made._changes = Handle(pointer, C.ov_tensor_free), None, 0
        code = ctypes.c_uint32()
        check(C.ov_tensor_get_element_type(made._handle, ctypes.byref(code)))
        made._type = BY_CODE[code.value]
        return made

    def _make(self, kind: Type, shape: Sequence[int]) -> None:
        pointer = ask_handle(C.ov_tensor_create, kind._code, to_extents(shape))
        self._handle, self._type = Handle(pointer, C.ov_tensor_free), kind

    def _make_strings(self, array: npt.NDArray[Any]) -> None:
        items = _strings(array)
        pointer = ask_handle(C.ov_tensor_create_from_string_array, texts(items), len(items), to_extents(array.shape))
        self._handle, self._type = Handle(pointer, C.ov_tensor_free), Type.string

    def _make_of_array(
        self, array: npt.NDArray[Any], kind: Type, shape: ShapeLike | None, is_typed: bool, is_shared: bool
    ) -> None:
        if not is_shared:
            is_cast = is_typed and shape is None and array.dtype != kind.to_dtype() and not kind._is_packed
            array = np.array(array, dtype=kind.to_dtype() if is_cast else array.dtype.newbyteorder("="), order="C")
        elif not array.flags.c_contiguous or not array.flags.aligned:
            raise Error("memory can be shared only with an array that is contiguous, in the order of C, and aligned")
        elif not array.dtype.isnative:
            raise Error("memory can be shared only with an array of the machine's order of bytes")
        extents: tuple[int, ...] = array.shape if shape is None else PartialShape(shape).to_shape()
        needs = (math.prod(extents) * kind.bitwidth + 7) // 8
        if array.nbytes < needs or (array.nbytes > needs and not kind._is_packed):
            raise Error(f"{kind.get_type_name()}{list(extents)} takes {needs} bytes, the array has {array.nbytes}")
        # Of no elements, too: the library wants an address.
        memory = array if array.nbytes else np.zeros(1, np.uint8)
        address = memory.__array_interface__["data"][0]
        pointer = ask_handle(C.ov_tensor_create_from_host_ptr, kind._code, to_extents(extents), address)
        self._handle, self._type, self._array = Handle(pointer, C.ov_tensor_free), kind, memory

    @staticmethod
    def from_dlpack(other: Any) -> Tensor:
        """A tensor of the memory of another package's tensor, by the protocol DLPack: of one on the processor."""
        return Tensor(np.from_dlpack(other), shared_memory=True)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory of this tensor for another package, by the protocol DLPack."""
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The processor."""
        return (1, 0)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        data = self.data
        if dtype is not None and data.dtype != np.dtype(dtype):
            return data.astype(dtype)
        return data.copy() if copy else data

    @property
    def element_type(self) -> Type:
        """The type of the elements."""
        return self._type

    @property
    def shape(self) -> Shape:
        """The extents."""
        return take_extents(C.ov_tensor_get_shape, self._handle)

    @shape.setter
    def shape(self, shape: ShapeLike) -> None:
        extents = PartialShape(shape).to_shape()
        check(C.ov_tensor_set_shape(self._handle, to_extents(extents)))
        self._changes += 1

    def set_shape(self, shape: ShapeLike) -> None:
        """Gives the tensor another shape. It keeps its memory if that is large enough; that of an array does not grow."""
        self.shape = shape

    @property
    def byte_size(self) -> int:
        """The bytes of all elements; 0 if they are strings."""
        return ask_number(C.ov_tensor_get_byte_size, self._handle)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        return self.data.strides

    def get_element_type(self) -> Type:
        """The type of the elements."""
        return self._type

    def get_shape(self) -> Shape:
        """The extents."""
        return self.shape

    def get_byte_size(self) -> int:
        """The bytes of all elements; 0 if they are strings."""
        return self.byte_size

    def get_size(self) -> int:
        """The number of elements."""
        return self.size

    def get_strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        return self.strides

    def is_continuous(self) -> bool:
        """Tensors always are."""
        return True

    @property
    def data(self) -> npt.NDArray[Any]:
        """The elements as an array of the same memory, which it keeps. Of types of less than a byte it is the bytes in which
        they are packed; strings are copied."""
        if self._type is Type.string:
            return self.str_data
        shape: Sequence[int] = self.shape
        dtype = self._type.to_dtype()
        if self._type._is_packed:
            shape = (self.byte_size,)
        if self._array is not None:
            flat = self._array.reshape(-1).view(np.uint8)
            return np.ndarray(tuple(shape), dtype, flat) if flat.flags.writeable else _read_only(shape, dtype, flat)
        address, memory = ctypes.c_void_p(), ctypes.c_void_p()
        check(C.vinelift_tensor_hold(self._handle, ctypes.byref(address), ctypes.byref(memory)))
        if not memory.value:
            raise Error("the memory of this tensor is that of a program")
        return np.asarray(_Memory(Pointer(memory.value), address.value or 0, dtype, shape))

    @data.setter
    def data(self, value: Any) -> None:
        if self._type is Type.string:
            self.str_data = value
        else:
            self.data[...] = value

    @property
    def str_data(self) -> npt.NDArray[Any]:
        """A copy of the elements of a tensor of strings; it can be set."""
        raw = [item.decode("utf-8", "replace") for item in self._bytes()]
        return np.array(raw, dtype=np.str_).reshape(self.shape)

    @str_data.setter
    def str_data(self, value: Any) -> None:
        items = _strings(np.asarray(value))
        check(C.ov_tensor_set_string_data(self._handle, texts(items), len(items)))

    @property
    def bytes_data(self) -> npt.NDArray[Any]:
        """A copy of the elements of a tensor of strings, in UTF-8; it can be set."""
        return np.array(self._bytes(), dtype=np.bytes_).reshape(self.shape)

    @bytes_data.setter
    def bytes_data(self, value: Any) -> None:
        self.str_data = value

    def _bytes(self) -> list[bytes]:
        if self._type is not Type.string:
            raise Error(f"expected a tensor of strings, found one of {self._type.get_type_name()}")
        found, data, size = [], ctypes.c_void_p(), ctypes.c_size_t()
        for k in range(self.size):
            check(C.vinelift_tensor_get_string(self._handle, k, ctypes.byref(data), ctypes.byref(size)))
            assert data.value is not None
            found.append(ctypes.string_at(data.value, size.value))
            C.ov_free(data.value)
        return found

    def copy_to(self, other: Tensor) -> None:
        """Copies the elements to another tensor, which takes the shape of this."""
        if other._type is not self._type:
            found, expected = other._type.get_type_name(), self._type.get_type_name()
            raise Error(f"expected a tensor of {expected} to copy to, found one of {found}")
        if other.shape != self.shape:
            other.set_shape(self.shape)
        other.data = self.data

    def copy_from(self, other: Any) -> None:
        """Takes the shape and elements of a tensor or array."""
        (other if isinstance(other, Tensor) else Tensor(other)).copy_to(self)

    def _is_writeable(self) -> bool:
        return self._array is None or self._array.flags.writeable

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._type.get_type_name()}>"


def _read_only(shape: Sequence[int], dtype: np.dtype[Any], flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    made = np.ndarray(tuple(shape), dtype, flat)
    made.flags.writeable = False
    return made


def _strings(array: npt.NDArray[Any]) -> list[str]:
    def as_text(item: Any) -> str:
        if isinstance(item, bytes):
            return item.decode("utf-8")
        if isinstance(item, str):
            return item
        raise TypeError(f"the elements of a tensor of strings must be strings, found {item!r}")

    return [as_text(item) for item in array.reshape(-1).tolist()]


def to_bfloat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The bits of numbers as ``bf16``, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)).astype(
        np.uint16
    )
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)
