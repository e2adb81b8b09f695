/* The functions of OpenVINO's C API 2.0 as far as the tests here call them, which is all of them.
 *
 * With OPENVINO_HEADERS defined, OpenVINO's own headers are used instead: then the tests show that
 * what is declared here is the same. */
#pragma once

#ifdef OPENVINO_HEADERS
#include <openvino/c/openvino.h>
#include <openvino/c/gpu/gpu_plugin_properties.h>
#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef enum {
    OK = 0,
    GENERAL_ERROR = -1,
    NOT_IMPLEMENTED = -2,
    PARAMETER_MISMATCH = -4,
    NOT_FOUND = -5,
    OUT_OF_BOUNDS = -6,
    REQUEST_BUSY = -8,
    RESULT_NOT_READY = -9,
    INFER_CANCELLED = -13,
    INVALID_C_PARAM = -14,
} ov_status_e;

typedef enum {
    DYNAMIC, OV_BOOLEAN, BF16, F16, F32, F64, I4, I8, I16, I32, I64, U1, U2, U3, U4, U6, U8, U16, U32,
    U64, NF4, F8E4M3, F8E5M3, STRING, F4E2M1, F8E8M0
} ov_element_type_e;

typedef enum {
    UNDEFINE, NV12_SINGLE_PLANE, NV12_TWO_PLANES, I420_SINGLE_PLANE, I420_THREE_PLANES, RGB, BGR, GRAY,
    RGBX, BGRX
} ov_color_format_e;

typedef enum { RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_NEAREST } ov_preprocess_resize_algorithm_e;
typedef enum { CONSTANT, EDGE, REFLECT, SYMMETRIC } ov_padding_mode_e;

#define HANDLE(name) typedef struct name name##_t
HANDLE(ov_core);
HANDLE(ov_model);
HANDLE(ov_compiled_model);
HANDLE(ov_infer_request);
HANDLE(ov_tensor);
HANDLE(ov_layout);
HANDLE(ov_output_port);
HANDLE(ov_output_const_port);
HANDLE(ov_remote_context);
HANDLE(ov_preprocess_prepostprocessor);
HANDLE(ov_preprocess_input_info);
HANDLE(ov_preprocess_input_tensor_info);
HANDLE(ov_preprocess_input_model_info);
HANDLE(ov_preprocess_preprocess_steps);
HANDLE(ov_preprocess_output_info);
HANDLE(ov_preprocess_output_tensor_info);

typedef struct { int64_t min, max; } ov_dimension_t;
typedef ov_dimension_t ov_rank_t;
typedef struct { int64_t rank; int64_t *dims; } ov_shape_t;
typedef struct { ov_rank_t rank; ov_dimension_t *dims; } ov_partial_shape_t;
typedef struct { const char *buildNumber, *description; } ov_version_t;
typedef struct { const char *device_name; ov_version_t version; } ov_core_version_t;
typedef struct { ov_core_version_t *versions; size_t size; } ov_core_version_list_t;
typedef struct { char **devices; size_t size; } ov_available_devices_t;
typedef struct { const char *key; const void *value; } ov_property_t;
typedef struct { void (*callback_func)(void *); void *args; } ov_callback_t;
typedef struct {
    enum { NOT_RUN, OPTIMIZED_OUT, EXECUTED } status;
    int64_t real_time, cpu_time;
    const char *node_name, *exec_type, *node_type;
} ov_profiling_info_t;
typedef struct { ov_profiling_info_t *profiling_infos; size_t size; } ov_profiling_info_list_t;
typedef void (*ov_util_log_callback_func)(const char *);

/* ov_common.h */
const char* ov_get_error_info(ov_status_e);
void ov_free(const char*);
const char* ov_get_last_err_msg(void);

/* ov_dimension.h */
bool ov_dimension_is_dynamic(ov_dimension_t);

/* ov_rank.h */
bool ov_rank_is_dynamic(ov_rank_t);

/* ov_shape.h */
ov_status_e ov_shape_create(int64_t, const int64_t*, ov_shape_t*);
ov_status_e ov_shape_free(ov_shape_t*);

