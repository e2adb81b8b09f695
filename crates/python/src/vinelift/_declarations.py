"""The structures and functions of the C library that are used, as :mod:`ctypes` wants to know them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any


class Dim(Structure):
    """``ov_dimension_t``: a `max` of -1 is no limit."""

    _fields_ = [("min", c_int64), ("max", c_int64)]


class Extents(Structure):
    """``ov_shape_t``."""

    _fields_ = [("rank", c_int64), ("dims", POINTER(c_int64))]


class Dims(Structure):
    """``ov_partial_shape_t``."""

    _fields_ = [("rank", Dim), ("dims", POINTER(Dim))]


class Property(Structure):
    """``ov_property_t``."""

    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class Callback(Structure):
    """``ov_callback_t``."""

    _fields_ = [("function", ctypes.CFUNCTYPE(None, c_void_p)), ("arguments", c_void_p)]


class VersionTexts(Structure):
    """``ov_version_t``."""

    _fields_ = [("build_number", c_char_p), ("description", c_char_p)]


class DeviceVersion(Structure):
    """``ov_core_version_t``."""

    _fields_ = [("device_name", c_char_p), ("version", VersionTexts)]


class DeviceVersions(Structure):
    """``ov_core_version_list_t``."""

    _fields_ = [("versions", POINTER(DeviceVersion)), ("size", c_size_t)]


class Devices(Structure):
    """``ov_available_devices_t``."""

    _fields_ = [("devices", POINTER(c_char_p)), ("size", c_size_t)]


class Profile(Structure):
    """``ov_profiling_info_t``."""

    _fields_ = [
        ("status", c_int),
        ("real_time", c_int64),
        ("cpu_time", c_int64),
        ("node_name", c_char_p),
        ("exec_type", c_char_p),
        ("node_type", c_char_p),
    ]


class Profiles(Structure):
    """``ov_profiling_info_list_t``."""

    _fields_ = [("infos", POINTER(Profile)), ("size", c_size_t)]


_H, _OUT, _TEXT, _N, _I32S = c_void_p, POINTER(c_void_p), c_char_p, c_size_t, POINTER(c_int32)
_NUMBER = POINTER(c_size_t)

# The parameters of the functions that are used. All of these return a status.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "ov_get_openvino_version": (POINTER(VersionTexts),),
    "ov_core_create": (_OUT,),
    "ov_core_read_model": (_H, _TEXT, _TEXT, _OUT),
    "ov_core_read_model_from_memory_buffer": (_H, _TEXT, _N, _H, _OUT),
    "ov_core_compile_model_props": (_H, _H, _TEXT, _N, POINTER(Property), _OUT),
    "ov_core_import_model": (_H, _TEXT, _N, _TEXT, _OUT),
    "ov_core_set_properties": (_H, _TEXT, _N, POINTER(Property)),
    "ov_core_get_property": (_H, _TEXT, _TEXT, _OUT),
    "ov_core_get_available_devices": (_H, POINTER(Devices)),
    "ov_core_get_versions_by_device_name": (_H, _TEXT, POINTER(DeviceVersions)),
    "ov_model_inputs_size": (_H, _NUMBER),
    "ov_model_outputs_size": (_H, _NUMBER),
    "ov_model_input_by_index": (_H, _N, _OUT),
    "ov_model_output_by_index": (_H, _N, _OUT),
    "ov_model_get_friendly_name": (_H, _OUT),
    "ov_model_reshape_by_port_indexes": (_H, _NUMBER, POINTER(Dims), _N),
    "ov_port_get_any_name": (_H, _OUT),
    "ov_port_get_element_type": (_H, POINTER(c_uint32)),
    "ov_port_get_partial_shape": (_H, POINTER(Dims)),
    "ov_compiled_model_inputs_size": (_H, _NUMBER),
    "ov_compiled_model_outputs_size": (_H, _NUMBER),
    "ov_compiled_model_input_by_index": (_H, _N, _OUT),
    "ov_compiled_model_output_by_index": (_H, _N, _OUT),
    "ov_compiled_model_create_infer_request": (_H, _OUT),
    "ov_compiled_model_get_runtime_model": (_H, _OUT),
    "ov_compiled_model_get_property": (_H, _TEXT, _OUT),
    "ov_compiled_model_set_properties": (_H, _N, POINTER(Property)),
    "ov_compiled_model_export_model": (_H, _TEXT),
    "ov_infer_request_set_input_tensor_by_index": (_H, _N, _H),
    "ov_infer_request_set_output_tensor_by_index": (_H, _N, _H),
    "ov_infer_request_get_input_tensor_by_index": (_H, _N, _OUT),
    "ov_infer_request_get_output_tensor_by_index": (_H, _N, _OUT),
    "ov_infer_request_infer": (_H,),
    "ov_infer_request_start_async": (_H,),
    "ov_infer_request_cancel": (_H,),
    "ov_infer_request_wait": (_H,),
    "ov_infer_request_wait_for": (_H, c_int64),
    "ov_infer_request_set_callback": (_H, POINTER(Callback)),
    "ov_infer_request_get_profiling_info": (_H, POINTER(Profiles)),
    "ov_tensor_create": (c_uint32, Extents, _OUT),
    "ov_tensor_create_from_host_ptr": (c_uint32, Extents, c_void_p, _OUT),
    "ov_tensor_create_from_string_array": (POINTER(c_char_p), _N, Extents, _OUT),
    "ov_tensor_set_string_data": (_H, POINTER(c_char_p), _N),
    "ov_tensor_set_shape": (_H, Extents),
    "ov_tensor_get_shape": (_H, POINTER(Extents)),
    "ov_tensor_get_element_type": (_H, POINTER(c_uint32)),
    "ov_tensor_get_byte_size": (_H, _NUMBER),
    "ov_layout_create": (_TEXT, _OUT),
    "ov_preprocess_prepostprocessor_create": (_H, _OUT),
    "ov_preprocess_prepostprocessor_build": (_H, _OUT),
    "ov_preprocess_prepostprocessor_get_input_info_by_index": (_H, _N, _OUT),
    "ov_preprocess_prepostprocessor_get_output_info_by_index": (_H, _N, _OUT),
    "ov_preprocess_input_info_get_tensor_info": (_H, _OUT),
    "ov_preprocess_input_info_get_preprocess_steps": (_H, _OUT),
    "ov_preprocess_input_info_get_model_info": (_H, _OUT),
    "ov_preprocess_output_info_get_tensor_info": (_H, _OUT),
    "ov_preprocess_output_set_element_type": (_H, c_uint32),
    "ov_preprocess_input_model_info_set_layout": (_H, _H),
    "ov_preprocess_input_tensor_info_set_element_type": (_H, c_uint32),
    "ov_preprocess_input_tensor_info_set_color_format_with_subnames": (_H, c_uint32, _N, POINTER(c_char_p)),
    "ov_preprocess_input_tensor_info_set_spatial_static_shape": (_H, _N, _N),
    "ov_preprocess_input_tensor_info_set_memory_type": (_H, _TEXT),
    "ov_preprocess_input_tensor_info_set_from": (_H, _H),
    "ov_preprocess_input_tensor_info_set_layout": (_H, _H),
    "ov_preprocess_preprocess_steps_resize": (_H, c_uint32),
    "ov_preprocess_preprocess_steps_scale_multi_channels": (_H, POINTER(c_float), c_int32),
    "ov_preprocess_preprocess_steps_mean_multi_channels": (_H, POINTER(c_float), c_int32),
    "ov_preprocess_preprocess_steps_crop": (_H, _I32S, c_int32, _I32S, c_int32),
    "ov_preprocess_preprocess_steps_convert_layout": (_H, _H),
    "ov_preprocess_preprocess_steps_reverse_channels": (_H,),
    "ov_preprocess_preprocess_steps_convert_element_type": (_H, c_uint32),
    "ov_preprocess_preprocess_steps_convert_color": (_H, c_uint32),
    "ov_preprocess_preprocess_steps_pad": (_H, _I32S, _N, _I32S, _N, c_float, c_uint32),
    "vinelift_port_names_size": (_H, _NUMBER),
    "vinelift_port_name_by_index": (_H, _N, _OUT),
    "vinelift_tensor_hold": (_H, _OUT, _OUT),
    "vinelift_tensor_get_string": (_H, _N, _OUT, _NUMBER),
    "vinelift_infer_request_variables_size": (_H, _NUMBER),
    "vinelift_infer_request_variable_name": (_H, _N, _OUT),
    "vinelift_infer_request_get_variable": (_H, _N, _OUT),
    "vinelift_infer_request_set_variable": (_H, _N, _H),
    "vinelift_infer_request_reset_variable": (_H, _N),
    "vinelift_infer_request_outcome": (_H,),
}
# Those that return nothing, or something else.
_OTHERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ov_get_last_err_msg": (c_void_p, ()),
    "ov_get_error_info": (c_char_p, (c_int,)),
    "ov_free": (None, (c_void_p,)),
    "ov_layout_to_string": (c_void_p, (_H,)),
    "ov_version_free": (None, (POINTER(VersionTexts),)),
    "ov_available_devices_free": (None, (POINTER(Devices),)),
    "ov_core_versions_free": (None, (POINTER(DeviceVersions),)),
    "ov_profiling_info_list_free": (None, (POINTER(Profiles),)),
    "ov_shape_free": (c_int, (POINTER(Extents),)),
    "ov_partial_shape_free": (None, (POINTER(Dims),)),
    "ov_model_is_dynamic": (c_bool, (_H,)),
}
_FREED = (
    "ov_core ov_model ov_compiled_model ov_infer_request ov_tensor ov_layout ov_output_port vinelift_memory "
    "ov_preprocess_prepostprocessor ov_preprocess_input_info ov_preprocess_output_info"
).split()
_OTHERS.update({f"{name}_free": (None, (_H,)) for name in _FREED})
_PARTS = ("input_tensor_info", "preprocess_steps", "input_model_info", "output_tensor_info")
_OTHERS.update({f"ov_preprocess_{name}_free": (None, (_H,)) for name in _PARTS})


def declare(library: ctypes.CDLL) -> None:
    """Tells the parameters and results of the functions of `library`."""
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, c_int
    for name, (result, arguments) in _OTHERS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
