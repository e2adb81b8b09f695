/* Devices, properties, files, and what is refused. */
#include "check.h"

static char *last_log;

static void keep_log(const char *message) {
    free(last_log);
    last_log = strdup(message);
}

static void version(ov_core_t *core) {
    ov_version_t version;
    WORKS(ov_get_openvino_version(&version));
    CHECK(strncmp(version.buildNumber, "2026.4.1-", 9) == 0 && strstr(version.buildNumber, "-vinelift"));
    CHECK(strlen(version.description) > 0);
    ov_version_free(&version);
    CHECK(version.buildNumber == NULL);
    ov_version_free(&version);

    ov_core_version_list_t versions;
    WORKS(ov_core_get_versions_by_device_name(core, "CPU", &versions));
    CHECK(versions.size == 1 && strcmp(versions.versions[0].device_name, "CPU") == 0);
    ov_core_versions_free(&versions);
    ov_core_versions_free(&versions);
    FAILS_WITH(NOT_FOUND, "no device 'NPU'", ov_core_get_versions_by_device_name(core, "NPU", &versions));

    ov_available_devices_t devices;
    WORKS(ov_core_get_available_devices(core, &devices));
    CHECK(devices.size == 1 && strcmp(devices.devices[0], "CPU") == 0);
    ov_available_devices_free(&devices);
    ov_available_devices_free(&devices);
}

static void expect_property(ov_core_t *core, const char *key, const char *expected) {
    char *value = NULL;
    WORKS(ov_core_get_property(core, "CPU", key, &value));
    if (strcmp(value, expected) != 0) {
        fprintf(stderr, "%s is %s\n", key, value);
        exit(1);
    }
    ov_free(value);
}

static void properties(ov_core_t *core) {
    char *value = NULL;
    const char *readable[] = {
        ov_property_key_supported_properties, ov_property_key_available_devices,
        ov_property_key_range_for_streams,    ov_property_key_range_for_async_infer_requests,
        ov_property_key_device_full_name,     ov_property_key_device_capabilities,
        ov_property_key_num_streams,          ov_property_key_inference_num_threads,
        ov_property_key_hint_performance_mode};
    for (size_t k = 0; k < sizeof readable / sizeof *readable; k++) {
        WORKS(ov_core_get_property(core, "AUTO", readable[k], &value));
        ov_free(value);
    }
    expect_property(core, ov_property_key_enable_profiling, "NO");
    WORKS(ov_core_set_property(core, "CPU", ov_property_key_enable_profiling, "TRUE"));
    expect_property(core, ov_property_key_enable_profiling, "YES");
    ov_property_t some[] = {{ov_property_key_enable_profiling, "NO"},
                            {ov_property_key_num_streams, "3"}};
    WORKS(ov_core_set_properties(core, NULL, 2, some));
    expect_property(core, ov_property_key_enable_profiling, "NO");
    expect_property(core, ov_property_key_num_streams, "3");

    /* All or none. */
    ov_property_t half[] = {{ov_property_key_num_streams, "5"}, {"SPEED", "1"}};
    FAILS_WITH(NOT_FOUND, "no property SPEED", ov_core_set_properties(core, "CPU", 2, half));
    expect_property(core, ov_property_key_num_streams, "3");
    FAILS_WITH(PARAMETER_MISMATCH, "must be YES or NO",
               ov_core_set_property(core, "CPU", ov_property_key_enable_profiling, "maybe"));
    FAILS_WITH(PARAMETER_MISMATCH, "only be read",
               ov_core_set_property(core, "CPU", ov_property_key_device_full_name, "x"));
    FAILS_WITH(NOT_FOUND, "no property", ov_core_get_property(core, "CPU", "SPEED", &value));
    FAILS_WITH(NOT_FOUND, "no property", ov_core_get_property(core, "CPU", ov_property_key_enable_mmap, &value));
    WORKS(ov_core_get_property(core, "AUTO", ov_property_key_enable_mmap, &value));
    ov_free(value);
    FAILS_WITH(NOT_FOUND, "no device 'GPU'", ov_core_get_property(core, "GPU", "NUM_STREAMS", &value));
    FAILS_WITH(NOT_FOUND, "no device 'GPU'", ov_core_set_property(core, "GPU", "NUM_STREAMS", "1"));
    FAILS_WITH(INVALID_C_PARAM, "`property_value` is NULL",
               ov_core_set_property(core, "CPU", ov_property_key_num_streams, NULL));
    void *callbacks[2] = {NULL, NULL};
    FAILS_WITH(NOT_IMPLEMENTED, "nothing is encrypted",
               ov_core_set_property(core, "CPU", ov_property_key_cache_encryption_callbacks, callbacks));

    /* What is taken and has no effect is told. */
    ov_util_set_log_callback(keep_log);
    WORKS(ov_core_set_property(core, NULL, ov_property_key_cache_dir, "/tmp"));
    CHECK(last_log && strstr(last_log, "CACHE_DIR is kept as `/tmp` and has no effect"));
    expect_property(core, ov_property_key_cache_dir, "/tmp");
    ov_util_reset_log_callback();
    free(last_log);
    last_log = NULL;
    WORKS(ov_core_set_property(core, NULL, ov_property_key_cache_dir, "/var"));
    CHECK(last_log == NULL);
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static void expect_sum(ov_compiled_model_t *compiled, float first) {
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *tensor = NULL;
    WORKS(ov_infer_request_get_input_tensor(request, &tensor));
    memcpy(floats_of(tensor, 2), (float[]){1, 2}, 8);
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_output_tensor(request, &tensor));
    CHECK(floats_of(tensor, 2)[0] == first);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
}