/* ov_partial_shape.h */
ov_status_e ov_partial_shape_create(int64_t, const ov_dimension_t*, ov_partial_shape_t*);
ov_status_e ov_partial_shape_create_dynamic(ov_rank_t, const ov_dimension_t*, ov_partial_shape_t*);
ov_status_e ov_partial_shape_create_static(int64_t, const int64_t*, ov_partial_shape_t*);
void ov_partial_shape_free(ov_partial_shape_t*);
ov_status_e ov_partial_shape_to_shape(ov_partial_shape_t, ov_shape_t*);
ov_status_e ov_shape_to_partial_shape(ov_shape_t, ov_partial_shape_t*);
bool ov_partial_shape_is_dynamic(ov_partial_shape_t);
const char* ov_partial_shape_to_string(ov_partial_shape_t);

/* ov_layout.h */
ov_status_e ov_layout_create(const char*, ov_layout_t**);
void ov_layout_free(ov_layout_t*);
const char* ov_layout_to_string(const ov_layout_t*);

/* ov_node.h */
ov_status_e ov_const_port_get_shape(const ov_output_const_port_t*, ov_shape_t*);
ov_status_e ov_port_get_shape(const ov_output_port_t*, ov_shape_t*);
ov_status_e ov_port_get_any_name(const ov_output_const_port_t*, char**);
ov_status_e ov_port_get_partial_shape(const ov_output_const_port_t*, ov_partial_shape_t*);
ov_status_e ov_port_get_element_type(const ov_output_const_port_t*, ov_element_type_e*);
void ov_output_port_free(ov_output_port_t*);
void ov_output_const_port_free(ov_output_const_port_t*);

/* ov_property.h */

/* ov_remote_context.h */
ov_status_e ov_remote_context_create_tensor(const ov_remote_context_t*, ov_element_type_e, ov_shape_t, size_t, ov_tensor_t**, ...);
ov_status_e ov_remote_context_create_tensor_props(const ov_remote_context_t*, ov_element_type_e, ov_shape_t, size_t, const ov_property_t*, ov_tensor_t**);
ov_status_e ov_remote_context_get_device_name(const ov_remote_context_t*, char**);
ov_status_e ov_remote_context_get_params(const ov_remote_context_t*, size_t*, char**);
ov_status_e ov_remote_context_create_host_tensor(const ov_remote_context_t*, ov_element_type_e, ov_shape_t, ov_tensor_t**);
void ov_remote_context_free(ov_remote_context_t*);
ov_status_e ov_remote_tensor_get_params(ov_tensor_t*, size_t*, char**);
ov_status_e ov_remote_tensor_get_device_name(ov_tensor_t*, char**);

/* ov_tensor.h */
ov_status_e ov_tensor_create_from_host_ptr(ov_element_type_e, ov_shape_t, void*, ov_tensor_t**);
ov_status_e ov_tensor_create(ov_element_type_e, ov_shape_t, ov_tensor_t**);
ov_status_e ov_tensor_set_shape(ov_tensor_t*, ov_shape_t);
ov_status_e ov_tensor_create_from_string_array(const char**, size_t, ov_shape_t, ov_tensor_t**);
ov_status_e ov_tensor_get_shape(const ov_tensor_t*, ov_shape_t*);
ov_status_e ov_tensor_get_element_type(const ov_tensor_t*, ov_element_type_e*);
ov_status_e ov_tensor_set_string_data(ov_tensor_t*, const char**, size_t);
ov_status_e ov_tensor_get_size(const ov_tensor_t*, size_t*);
ov_status_e ov_tensor_get_byte_size(const ov_tensor_t*, size_t*);
ov_status_e ov_tensor_data(const ov_tensor_t*, void**);
void ov_tensor_free(ov_tensor_t*);

