"""From what a caller gives for inputs to tensors of a request."""

from __future__ import annotations

import sys
from typing import Any, Mapping

import numpy as np

from ._library import Error
from ._ports import Ports
from ._slots import Slot
from ._tensor import Tensor, to_bfloat
from ._types import Type, as_type

# No array is as large.
NEVER = sys.maxsize


def fill_all(slots: list[Slot], ports: Ports, inputs: Any, share_from: int) -> None:
    """Sets the inputs of a request: by name, position or port in a dict, in order in a list or tuple, or the only one.
    Arrays of at least `share_from` bytes are read where they are, others are copied."""
    if isinstance(inputs, Mapping):
        for key, value in inputs.items():
            fill(slots[ports.position(key)], value, share_from)
    elif isinstance(inputs, (list, tuple)):
        if len(inputs) > len(slots):
            raise Error(f"there are {len(inputs)} inputs, the model has {len(slots)}")
        for slot, value in zip(slots, inputs):
            fill(slot, value, share_from)
    else:
        fill(slots[ports.position(None)], inputs, share_from)


def fill(slot: Slot, value: Any, share_from: int) -> None:
    """Sets an input to a tensor, or to the elements of an array."""
    if isinstance(value, Tensor):
        slot.set(value, False)
        return
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if slot.dtype is None:
        slot.set(Tensor(array), False)
        return
    if slot.type._is_packed:
        raise Error(
            f"input '{slot.name}' is of {slot.type.get_type_name()}, which NumPy has not: give a Tensor(bytes, shape, type)"
        )
    shape = slot.shape
    # Shapes that are known in part are checked by the library.
    if shape is not None and array.shape != shape:
        found = f"{array.dtype}{list(array.shape)}"
        raise Error(f"input '{slot.name}' must be {slot.type.get_type_name()}{list(shape)}, found {found}")
    if (
        array.nbytes >= share_from
        and array.dtype == slot.dtype
        and array.flags.c_contiguous
        and slot.type is not Type.bf16
    ):
        slot.set(Tensor(array, shared_memory=True), False)
        return
    if array.dtype != slot.dtype:
        array = _converted(slot, array)
    target = slot.own(array.shape)
    target[...] = array


def _converted(slot: Slot, array: Any) -> Any:
    """The elements as those of an input."""
    if slot.type is Type.bf16 and array.dtype.name != "bfloat16":
        return to_bfloat(array.astype(np.float32))
    if array.dtype.kind == "V" or slot.type.get_type_name().startswith(("f8", "bf")):
        if as_type(array.dtype) is slot.type:
            return array.view(slot.dtype)
        raise Error(
            f"input '{slot.name}' is of {slot.type.get_type_name()}, which cannot be made of NumPy's {array.dtype}"
        )
    if array.dtype.kind == "c":
        raise TypeError(f"input '{slot.name}' is of {slot.type.get_type_name()}, found complex numbers")
    return array.astype(slot.dtype)