static void files(ov_core_t *core, const char *folder) {
    char xml[512], bin[512], other[512], blob[512];
    wchar_t wide[512], wide_bin[512];
    snprintf(xml, sizeof xml, "%s/model.xml", folder);
    snprintf(bin, sizeof bin, "%s/model.bin", folder);
    snprintf(other, sizeof other, "%s/w\xc3\xa4ights", folder);
    snprintf(blob, sizeof blob, "%s/model.blob", folder);
    const float beside[2] = {10, 20}, apart[2] = {100, 200};
    write_file(xml, ADD_WEIGHTS, strlen(ADD_WEIGHTS));
    write_file(bin, beside, 8);
    write_file(other, apart, 8);
    for (size_t k = 0; k <= strlen(xml); k++) wide[k] = (wchar_t)xml[k];
    swprintf(wide_bin, 512, L"%s/w\u00e4ights", folder);

    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    const char *weights[] = {NULL, "", bin, other};
    for (int k = 0; k < 8; k++) {
        if (k == 4) WORKS(ov_core_set_property(core, NULL, ov_property_key_enable_mmap, "NO"));
        WORKS(ov_core_read_model(core, xml, weights[k % 4], &model));
        WORKS(ov_core_compile_model(core, model, NULL, 0, &compiled));
        expect_sum(compiled, k % 4 == 3 ? 101 : 11);
        ov_compiled_model_free(compiled);
        ov_model_free(model);
    }
    WORKS(ov_core_read_model_unicode(core, wide, NULL, &model));
    ov_model_free(model);
    WORKS(ov_core_read_model_unicode(core, wide, wide_bin, &model));
    ov_model_free(model);

    /* Compiled from a file, with properties in both ways. */
    ov_property_t property[] = {{ov_property_key_enable_profiling, "YES"}};
    char *value = NULL;
    ov_compiled_model_t *all[6];
    WORKS(ov_core_compile_model_from_file(core, xml, "CPU", 2, &all[0], ov_property_key_enable_profiling, "YES"));
    WORKS(ov_core_compile_model_from_file_props(core, xml, "AUTO", 1, property, &all[1]));
    WORKS(ov_core_compile_model_from_file_unicode(core, wide, "VINELIFT", 4, &all[2], "NUM_STREAMS", "7",
                                                  ov_property_key_enable_profiling, "YES"));
    WORKS(ov_core_compile_model_from_file_unicode_props(core, wide, NULL, 1, property, &all[3]));
    WORKS(ov_core_read_model(core, xml, NULL, &model));
    WORKS(ov_core_compile_model(core, model, "", 8, &all[4], "NUM_STREAMS", "7", "PERFORMANCE_HINT", "THROUGHPUT",
                                "MODEL_PRIORITY", "HIGH", ov_property_key_enable_profiling, "YES"));
    WORKS(ov_core_compile_model_props(core, model, "CPU", 1, property, &all[5]));
    for (int k = 0; k < 6; k++) {
        WORKS(ov_compiled_model_get_property(all[k], ov_property_key_enable_profiling, &value));
        CHECK(strcmp(value, "YES") == 0);
        ov_free(value);
        expect_sum(all[k], 11);
    }
    WORKS(ov_compiled_model_get_property(all[4], "MODEL_PRIORITY", &value));
    CHECK(strcmp(value, "HIGH") == 0);
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[4], ov_property_key_model_name, &value));
    CHECK(strcmp(value, "weighted") == 0);
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[4], ov_property_key_optimal_number_of_infer_requests, &value));
    CHECK(strcmp(value, "7") == 0); /* As many as there are streams. */
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[5], ov_property_key_inference_num_threads, &value));
    CHECK(atoi(value) > 0);
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[4], "VINELIFT_COMPILATIONS", &value));
    CHECK(atoi(value) == 1); /* For the one shape that it has. */
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[4], "VINELIFT_CODE_BYTES", &value));
    CHECK(atoi(value) > 0);
    ov_free(value);
    WORKS(ov_compiled_model_get_property(all[4], "VINELIFT_PACKED_BYTES", &value));
    CHECK(strcmp(value, "0") == 0); /* It multiplies by no weights. */
    ov_free(value);
    FAILS_WITH(NOT_FOUND, "no property", ov_compiled_model_get_property(all[4], "SPEED", &value));
    FAILS_WITH(NOT_IMPLEMENTED, "cannot be changed",
               ov_compiled_model_set_property(all[4], "NUM_STREAMS", "2"));
    FAILS_WITH(NOT_FOUND, "no property SPEED", ov_compiled_model_set_property(all[4], "SPEED", "2"));
    STATUS(NOT_IMPLEMENTED, ov_compiled_model_set_properties(all[4], 1, property));
    WORKS(ov_compiled_model_set_properties(all[4], 0, NULL));

    /* Out, and in again. */
    WORKS(ov_compiled_model_export_model(all[0], blob));
    FAILS_WITH(GENERAL_ERROR, "/nowhere/", ov_compiled_model_export_model(all[0], "/nowhere/model"));
    FILE *file = fopen(blob, "rb");
    char content[8192];
    size_t size = fread(content, 1, sizeof content, file);
    fclose(file);
    WORKS(ov_core_import_model(core, content, size, "CPU", &compiled));
    expect_sum(compiled, 11);
    ov_compiled_model_free(compiled);
    FAILS_WITH(GENERAL_ERROR, "ends early", ov_core_import_model(core, content, 20, "CPU", &compiled));
    FAILS_WITH(GENERAL_ERROR, "Vinelift exported", ov_core_import_model(core, "abc", 3, "CPU", &compiled));
    FAILS_WITH(GENERAL_ERROR, "Vinelift exported", ov_core_import_model(core, content, 0, "CPU", &compiled));
    FAILS_WITH(NOT_FOUND, "no device", ov_core_import_model(core, content, size, "GPU", &compiled));
    content[16] = (char)0xff;
    STATUS(GENERAL_ERROR, ov_core_import_model(core, content, size, "CPU", &compiled));

    for (int k = 0; k < 6; k++) ov_compiled_model_free(all[k]);
    ov_model_free(model);
    FAILS_WITH(INVALID_C_PARAM, "3 variable arguments",
               ov_core_compile_model_from_file(core, xml, "CPU", 3, &compiled, "A", "B", "C"));
    FAILS_WITH(NOT_IMPLEMENTED, "at most 24",
               ov_core_compile_model_from_file(core, xml, "CPU", 26, &compiled, "A", "B"));
    FAILS_WITH(GENERAL_ERROR, "none.xml", ov_core_read_model(core, "/none.xml", NULL, &model));
    FAILS_WITH(GENERAL_ERROR, "none.bin", ov_core_read_model(core, xml, "/none.bin", &model));
    FAILS_WITH(NOT_IMPLEMENTED, "only models in IR format", ov_core_read_model(core, "/m.onnx", NULL, &model));
    FAILS_WITH(GENERAL_ERROR, "none.xml", ov_core_compile_model_from_file(core, "/none.xml", "CPU", 0, &compiled));
}