/* ov_model.h */
void ov_model_free(ov_model_t*);
ov_status_e ov_model_const_input(const ov_model_t*, ov_output_const_port_t**);
ov_status_e ov_model_const_input_by_name(const ov_model_t*, const char*, ov_output_const_port_t**);
ov_status_e ov_model_const_input_by_index(const ov_model_t*, size_t, ov_output_const_port_t**);
ov_status_e ov_model_input(const ov_model_t*, ov_output_port_t**);
ov_status_e ov_model_input_by_name(const ov_model_t*, const char*, ov_output_port_t**);
ov_status_e ov_model_input_by_index(const ov_model_t*, size_t, ov_output_port_t**);
ov_status_e ov_model_const_output(const ov_model_t*, ov_output_const_port_t**);
ov_status_e ov_model_const_output_by_index(const ov_model_t*, size_t, ov_output_const_port_t**);
ov_status_e ov_model_const_output_by_name(const ov_model_t*, const char*, ov_output_const_port_t**);
ov_status_e ov_model_output(const ov_model_t*, ov_output_port_t**);
ov_status_e ov_model_output_by_index(const ov_model_t*, size_t, ov_output_port_t**);
ov_status_e ov_model_output_by_name(const ov_model_t*, const char*, ov_output_port_t**);
ov_status_e ov_model_inputs_size(const ov_model_t*, size_t*);
ov_status_e ov_model_outputs_size(const ov_model_t*, size_t*);
bool ov_model_is_dynamic(const ov_model_t*);
ov_status_e ov_model_reshape(const ov_model_t*, const char**, const ov_partial_shape_t*, size_t);
ov_status_e ov_model_reshape_input_by_name(const ov_model_t*, const char*, ov_partial_shape_t);
ov_status_e ov_model_reshape_single_input(const ov_model_t*, ov_partial_shape_t);
ov_status_e ov_model_reshape_by_port_indexes(const ov_model_t*, const size_t*, const ov_partial_shape_t*, size_t);
ov_status_e ov_model_reshape_by_ports(const ov_model_t*, const ov_output_port_t**, const ov_partial_shape_t*, size_t);
ov_status_e ov_model_get_friendly_name(const ov_model_t*, char**);

/* ov_infer_request.h */
ov_status_e ov_infer_request_set_tensor(ov_infer_request_t*, const char*, const ov_tensor_t*);
ov_status_e ov_infer_request_set_tensor_by_port(ov_infer_request_t*, const ov_output_port_t*, const ov_tensor_t*);
ov_status_e ov_infer_request_set_tensor_by_const_port(ov_infer_request_t*, const ov_output_const_port_t*, const ov_tensor_t*);
ov_status_e ov_infer_request_set_input_tensor_by_index(ov_infer_request_t*, size_t, const ov_tensor_t*);
ov_status_e ov_infer_request_set_input_tensor(ov_infer_request_t*, const ov_tensor_t*);
ov_status_e ov_infer_request_set_output_tensor_by_index(ov_infer_request_t*, size_t, const ov_tensor_t*);
ov_status_e ov_infer_request_set_output_tensor(ov_infer_request_t*, const ov_tensor_t*);
ov_status_e ov_infer_request_get_tensor(const ov_infer_request_t*, const char*, ov_tensor_t**);
ov_status_e ov_infer_request_get_tensor_by_const_port(const ov_infer_request_t*, const ov_output_const_port_t*, ov_tensor_t**);
ov_status_e ov_infer_request_get_tensor_by_port(const ov_infer_request_t*, const ov_output_port_t*, ov_tensor_t**);
ov_status_e ov_infer_request_get_input_tensor_by_index(const ov_infer_request_t*, size_t, ov_tensor_t**);
ov_status_e ov_infer_request_get_input_tensor(const ov_infer_request_t*, ov_tensor_t**);
ov_status_e ov_infer_request_get_output_tensor_by_index(const ov_infer_request_t*, size_t, ov_tensor_t**);
ov_status_e ov_infer_request_get_output_tensor(const ov_infer_request_t*, ov_tensor_t**);
ov_status_e ov_infer_request_infer(ov_infer_request_t*);
ov_status_e ov_infer_request_cancel(ov_infer_request_t*);
ov_status_e ov_infer_request_start_async(ov_infer_request_t*);
ov_status_e ov_infer_request_wait(ov_infer_request_t*);
ov_status_e ov_infer_request_wait_for(ov_infer_request_t*, int64_t);
ov_status_e ov_infer_request_set_callback(ov_infer_request_t*, const ov_callback_t*);
void ov_infer_request_free(ov_infer_request_t*);
ov_status_e ov_infer_request_get_profiling_info(const ov_infer_request_t*, ov_profiling_info_list_t*);
void ov_profiling_info_list_free(ov_profiling_info_list_t*);

