"""The tensors of a request, with arrays of them that are made once."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from ._library import Error, Handle, ask_handle, check
from ._ports import ConstOutput
from ._tensor import Tensor
from ._types import Type


class Slot:
    """The tensor of an input or output."""

    __slots__ = (
        "_request",
        "_position",
        "_get",
        "_put",
        "_tensor",
        "_array",
        "_changes",
        "_is_own",
        "name",
        "type",
        "shape",
        "dtype",
    )

    def __init__(
        self, request: Handle, position: int, port: ConstOutput, get: Callable[..., int], put: Callable[..., int]
    ) -> None:
        self._request, self._position, self._get, self._put = request, position, get, put
        self._tensor: Tensor | None = None
        self._array: npt.NDArray[Any] | None = None
        self._changes = 0
        # Whether the tensor is the request's own, so that inputs may be copied to it.
        self._is_own = True
        self.name, self.type = port.any_name, port.element_type
        partial = port.partial_shape
        self.shape = None if partial.is_dynamic else tuple(partial.to_shape())
        self.dtype = None if self.type is Type.string else self.type.to_dtype()

    def get(self) -> Tensor:
        """The tensor: the same object, until another is set."""
        if self._tensor is None:
            self._tensor = Tensor._of_handle(ask_handle(self._get, self._request, self._position))
        return self._tensor

    def set(self, tensor: Tensor, is_output: bool) -> None:
        """Sets another tensor, which is kept as long as the library has it."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected a Tensor, found {type(tensor).__name__}")
        if is_output and not tensor._is_writeable():
            raise Error(f"the tensor for output '{self.name}' is of an array that cannot be written")
        check(self._put(self._request, self._position, tensor._handle))
        self._tensor, self._array, self._is_own = tensor, None, False

    def array(self) -> npt.NDArray[Any]:
        """The memory of the tensor. What is cached is of ports whose shape is known, which the library never moves."""
        array, tensor = self._array, self._tensor
        if array is not None and tensor is not None and tensor._changes == self._changes:
            return array
        tensor = self.get()
        array = tensor.data
        # Another request could move the memory of a tensor that is not this one's own, nor an array's.
        if array.shape == self.shape and (self._is_own or tensor._array is not None):
            self._array, self._changes = array, tensor._changes
        return array

    def own(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """The memory of a tensor of the request's own, of this shape."""
        if not self._is_own:
            self.set(Tensor(self.type, shape), False)
            self._is_own = True
            return self.array()
        array, tensor = self._array, self.get()
        if array is not None and array.shape == shape and tensor._changes == self._changes:
            return array
        if tensor.shape != shape:
            tensor.set_shape(shape)
        return self.array()

    def result(self, is_shared: bool, decode_strings: bool) -> npt.NDArray[Any]:
        """The elements of an output."""
        if self.dtype is None:
            return self.get().str_data if decode_strings else self.get().bytes_data
        return self.array() if is_shared else np.array(self.array())
