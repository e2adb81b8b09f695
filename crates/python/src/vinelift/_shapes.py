"""Shapes: of tensors, and of what is known before there are tensors."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sequence, Union

from ._library import Error


class Shape(tuple):  # type: ignore[type-arg]
    """The extents of a tensor. It is a tuple that also compares with lists."""

    __slots__ = ()

    def __new__(cls, extents: str | Iterable[Any] = ()) -> Shape:
        if isinstance(extents, str):
            extents = PartialShape(extents).to_shape()
        made = super().__new__(cls, (_index(extent) for extent in extents))
        if any(extent < 0 for extent in made):
            raise TypeError(f"the extents of a shape cannot be negative: {list(made)}")
        return made

    def __repr__(self) -> str:
        return f"<Shape: {self.to_string()}>"

    def __str__(self) -> str:
        return self.to_string()

    def to_string(self) -> str:
        """As ``[1,3,224,224]``."""
        return "[" + ",".join(map(str, self)) + "]"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return list(self) == other
        return tuple.__eq__(self, other) if isinstance(other, tuple) else NotImplemented

    # A tuple's own would not be the opposite for lists.
    __ne__ = object.__ne__
    __hash__ = tuple.__hash__

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Shape(found) if isinstance(key, slice) else found


class Dimension:
    """An extent that may be known only to be in an interval; a `max` of -1 is no limit."""

    __slots__ = ("_min", "_max")

    def __init__(self, min: int | str = -1, max: int | None = None) -> None:
        if isinstance(min, str):
            self._min, self._max = _parsed(min)
            return
        if max is None:
            self._min, self._max = (0, -1) if min == -1 else (_index(min), _index(min))
        else:
            self._min, self._max = (0 if min == -1 else _index(min)), _index(max)
        if self._min < 0 or self._max < -1 or -1 < self._max < self._min:
            raise ValueError(f"there are no extents from {min} to {max}")

    @staticmethod
    def dynamic() -> Dimension:
        """Any extent."""
        return Dimension()

    @property
    def is_dynamic(self) -> bool:
        """Whether it is more than one extent."""
        return self._min != self._max

    @property
    def is_static(self) -> bool:
        """Whether it is one extent."""
        return not self.is_dynamic

    def get_length(self) -> int:
        """The extent, if it is one."""
        if self.is_dynamic:
            raise Error(f"the dimension {self} is dynamic")
        return self._min

    __len__ = get_length

    def get_min_length(self) -> int:
        """The least extent."""
        return self._min

    def get_max_length(self) -> int:
        """The largest extent; -1 if there is no limit."""
        return self._max

    @property
    def min_length(self) -> int:
        """The least extent."""
        return self._min

    @property
    def max_length(self) -> int:
        """The largest extent; -1 if there is no limit."""
        return self._max

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self._min == self._max == other
        if isinstance(other, Dimension):
            return (self._min, self._max) == (other._min, other._max)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._min, self._max))

    def to_string(self) -> str:
        """As ``3``, ``?``, ``2..5`` or ``2..``."""
        if not self.is_dynamic:
            return str(self._min)
        if self._max == -1:
            return f"{self._min}.." if self._min else "?"
        return f"{self._min or ''}..{self._max}"

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


def _index(extent: Any) -> int:
    if isinstance(extent, Dimension):
        return extent.get_length()
    try:
        return int(extent.__index__())
    except AttributeError:
        raise TypeError(f"an extent must be an integer, found {extent!r}") from None


def _parsed(text: str) -> tuple[int, int]:
    text = text.strip()
    if text in ("?", "-1", ""):
        return 0, -1
    low, dots, high = text.partition("..")
    try:
        return int(low or 0), (int(high) if high else -1) if dots else int(low)
    except ValueError:
        raise ValueError(f"'{text}' is no dimension, expected such as 3, ?, 2..5 or 2..") from None


DimensionLike = Union[int, str, Dimension, "tuple[int, int]", "list[int]"]


class PartialShape:
    """A shape of which not all is known, perhaps not even the rank. Dimensions are given as integers, -1 for any, pairs for
    intervals, or texts; a whole shape also as a text, such as ``[1,?,2..5]``."""

    __slots__ = ("_dims",)

    def __init__(self, dims: ShapeLike) -> None:
        self._dims: list[Dimension] | None
        if isinstance(dims, PartialShape):
            self._dims = None if dims._dims is None else list(dims._dims)
        elif isinstance(dims, str):
            inner = dims.strip().removeprefix("[").removesuffix("]").strip()
            parts = inner.split(",") if inner else []
            self._dims = None if inner == "..." else [Dimension(part) for part in parts]
        else:
            self._dims = [_dimension(each) for each in dims]

    @staticmethod
    def dynamic(rank: int | Dimension | None = None) -> PartialShape:
        """Of a rank that may be known, and extents that are not."""
        made = PartialShape([])
        known = rank is not None and not (isinstance(rank, Dimension) and rank.is_dynamic)
        made._dims = [Dimension() for _ in range(_index(rank))] if known else None
        return made

    @property
    def rank(self) -> Dimension:
        """How many dimensions there are."""
        return Dimension() if self._dims is None else Dimension(len(self._dims))

    @property
    def is_dynamic(self) -> bool:
        """Whether something of it is not known."""
        return self._dims is None or any(each.is_dynamic for each in self._dims)

    @property
    def is_static(self) -> bool:
        """Whether all of it is known."""
        return not self.is_dynamic

    def to_shape(self) -> Shape:
        """The shape, if all of it is known."""
        if self._dims is None or self.is_dynamic:
            raise Error(f"the shape {self} is dynamic")
        return Shape(each._min for each in self._dims)

    get_shape = to_shape

    def get_min_shape(self) -> Shape:
        """The least extents."""
        return Shape(each._min for each in self._ranked())

    def get_max_shape(self) -> Shape:
        """The largest extents; the largest integer where there is no limit."""
        return Shape(2**63 - 1 if each._max == -1 else each._max for each in self._ranked())

    def get_dimension(self, index: int) -> Dimension:
        """The dimension at this position."""
        return self._ranked()[index]

    def _ranked(self) -> list[Dimension]:
        if self._dims is None:
            raise Error("the rank of the shape is dynamic")
        return self._dims

    def __len__(self) -> int:
        return len(self._ranked())

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._ranked())

    def __getitem__(self, key: Any) -> Any:
        found = self._ranked()[key]
        return PartialShape(found) if isinstance(found, list) else found

    def __setitem__(self, key: int, dim: DimensionLike) -> None:
        self._ranked()[key] = _dimension(dim)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialShape):
            try:
                other = PartialShape(other)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                return NotImplemented
        return self._dims == other._dims

    __hash__ = None  # type: ignore[assignment]

    def to_string(self) -> str:
        """As ``[1,?,2..5]``; ``[...]`` if the rank is not known."""
        return "[...]" if self._dims is None else "[" + ",".join(map(str, self._dims)) + "]"

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<PartialShape: {self}>"


ShapeLike = Union[PartialShape, str, Sequence[Any], Iterable[Any]]


def _dimension(given: Any) -> Dimension:
    if isinstance(given, Dimension):
        return given
    if isinstance(given, (tuple, list)):
        if len(given) != 2:
            raise TypeError(f"a dimension must be one number or two, found {given!r}")
        return Dimension(*given)
    return Dimension(given if isinstance(given, str) else _index(given))