/* ov_compiled_model.h */
ov_status_e ov_compiled_model_inputs_size(const ov_compiled_model_t*, size_t*);
ov_status_e ov_compiled_model_input(const ov_compiled_model_t*, ov_output_const_port_t**);
ov_status_e ov_compiled_model_input_by_index(const ov_compiled_model_t*, size_t, ov_output_const_port_t**);
ov_status_e ov_compiled_model_input_by_name(const ov_compiled_model_t*, const char*, ov_output_const_port_t**);
ov_status_e ov_compiled_model_outputs_size(const ov_compiled_model_t*, size_t*);
ov_status_e ov_compiled_model_output(const ov_compiled_model_t*, ov_output_const_port_t**);
ov_status_e ov_compiled_model_output_by_index(const ov_compiled_model_t*, size_t, ov_output_const_port_t**);
ov_status_e ov_compiled_model_output_by_name(const ov_compiled_model_t*, const char*, ov_output_const_port_t**);
ov_status_e ov_compiled_model_get_runtime_model(const ov_compiled_model_t*, ov_model_t**);
ov_status_e ov_compiled_model_create_infer_request(const ov_compiled_model_t*, ov_infer_request_t**);
ov_status_e ov_compiled_model_set_property(const ov_compiled_model_t*, ...);
ov_status_e ov_compiled_model_set_properties(const ov_compiled_model_t*, size_t, const ov_property_t*);
ov_status_e ov_compiled_model_get_property(const ov_compiled_model_t*, const char*, char**);
ov_status_e ov_compiled_model_export_model(const ov_compiled_model_t*, const char*);
void ov_compiled_model_free(ov_compiled_model_t*);
ov_status_e ov_compiled_model_get_context(const ov_compiled_model_t*, ov_remote_context_t**);

/* ov_core.h */
ov_status_e ov_get_openvino_version(ov_version_t*);
void ov_version_free(ov_version_t*);
ov_status_e ov_core_create(ov_core_t**);
ov_status_e ov_core_create_with_config(const char*, ov_core_t**);
ov_status_e ov_core_create_with_config_unicode(const wchar_t*, ov_core_t**);
void ov_core_free(ov_core_t*);
ov_status_e ov_core_read_model(const ov_core_t*, const char*, const char*, ov_model_t**);
ov_status_e ov_core_read_model_unicode(const ov_core_t*, const wchar_t*, const wchar_t*, ov_model_t**);
ov_status_e ov_core_read_model_from_memory_buffer(const ov_core_t*, const char*, size_t, const ov_tensor_t*, ov_model_t**);
ov_status_e ov_core_compile_model(const ov_core_t*, const ov_model_t*, const char*, size_t, ov_compiled_model_t**, ...);
ov_status_e ov_core_compile_model_from_file(const ov_core_t*, const char*, const char*, size_t, ov_compiled_model_t**, ...);
ov_status_e ov_core_add_extension(const ov_core_t*, const char*);
ov_status_e ov_core_compile_model_from_file_unicode(const ov_core_t*, const wchar_t*, const char*, size_t, ov_compiled_model_t**, ...);
ov_status_e ov_core_set_property(const ov_core_t*, const char*, ...);
ov_status_e ov_core_set_properties(const ov_core_t*, const char*, size_t, const ov_property_t*);
ov_status_e ov_core_compile_model_props(const ov_core_t*, const ov_model_t*, const char*, size_t, const ov_property_t*, ov_compiled_model_t**);
ov_status_e ov_core_compile_model_from_file_props(const ov_core_t*, const char*, const char*, size_t, const ov_property_t*, ov_compiled_model_t**);
ov_status_e ov_core_compile_model_from_file_unicode_props(const ov_core_t*, const wchar_t*, const char*, size_t, const ov_property_t*, ov_compiled_model_t**);
ov_status_e ov_core_get_property(const ov_core_t*, const char*, const char*, char**);
ov_status_e ov_core_get_available_devices(const ov_core_t*, ov_available_devices_t*);
void ov_available_devices_free(ov_available_devices_t*);
ov_status_e ov_core_import_model(const ov_core_t*, const char*, size_t, const char*, ov_compiled_model_t**);
ov_status_e ov_core_get_versions_by_device_name(const ov_core_t*, const char*, ov_core_version_list_t*);
void ov_core_versions_free(ov_core_version_list_t*);
ov_status_e ov_core_create_context(const ov_core_t*, const char*, size_t, ov_remote_context_t**, ...);
ov_status_e ov_core_create_context_props(const ov_core_t*, const char*, size_t, const ov_property_t*, ov_remote_context_t**);
ov_status_e ov_core_compile_model_with_context(const ov_core_t*, const ov_model_t*, const ov_remote_context_t*, size_t, ov_compiled_model_t**, ...);
ov_status_e ov_core_compile_model_with_context_props(const ov_core_t*, const ov_model_t*, const ov_remote_context_t*, size_t, const ov_property_t*, ov_compiled_model_t**);
ov_status_e ov_core_get_default_context(const ov_core_t*, const char*, ov_remote_context_t**);
void ov_shutdown(void);

