/* Every function, with NULL for every pointer: none crashes, and all that return a status fail. */
#include "check.h"

#define FAILS(call) CHECK((call) != OK)
#define RUNS(call) ((void)(call))

int main(void) {
    const ov_shape_t SHAPE = {0, NULL};
    const ov_dimension_t DIM = {0, 0};
    const ov_partial_shape_t PARTIAL = {{1, 1}, NULL};

    /* ov_common.h */
    RUNS(ov_get_error_info(0));

    /* ov_dimension.h */
    RUNS(ov_dimension_is_dynamic(DIM));

    /* ov_rank.h */
    RUNS(ov_rank_is_dynamic(DIM));

    /* ov_shape.h */
    FAILS(ov_shape_create(0, NULL, NULL));
    FAILS(ov_shape_free(NULL));

    /* ov_partial_shape.h */
    FAILS(ov_partial_shape_create(0, NULL, NULL));
    FAILS(ov_partial_shape_create_dynamic(DIM, NULL, NULL));
    FAILS(ov_partial_shape_create_static(0, NULL, NULL));
    RUNS(ov_partial_shape_free(NULL));
    FAILS(ov_partial_shape_to_shape(PARTIAL, NULL));
    FAILS(ov_shape_to_partial_shape(SHAPE, NULL));
    RUNS(ov_partial_shape_is_dynamic(PARTIAL));

    /* ov_layout.h */
    FAILS(ov_layout_create(NULL, NULL));
    RUNS(ov_layout_free(NULL));
    RUNS(ov_layout_to_string(NULL));

    /* ov_node.h */
    FAILS(ov_const_port_get_shape(NULL, NULL));
    FAILS(ov_port_get_shape(NULL, NULL));
    FAILS(ov_port_get_any_name(NULL, NULL));
    FAILS(ov_port_get_partial_shape(NULL, NULL));
    FAILS(ov_port_get_element_type(NULL, NULL));
    RUNS(ov_output_port_free(NULL));
    RUNS(ov_output_const_port_free(NULL));

    /* ov_property.h */

    /* ov_remote_context.h */
    FAILS(ov_remote_context_create_tensor(NULL, 0, SHAPE, 0, NULL, NULL, NULL));
    FAILS(ov_remote_context_create_tensor_props(NULL, 0, SHAPE, 0, NULL, NULL));
    FAILS(ov_remote_context_get_device_name(NULL, NULL));
    FAILS(ov_remote_context_get_params(NULL, NULL, NULL));
    FAILS(ov_remote_context_create_host_tensor(NULL, 0, SHAPE, NULL));
    RUNS(ov_remote_context_free(NULL));
    FAILS(ov_remote_tensor_get_params(NULL, NULL, NULL));
    FAILS(ov_remote_tensor_get_device_name(NULL, NULL));

    /* ov_tensor.h */
    FAILS(ov_tensor_create_from_host_ptr(0, SHAPE, NULL, NULL));
    FAILS(ov_tensor_create(0, SHAPE, NULL));
    FAILS(ov_tensor_set_shape(NULL, SHAPE));
    FAILS(ov_tensor_create_from_string_array(NULL, 0, SHAPE, NULL));
    FAILS(ov_tensor_get_shape(NULL, NULL));
    FAILS(ov_tensor_get_element_type(NULL, NULL));
    FAILS(ov_tensor_set_string_data(NULL, NULL, 0));
    FAILS(ov_tensor_get_size(NULL, NULL));
    FAILS(ov_tensor_get_byte_size(NULL, NULL));
    FAILS(ov_tensor_data(NULL, NULL));
    RUNS(ov_tensor_free(NULL));

    /* ov_model.h */
    RUNS(ov_model_free(NULL));
    FAILS(ov_model_const_input(NULL, NULL));
    FAILS(ov_model_const_input_by_name(NULL, NULL, NULL));
    FAILS(ov_model_const_input_by_index(NULL, 0, NULL));
    FAILS(ov_model_input(NULL, NULL));
    FAILS(ov_model_input_by_name(NULL, NULL, NULL));
    FAILS(ov_model_input_by_index(NULL, 0, NULL));
    FAILS(ov_model_const_output(NULL, NULL));
    FAILS(ov_model_const_output_by_index(NULL, 0, NULL));
    FAILS(ov_model_const_output_by_name(NULL, NULL, NULL));
    FAILS(ov_model_output(NULL, NULL));
    FAILS(ov_model_output_by_index(NULL, 0, NULL));
    FAILS(ov_model_output_by_name(NULL, NULL, NULL));
    FAILS(ov_model_inputs_size(NULL, NULL));
    FAILS(ov_model_outputs_size(NULL, NULL));
    RUNS(ov_model_is_dynamic(NULL));
    FAILS(ov_model_reshape(NULL, NULL, NULL, 0));
    FAILS(ov_model_reshape_input_by_name(NULL, NULL, PARTIAL));
    FAILS(ov_model_reshape_single_input(NULL, PARTIAL));
    FAILS(ov_model_reshape_by_port_indexes(NULL, NULL, NULL, 0));
    FAILS(ov_model_reshape_by_ports(NULL, NULL, NULL, 0));
    FAILS(ov_model_get_friendly_name(NULL, NULL));

    /* ov_infer_request.h */
    FAILS(ov_infer_request_set_tensor(NULL, NULL, NULL));
    FAILS(ov_infer_request_set_tensor_by_port(NULL, NULL, NULL));
    FAILS(ov_infer_request_set_tensor_by_const_port(NULL, NULL, NULL));
    FAILS(ov_infer_request_set_input_tensor_by_index(NULL, 0, NULL));
    FAILS(ov_infer_request_set_input_tensor(NULL, NULL));
    FAILS(ov_infer_request_set_output_tensor_by_index(NULL, 0, NULL));
    FAILS(ov_infer_request_set_output_tensor(NULL, NULL));
    FAILS(ov_infer_request_get_tensor(NULL, NULL, NULL));
    FAILS(ov_infer_request_get_tensor_by_const_port(NULL, NULL, NULL));
    FAILS(ov_infer_request_get_tensor_by_port(NULL, NULL, NULL));
    FAILS(ov_infer_request_get_input_tensor_by_index(NULL, 0, NULL));
    FAILS(ov_infer_request_get_input_tensor(NULL, NULL));
    FAILS(ov_infer_request_get_output_tensor_by_index(NULL, 0, NULL));
    FAILS(ov_infer_request_get_output_tensor(NULL, NULL));
    FAILS(ov_infer_request_infer(NULL));
    FAILS(ov_infer_request_cancel(NULL));
    FAILS(ov_infer_request_start_async(NULL));
    FAILS(ov_infer_request_wait(NULL));
    FAILS(ov_infer_request_wait_for(NULL, 0));
    FAILS(ov_infer_request_set_callback(NULL, NULL));
    RUNS(ov_infer_request_free(NULL));
    FAILS(ov_infer_request_get_profiling_info(NULL, NULL));
    RUNS(ov_profiling_info_list_free(NULL));

    /* ov_compiled_model.h */
    FAILS(ov_compiled_model_inputs_size(NULL, NULL));
    FAILS(ov_compiled_model_input(NULL, NULL));
    FAILS(ov_compiled_model_input_by_index(NULL, 0, NULL));
    FAILS(ov_compiled_model_input_by_name(NULL, NULL, NULL));
    FAILS(ov_compiled_model_outputs_size(NULL, NULL));
    FAILS(ov_compiled_model_output(NULL, NULL));
    FAILS(ov_compiled_model_output_by_index(NULL, 0, NULL));
    FAILS(ov_compiled_model_output_by_name(NULL, NULL, NULL));
    FAILS(ov_compiled_model_get_runtime_model(NULL, NULL));
    FAILS(ov_compiled_model_create_infer_request(NULL, NULL));
    FAILS(ov_compiled_model_set_property(NULL, NULL, NULL));
    FAILS(ov_compiled_model_set_properties(NULL, 0, NULL));
    FAILS(ov_compiled_model_get_property(NULL, NULL, NULL));
    FAILS(ov_compiled_model_export_model(NULL, NULL));
    RUNS(ov_compiled_model_free(NULL));
    FAILS(ov_compiled_model_get_context(NULL, NULL));

    /* ov_core.h */
    FAILS(ov_get_openvino_version(NULL));
    RUNS(ov_version_free(NULL));
    FAILS(ov_core_create(NULL));
    FAILS(ov_core_create_with_config(NULL, NULL));
    FAILS(ov_core_create_with_config_unicode(NULL, NULL));
    RUNS(ov_core_free(NULL));
    FAILS(ov_core_read_model(NULL, NULL, NULL, NULL));
    FAILS(ov_core_read_model_unicode(NULL, NULL, NULL, NULL));
    FAILS(ov_core_read_model_from_memory_buffer(NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_compile_model(NULL, NULL, NULL, 0, NULL, NULL, NULL));
    FAILS(ov_core_compile_model_from_file(NULL, NULL, NULL, 0, NULL, NULL, NULL));
    FAILS(ov_core_add_extension(NULL, NULL));
    FAILS(ov_core_compile_model_from_file_unicode(NULL, NULL, NULL, 0, NULL, NULL, NULL));
    FAILS(ov_core_set_property(NULL, NULL, NULL, NULL));
    FAILS(ov_core_set_properties(NULL, NULL, 0, NULL));
    FAILS(ov_core_compile_model_props(NULL, NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_compile_model_from_file_props(NULL, NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_compile_model_from_file_unicode_props(NULL, NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_get_property(NULL, NULL, NULL, NULL));
    FAILS(ov_core_get_available_devices(NULL, NULL));
    RUNS(ov_available_devices_free(NULL));
    FAILS(ov_core_import_model(NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_get_versions_by_device_name(NULL, NULL, NULL));
    RUNS(ov_core_versions_free(NULL));
    FAILS(ov_core_create_context(NULL, NULL, 0, NULL, NULL, NULL));
    FAILS(ov_core_create_context_props(NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_compile_model_with_context(NULL, NULL, NULL, 0, NULL, NULL, NULL));
    FAILS(ov_core_compile_model_with_context_props(NULL, NULL, NULL, 0, NULL, NULL));
    FAILS(ov_core_get_default_context(NULL, NULL, NULL));
    RUNS(ov_shutdown());

    /* ov_util.h */
    RUNS(ov_util_set_log_callback(NULL));
    RUNS(ov_util_reset_log_callback());


    /* ov_prepostprocess.h */
    FAILS(ov_preprocess_prepostprocessor_create(NULL, NULL));
    RUNS(ov_preprocess_prepostprocessor_free(NULL));
    FAILS(ov_preprocess_prepostprocessor_get_input_info(NULL, NULL));
    FAILS(ov_preprocess_prepostprocessor_get_input_info_by_name(NULL, NULL, NULL));
    FAILS(ov_preprocess_prepostprocessor_get_input_info_by_index(NULL, 0, NULL));
    RUNS(ov_preprocess_input_info_free(NULL));
    FAILS(ov_preprocess_input_info_get_tensor_info(NULL, NULL));
    RUNS(ov_preprocess_input_tensor_info_free(NULL));
    FAILS(ov_preprocess_input_info_get_preprocess_steps(NULL, NULL));
    RUNS(ov_preprocess_preprocess_steps_free(NULL));
    FAILS(ov_preprocess_preprocess_steps_resize(NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_scale(NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_scale_multi_channels(NULL, NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_mean(NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_mean_multi_channels(NULL, NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_crop(NULL, NULL, 0, NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_convert_layout(NULL, NULL));
    FAILS(ov_preprocess_preprocess_steps_reverse_channels(NULL));
    FAILS(ov_preprocess_input_tensor_info_set_element_type(NULL, 0));
    FAILS(ov_preprocess_input_tensor_info_set_color_format(NULL, 0));
    FAILS(ov_preprocess_input_tensor_info_set_color_format_with_subname(NULL, 0, 0, NULL, NULL));
    FAILS(ov_preprocess_input_tensor_info_set_color_format_with_subnames(NULL, 0, 0, NULL));
    FAILS(ov_preprocess_input_tensor_info_set_spatial_static_shape(NULL, 0, 0));
    FAILS(ov_preprocess_input_tensor_info_set_memory_type(NULL, NULL));
    FAILS(ov_preprocess_preprocess_steps_convert_element_type(NULL, 0));
    FAILS(ov_preprocess_preprocess_steps_convert_color(NULL, 0));
    FAILS(ov_preprocess_input_tensor_info_set_from(NULL, NULL));
    FAILS(ov_preprocess_input_tensor_info_set_layout(NULL, NULL));
    FAILS(ov_preprocess_prepostprocessor_get_output_info(NULL, NULL));
    FAILS(ov_preprocess_prepostprocessor_get_output_info_by_index(NULL, 0, NULL));
    FAILS(ov_preprocess_prepostprocessor_get_output_info_by_name(NULL, NULL, NULL));
    RUNS(ov_preprocess_output_info_free(NULL));
    FAILS(ov_preprocess_output_info_get_tensor_info(NULL, NULL));
    RUNS(ov_preprocess_output_tensor_info_free(NULL));
    FAILS(ov_preprocess_output_set_element_type(NULL, 0));
    FAILS(ov_preprocess_input_info_get_model_info(NULL, NULL));
    RUNS(ov_preprocess_input_model_info_free(NULL));
    FAILS(ov_preprocess_input_model_info_set_layout(NULL, NULL));
    FAILS(ov_preprocess_prepostprocessor_build(NULL, NULL));
    FAILS(ov_preprocess_preprocess_steps_pad(NULL, NULL, 0, NULL, 0, 0, 0));

    CHECK(ov_partial_shape_to_string(PARTIAL) == NULL);
    const char *message = ov_get_last_err_msg();
    CHECK(strcmp(message, "`dims` is NULL") == 0);
    ov_free(message);
    ov_free(NULL);
    return 0;
}
