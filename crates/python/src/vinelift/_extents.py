"""Shapes as the C library has them."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

from ._declarations import Dim, Dims, Extents
from ._library import C, check
from ._shapes import Dimension, PartialShape, Shape


def to_extents(shape: Sequence[int]) -> Extents:
    """A shape for the library, which keeps the array that it points to."""
    try:
        return Extents(len(shape), (ctypes.c_int64 * len(shape))(*shape))
    except TypeError:
        raise TypeError(f"a shape must be integers, found {shape!r}") from None


def to_dims(shape: PartialShape) -> Dims:
    """A partial shape for the library, which keeps the array that it points to."""
    if shape._dims is None:
        return Dims(Dim(0, -1), None)
    array = (Dim * len(shape._dims))(*(Dim(each._min, each._max) for each in shape._dims))
    return Dims(Dim(len(array), len(array)), array)


def take_extents(function: Any, *arguments: Any) -> Shape:
    """Calls a function whose last parameter is for a shape."""
    out = Extents()
    check(function(*arguments, ctypes.byref(out)))
    try:
        return tuple.__new__(Shape, out.dims[: out.rank])
    finally:
        C.ov_shape_free(ctypes.byref(out))


def take_dims(function: Any, *arguments: Any) -> PartialShape:
    """Calls a function whose last parameter is for a partial shape."""
    out = Dims()
    check(function(*arguments, ctypes.byref(out)))
    try:
        made = PartialShape([])
        if out.rank.min != out.rank.max or out.rank.max < 0:
            made._dims = None
        else:
            made._dims = [Dimension(each.min, each.max) for each in out.dims[: out.rank.max]]
        return made
    finally:
        C.ov_partial_shape_free(ctypes.byref(out))