/* ov_util.h */
void ov_util_set_log_callback(ov_util_log_callback_func);
void ov_util_reset_log_callback(void);

/* ov_prepostprocess.h */
ov_status_e ov_preprocess_prepostprocessor_create(const ov_model_t*, ov_preprocess_prepostprocessor_t**);
void ov_preprocess_prepostprocessor_free(ov_preprocess_prepostprocessor_t*);
ov_status_e ov_preprocess_prepostprocessor_get_input_info(const ov_preprocess_prepostprocessor_t*, ov_preprocess_input_info_t**);
ov_status_e ov_preprocess_prepostprocessor_get_input_info_by_name(const ov_preprocess_prepostprocessor_t*, const char*, ov_preprocess_input_info_t**);
ov_status_e ov_preprocess_prepostprocessor_get_input_info_by_index(const ov_preprocess_prepostprocessor_t*, size_t, ov_preprocess_input_info_t**);
void ov_preprocess_input_info_free(ov_preprocess_input_info_t*);
ov_status_e ov_preprocess_input_info_get_tensor_info(const ov_preprocess_input_info_t*, ov_preprocess_input_tensor_info_t**);
void ov_preprocess_input_tensor_info_free(ov_preprocess_input_tensor_info_t*);
ov_status_e ov_preprocess_input_info_get_preprocess_steps(const ov_preprocess_input_info_t*, ov_preprocess_preprocess_steps_t**);
void ov_preprocess_preprocess_steps_free(ov_preprocess_preprocess_steps_t*);
ov_status_e ov_preprocess_preprocess_steps_resize(ov_preprocess_preprocess_steps_t*, ov_preprocess_resize_algorithm_e);
ov_status_e ov_preprocess_preprocess_steps_scale(ov_preprocess_preprocess_steps_t*, float);
ov_status_e ov_preprocess_preprocess_steps_scale_multi_channels(ov_preprocess_preprocess_steps_t*, const float*, int32_t);
ov_status_e ov_preprocess_preprocess_steps_mean(ov_preprocess_preprocess_steps_t*, float);
ov_status_e ov_preprocess_preprocess_steps_mean_multi_channels(ov_preprocess_preprocess_steps_t*, const float*, int32_t);
ov_status_e ov_preprocess_preprocess_steps_crop(ov_preprocess_preprocess_steps_t*, int32_t*, int32_t, int32_t*, int32_t);
ov_status_e ov_preprocess_preprocess_steps_convert_layout(ov_preprocess_preprocess_steps_t*, ov_layout_t*);
ov_status_e ov_preprocess_preprocess_steps_reverse_channels(ov_preprocess_preprocess_steps_t*);
ov_status_e ov_preprocess_input_tensor_info_set_element_type(ov_preprocess_input_tensor_info_t*, ov_element_type_e);
ov_status_e ov_preprocess_input_tensor_info_set_color_format(ov_preprocess_input_tensor_info_t*, ov_color_format_e);
ov_status_e ov_preprocess_input_tensor_info_set_color_format_with_subname(ov_preprocess_input_tensor_info_t*, ov_color_format_e, size_t, ...);
ov_status_e ov_preprocess_input_tensor_info_set_color_format_with_subnames(ov_preprocess_input_tensor_info_t*, ov_color_format_e, size_t, const char**);
ov_status_e ov_preprocess_input_tensor_info_set_spatial_static_shape(ov_preprocess_input_tensor_info_t*, size_t, size_t);
ov_status_e ov_preprocess_input_tensor_info_set_memory_type(ov_preprocess_input_tensor_info_t*, const char*);
ov_status_e ov_preprocess_preprocess_steps_convert_element_type(ov_preprocess_preprocess_steps_t*, ov_element_type_e);
ov_status_e ov_preprocess_preprocess_steps_convert_color(ov_preprocess_preprocess_steps_t*, ov_color_format_e);
ov_status_e ov_preprocess_input_tensor_info_set_from(ov_preprocess_input_tensor_info_t*, const ov_tensor_t*);
ov_status_e ov_preprocess_input_tensor_info_set_layout(ov_preprocess_input_tensor_info_t*, ov_layout_t*);
ov_status_e ov_preprocess_prepostprocessor_get_output_info(const ov_preprocess_prepostprocessor_t*, ov_preprocess_output_info_t**);
ov_status_e ov_preprocess_prepostprocessor_get_output_info_by_index(const ov_preprocess_prepostprocessor_t*, size_t, ov_preprocess_output_info_t**);
ov_status_e ov_preprocess_prepostprocessor_get_output_info_by_name(const ov_preprocess_prepostprocessor_t*, const char*, ov_preprocess_output_info_t**);
void ov_preprocess_output_info_free(ov_preprocess_output_info_t*);
ov_status_e ov_preprocess_output_info_get_tensor_info(const ov_preprocess_output_info_t*, ov_preprocess_output_tensor_info_t**);
void ov_preprocess_output_tensor_info_free(ov_preprocess_output_tensor_info_t*);
ov_status_e ov_preprocess_output_set_element_type(ov_preprocess_output_tensor_info_t*, ov_element_type_e);
ov_status_e ov_preprocess_input_info_get_model_info(const ov_preprocess_input_info_t*, ov_preprocess_input_model_info_t**);
void ov_preprocess_input_model_info_free(ov_preprocess_input_model_info_t*);
ov_status_e ov_preprocess_input_model_info_set_layout(ov_preprocess_input_model_info_t*, ov_layout_t*);
ov_status_e ov_preprocess_prepostprocessor_build(const ov_preprocess_prepostprocessor_t*, ov_model_t**);
ov_status_e ov_preprocess_preprocess_steps_pad(const ov_preprocess_preprocess_steps_t*, const int*, size_t, const int*, size_t, float, ov_padding_mode_e);
/* ov_property.h and those of plugins: variables. */
extern const char *ov_property_key_auto_batch_timeout;
extern const char *ov_property_key_available_devices;
extern const char *ov_property_key_cache_dir;
extern const char *ov_property_key_cache_encryption_callbacks;
extern const char *ov_property_key_cache_mode;
extern const char *ov_property_key_device_capabilities;
extern const char *ov_property_key_device_full_name;
extern const char *ov_property_key_device_priorities;
extern const char *ov_property_key_enable_mmap;
extern const char *ov_property_key_enable_profiling;
extern const char *ov_property_key_force_tbb_terminate;
extern const char *ov_property_key_hint_enable_cpu_pinning;
extern const char *ov_property_key_hint_enable_hyper_threading;
extern const char *ov_property_key_hint_execution_mode;
extern const char *ov_property_key_hint_inference_precision;
extern const char *ov_property_key_hint_model_priority;
extern const char *ov_property_key_hint_num_requests;
extern const char *ov_property_key_hint_performance_mode;
extern const char *ov_property_key_hint_scheduling_core_type;
extern const char *ov_property_key_inference_num_threads;
extern const char *ov_property_key_intel_auto_device_bind_buffer;
extern const char *ov_property_key_intel_auto_enable_runtime_fallback;
extern const char *ov_property_key_intel_auto_enable_startup_fallback;
extern const char *ov_property_key_intel_gpu_config_file;
extern const char *ov_property_key_intel_gpu_context_type;
extern const char *ov_property_key_intel_gpu_dev_object_handle;
extern const char *ov_property_key_intel_gpu_mem_handle;
extern const char *ov_property_key_intel_gpu_ocl_context;
extern const char *ov_property_key_intel_gpu_ocl_context_device_id;
extern const char *ov_property_key_intel_gpu_ocl_queue;
extern const char *ov_property_key_intel_gpu_shared_mem_type;
extern const char *ov_property_key_intel_gpu_tile_id;
extern const char *ov_property_key_intel_gpu_va_device;
extern const char *ov_property_key_intel_gpu_va_plane;
extern const char *ov_property_key_log_level;
extern const char *ov_property_key_max_batch_size;
extern const char *ov_property_key_model_name;
extern const char *ov_property_key_num_streams;
extern const char *ov_property_key_optimal_batch_size;
extern const char *ov_property_key_optimal_number_of_infer_requests;
extern const char *ov_property_key_range_for_async_infer_requests;
extern const char *ov_property_key_range_for_streams;
extern const char *ov_property_key_supported_properties;

#endif
