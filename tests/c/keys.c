/* The keys of properties, which are variables. */
#include "check.h"

int main(void) {
    CHECK(strcmp(ov_property_key_auto_batch_timeout, "AUTO_BATCH_TIMEOUT") == 0);
    CHECK(strcmp(ov_property_key_available_devices, "AVAILABLE_DEVICES") == 0);
    CHECK(strcmp(ov_property_key_cache_dir, "CACHE_DIR") == 0);
    CHECK(strcmp(ov_property_key_cache_encryption_callbacks, "CACHE_ENCRYPTION_CALLBACKS") == 0);
    CHECK(strcmp(ov_property_key_cache_mode, "CACHE_MODE") == 0);
    CHECK(strcmp(ov_property_key_device_capabilities, "OPTIMIZATION_CAPABILITIES") == 0);
    CHECK(strcmp(ov_property_key_device_full_name, "FULL_DEVICE_NAME") == 0);
    CHECK(strcmp(ov_property_key_device_priorities, "MULTI_DEVICE_PRIORITIES") == 0);
    CHECK(strcmp(ov_property_key_enable_mmap, "ENABLE_MMAP") == 0);
    CHECK(strcmp(ov_property_key_enable_profiling, "PERF_COUNT") == 0);
    CHECK(strcmp(ov_property_key_force_tbb_terminate, "FORCE_TBB_TERMINATE") == 0);
    CHECK(strcmp(ov_property_key_hint_enable_cpu_pinning, "ENABLE_CPU_PINNING") == 0);
    CHECK(strcmp(ov_property_key_hint_enable_hyper_threading, "ENABLE_HYPER_THREADING") == 0);
    CHECK(strcmp(ov_property_key_hint_execution_mode, "EXECUTION_MODE_HINT") == 0);
    CHECK(strcmp(ov_property_key_hint_inference_precision, "INFERENCE_PRECISION_HINT") == 0);
    CHECK(strcmp(ov_property_key_hint_model_priority, "MODEL_PRIORITY") == 0);
    CHECK(strcmp(ov_property_key_hint_num_requests, "PERFORMANCE_HINT_NUM_REQUESTS") == 0);
    CHECK(strcmp(ov_property_key_hint_performance_mode, "PERFORMANCE_HINT") == 0);
    CHECK(strcmp(ov_property_key_hint_scheduling_core_type, "SCHEDULING_CORE_TYPE") == 0);
    CHECK(strcmp(ov_property_key_inference_num_threads, "INFERENCE_NUM_THREADS") == 0);
    CHECK(strcmp(ov_property_key_intel_auto_device_bind_buffer, "DEVICE_BIND_BUFFER") == 0);
    CHECK(strcmp(ov_property_key_intel_auto_enable_runtime_fallback, "ENABLE_RUNTIME_FALLBACK") == 0);
    CHECK(strcmp(ov_property_key_intel_auto_enable_startup_fallback, "ENABLE_STARTUP_FALLBACK") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_config_file, "CONFIG_FILE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_context_type, "CONTEXT_TYPE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_dev_object_handle, "DEV_OBJECT_HANDLE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_mem_handle, "MEM_HANDLE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_ocl_context, "OCL_CONTEXT") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_ocl_context_device_id, "OCL_CONTEXT_DEVICE_ID") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_ocl_queue, "OCL_QUEUE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_shared_mem_type, "SHARED_MEM_TYPE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_tile_id, "TILE_ID") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_va_device, "VA_DEVICE") == 0);
    CHECK(strcmp(ov_property_key_intel_gpu_va_plane, "VA_PLANE") == 0);
    CHECK(strcmp(ov_property_key_log_level, "LOG_LEVEL") == 0);
    CHECK(strcmp(ov_property_key_max_batch_size, "MAX_BATCH_SIZE") == 0);
    CHECK(strcmp(ov_property_key_model_name, "NETWORK_NAME") == 0);
    CHECK(strcmp(ov_property_key_num_streams, "NUM_STREAMS") == 0);
    CHECK(strcmp(ov_property_key_optimal_batch_size, "OPTIMAL_BATCH_SIZE") == 0);
    CHECK(strcmp(ov_property_key_optimal_number_of_infer_requests, "OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 0);
    CHECK(strcmp(ov_property_key_range_for_async_infer_requests, "RANGE_FOR_ASYNC_INFER_REQUESTS") == 0);
    CHECK(strcmp(ov_property_key_range_for_streams, "RANGE_FOR_STREAMS") == 0);
    CHECK(strcmp(ov_property_key_supported_properties, "SUPPORTED_PROPERTIES") == 0);
    return 0;
}