static void what_is_refused(ov_core_t *core) {
    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    ov_remote_context_t *context = NULL;
    ov_core_t *other = NULL;
    const char *bad = "<net";
    FAILS_WITH(GENERAL_ERROR, "model:1:1", ov_core_read_model_from_memory_buffer(core, bad, 4, NULL, &model));
    STATUS(INVALID_C_PARAM, ov_core_read_model_from_memory_buffer(core, bad, 0, NULL, &model));
    model = read_text(core, NET("m", INPUT(0, "x", "2", "f32") LAYER(1, "odd", "Frobnicate", "",
                                "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")
                                OUTPUT(2, "r"), EDGE_(0, 0, 1, 0) EDGE_(1, 1, 2, 0)));
    FAILS_WITH(GENERAL_ERROR, "'odd' (Frobnicate, opset1): unsupported operator",
               ov_core_compile_model(core, model, "CPU", 0, &compiled));
    FAILS_WITH(NOT_FOUND, "no device 'GPU.0'", ov_core_compile_model(core, model, "GPU.0", 0, &compiled));
    FAILS_WITH(NOT_IMPLEMENTED, "extensions", ov_core_add_extension(core, "libext.so"));
    FAILS_WITH(NOT_IMPLEMENTED, "no remote contexts", ov_core_get_default_context(core, "CPU", &context));
    FAILS_WITH(NOT_IMPLEMENTED, "no remote contexts", ov_core_create_context(core, "CPU", 2, &context, "A", "B"));
    FAILS_WITH(NOT_FOUND, "no device 'GPU'", ov_core_create_context_props(core, "GPU", 0, NULL, &context));
    FAILS_WITH(NOT_IMPLEMENTED, "plugins", ov_core_create_with_config("plugins.xml", &other));
    WORKS(ov_core_create_with_config("", &other));
    ov_core_free(other);
    WORKS(ov_core_create_with_config_unicode(L"", &other));
    ov_core_free(other);
    ov_model_free(model);

    ov_tensor_t *tensor = floats(1, (int64_t[]){1}, (float[]){1});
    char *text = NULL;
    size_t size = 0;
    STATUS(NOT_IMPLEMENTED, ov_remote_tensor_get_device_name(tensor, &text));
    STATUS(NOT_IMPLEMENTED, ov_remote_tensor_get_params(tensor, &size, &text));
    ov_tensor_free(tensor);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    ov_core_t *core = new_core();
    version(core);
    properties(core);
    files(core, arguments[1]);
    what_is_refused(core);
    ov_core_free(core);
    ov_shutdown();
    return 0;
}
