"""Pre- and postprocessing of tensors, added to a model as layers."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, Callable, Sequence, Union

from ._layout import Layout
from ._library import C, Handle, ask_handle, check, text, texts
from ._model import Model
from ._ports import Key
from ._shapes import PartialShape, ShapeLike
from ._tensor import Tensor
from ._types import Type, TypeLike, as_type

__all__ = ["ColorFormat", "PaddingMode", "PrePostProcessor", "ResizeAlgorithm"]

Numbers = Union[float, Sequence[float]]


class ColorFormat(IntEnum):
    """The colour format of a picture."""

    UNDEFINED = 0
    NV12_SINGLE_PLANE = 1
    NV12_TWO_PLANES = 2
    I420_SINGLE_PLANE = 3
    I420_THREE_PLANES = 4
    RGB = 5
    BGR = 6
    GRAY = 7
    RGBX = 8
    BGRX = 9


class ResizeAlgorithm(IntEnum):
    """How pictures are resized."""

    RESIZE_LINEAR = 0
    RESIZE_CUBIC = 1
    RESIZE_NEAREST = 2


class PaddingMode(IntEnum):
    """The values of the padding around a picture."""

    CONSTANT = 0
    EDGE = 1
    REFLECT = 2
    SYMMETRIC = 3


def _part(get: Callable[..., int], free: Callable[[int], None], of: Handle) -> Handle:
    return Handle(ask_handle(get, of), free)


def _layout(layout: Layout | str) -> Layout:
    return layout if isinstance(layout, Layout) else Layout(layout)


def _floats(values: Numbers) -> Any:
    listed = [values] if isinstance(values, (int, float)) else list(values)
    return (ctypes.c_float * len(listed))(*listed), len(listed)


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int32 * len(values))(*values), len(values)


class InputTensorInfo:
    """The tensors that the program passes for an input."""

    def __init__(self, info: Handle, kind: Type) -> None:
        get, free = C.ov_preprocess_input_info_get_tensor_info, C.ov_preprocess_input_tensor_info_free
        self._handle, self._type = _part(get, free, info), kind

    def set_element_type(self, type: TypeLike) -> InputTensorInfo:
        """The type of the elements."""
        self._type = as_type(type)
        check(C.ov_preprocess_input_tensor_info_set_element_type(self._handle, self._type._code))
        return self

    def set_layout(self, layout: Layout | str) -> InputTensorInfo:
        """Sets the layout: the meaning of each dimension."""
        check(C.ov_preprocess_input_tensor_info_set_layout(self._handle, _layout(layout)._handle))
        return self

    def set_color_format(self, format: ColorFormat, sub_names: Sequence[str] = ()) -> InputTensorInfo:
        """Sets the colour format. If its planes become inputs of their own, `sub_names` are their names."""
        names = texts(list(sub_names))
        set_format = C.ov_preprocess_input_tensor_info_set_color_format_with_subnames
        check(set_format(self._handle, int(format), len(names), names))
        return self

    def set_spatial_static_shape(self, height: int, width: int) -> InputTensorInfo:
        """The extents of pictures."""
        check(C.ov_preprocess_input_tensor_info_set_spatial_static_shape(self._handle, height, width))
        return self

    def set_shape(self, shape: ShapeLike) -> InputTensorInfo:
        """The shape, all of which must be known. Set the type of the elements first."""
        return self.set_from(Tensor(self._type, PartialShape(shape).to_shape()))

    def set_from(self, tensor: Any) -> InputTensorInfo:
        """Type and shape of a tensor or array."""
        given = tensor if isinstance(tensor, Tensor) else Tensor(tensor)
        self._type = given.element_type
        check(C.ov_preprocess_input_tensor_info_set_from(self._handle, given._handle))
        return self

    def set_memory_type(self, memory_type: str) -> InputTensorInfo:
        """Only the processor's memory, whose name is empty, is there."""
        check(C.ov_preprocess_input_tensor_info_set_memory_type(self._handle, text(memory_type)))
        return self


class InputModelInfo:
    """The tensors that the model takes for an input."""

    def __init__(self, info: Handle) -> None:
        get, free = C.ov_preprocess_input_info_get_model_info, C.ov_preprocess_input_model_info_free
        self._handle = _part(get, free, info)

    def set_layout(self, layout: Layout | str) -> InputModelInfo:
        """Sets the layout: the meaning of each dimension."""
        check(C.ov_preprocess_input_model_info_set_layout(self._handle, _layout(layout)._handle))
        return self


class PreProcessSteps:
    """The preprocessing steps of an input, in the order of calls."""

    def __init__(self, info: Handle, kind: Type) -> None:
        get, free = C.ov_preprocess_input_info_get_preprocess_steps, C.ov_preprocess_preprocess_steps_free
        self._handle, self._type = _part(get, free, info), kind

    def convert_element_type(self, type: TypeLike | None = None) -> PreProcessSteps:
        """Converts the elements; without a type, to that of the model."""
        kind = self._type if type is None else as_type(type)
        check(C.ov_preprocess_preprocess_steps_convert_element_type(self._handle, kind._code))
        return self

    def convert_layout(self, layout: Layout | str) -> PreProcessSteps:
        """Brings the dimensions into another order."""
        check(C.ov_preprocess_preprocess_steps_convert_layout(self._handle, _layout(layout)._handle))
        return self

    def convert_color(self, format: ColorFormat) -> PreProcessSteps:
        """Converts the channels."""
        check(C.ov_preprocess_preprocess_steps_convert_color(self._handle, int(format)))
        return self

    def resize(self, algorithm: ResizeAlgorithm) -> PreProcessSteps:
        """Resizes pictures to what the model takes."""
        check(C.ov_preprocess_preprocess_steps_resize(self._handle, int(algorithm)))
        return self

    def mean(self, values: Numbers) -> PreProcessSteps:
        """Subtracts a number, or one for each channel."""
        check(C.ov_preprocess_preprocess_steps_mean_multi_channels(self._handle, *_floats(values)))
        return self

    def scale(self, values: Numbers) -> PreProcessSteps:
        """Divides by a number, or one for each channel."""
        check(C.ov_preprocess_preprocess_steps_scale_multi_channels(self._handle, *_floats(values)))
        return self

    def crop(self, begin: Sequence[int], end: Sequence[int]) -> PreProcessSteps:
        """Cuts out what is from `begin` to before `end`."""
        check(C.ov_preprocess_preprocess_steps_crop(self._handle, *_ints(begin), *_ints(end)))
        return self

    def pad(
        self, pads_begin: Sequence[int], pads_end: Sequence[int], value: float, mode: PaddingMode
    ) -> PreProcessSteps:
        """Writes something around."""
        both = *_ints(pads_begin), *_ints(pads_end)
        check(C.ov_preprocess_preprocess_steps_pad(self._handle, *both, float(value), int(mode)))
        return self

    def reverse_channels(self) -> PreProcessSteps:
        """Reverses the order of channels."""
        check(C.ov_preprocess_preprocess_steps_reverse_channels(self._handle))
        return self


class InputInfo:
    """An input: the tensors of the program, the steps, and the tensors of the model."""

    def __init__(self, handle: Handle, kind: Type) -> None:
        self._handle, self._type = handle, kind
        self._tensor = InputTensorInfo(handle, kind)

    def tensor(self) -> InputTensorInfo:
        """The tensors that the program passes."""
        return self._tensor

    def preprocess(self) -> PreProcessSteps:
        """The steps between the two."""
        return PreProcessSteps(self._handle, self._type)

    def model(self) -> InputModelInfo:
        """The tensors that the model takes."""
        return InputModelInfo(self._handle)


class OutputTensorInfo:
    """The tensors that the program gets for an output."""

    def __init__(self, info: Handle) -> None:
        get, free = C.ov_preprocess_output_info_get_tensor_info, C.ov_preprocess_output_tensor_info_free
        self._handle = _part(get, free, info)

    def set_element_type(self, type: TypeLike) -> OutputTensorInfo:
        """The type of the elements."""
        check(C.ov_preprocess_output_set_element_type(self._handle, as_type(type)._code))
        return self


class OutputInfo:
    """An output of the model."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def tensor(self) -> OutputTensorInfo:
        """The tensors that the program gets."""
        return OutputTensorInfo(self._handle)


class PrePostProcessor:
    """Makes a model of another one that does something to its inputs and outputs as well."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"expected a Model, found {type(model).__name__}")
        create, free = C.ov_preprocess_prepostprocessor_create, C.ov_preprocess_prepostprocessor_free
        self._handle, self._model = _part(create, free, model._handle), model
        self._inputs: dict[int, InputInfo] = {}

    def input(self, key: Key | None = None) -> InputInfo:
        """The input of a name or position; without either the only one."""
        ports = self._model._ports()[0]
        position = ports.position(key)
        if position not in self._inputs:
            get = C.ov_preprocess_prepostprocessor_get_input_info_by_index
            handle = Handle(ask_handle(get, self._handle, position), C.ov_preprocess_input_info_free)
            self._inputs[position] = InputInfo(handle, ports.all[position].element_type)
        return self._inputs[position]

    def output(self, key: Key | None = None) -> OutputInfo:
        """The output of a name or position; without either the only one."""
        position = self._model._ports()[1].position(key)
        get = C.ov_preprocess_prepostprocessor_get_output_info_by_index
        return OutputInfo(Handle(ask_handle(get, self._handle, position), C.ov_preprocess_output_info_free))

    def build(self) -> Model:
        """The model; the one that was given stays as it is."""
        return Model(ask_handle(C.ov_preprocess_prepostprocessor_build, self._handle))
