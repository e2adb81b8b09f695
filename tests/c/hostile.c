/* Calls that no sensible program makes: they fail, and do nothing worse. */
#include "check.h"

/* The same numbers in each run. */
static uint64_t seed = 1;
static uint64_t number(uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static int64_t extent(void) {
    static const int64_t some[] = {0, 1, 2, 3, 7, -1, INT64_MIN, INT64_MAX, (int64_t)1 << 62};
    return some[number(number(3) ? 5 : sizeof some / sizeof *some)];
}

#define CALL(call) ((void)(call))

/* Handles are freed in any order. */
static void any_order(ov_core_t *core) {
    enum { COUNT = 13 };
    for (int round = 0; round < 20; round++) {
        ov_core_t *own = new_core();
        ov_model_t *model = read_text(own, ADD("2"));
        ov_compiled_model_t *compiled = NULL;
        WORKS(ov_core_compile_model(own, model, "CPU", 0, &compiled));
        ov_infer_request_t *request = new_request(compiled);
        ov_tensor_t *input = NULL, *output = NULL;
        ov_output_const_port_t *port = NULL, *of_compiled = NULL;
        ov_preprocess_prepostprocessor_t *processor = NULL;
        ov_preprocess_input_info_t *info = NULL;
        ov_preprocess_input_tensor_info_t *of_tensor = NULL;
        ov_preprocess_preprocess_steps_t *steps = NULL;
        ov_layout_t *layout = NULL;
        WORKS(ov_infer_request_get_tensor(request, "a", &input));
        WORKS(ov_infer_request_get_output_tensor(request, &output));
        WORKS(ov_model_const_input_by_index(model, 1, &port));
        WORKS(ov_compiled_model_output(compiled, &of_compiled));
        WORKS(ov_preprocess_prepostprocessor_create(model, &processor));
        WORKS(ov_preprocess_prepostprocessor_get_input_info_by_index(processor, 0, &info));
        WORKS(ov_preprocess_input_info_get_tensor_info(info, &of_tensor));
        WORKS(ov_preprocess_input_info_get_preprocess_steps(info, &steps));
        WORKS(ov_layout_create("N", &layout));
        int order[COUNT];
        for (int k = 0; k < COUNT; k++) {
            int other = (int)number((uint64_t)k + 1);
            order[k] = order[other];
            order[other] = k;
        }
        for (int k = 0; k < COUNT; k++) {
            switch (order[k]) {
            case 0: ov_core_free(own); break;
            case 1: ov_model_free(model); break;
            case 2: ov_compiled_model_free(compiled); break;
            case 3:
                WORKS(ov_infer_request_infer(request));
                if (round % 2) WORKS(ov_infer_request_start_async(request));
                ov_infer_request_free(request);
                break;
            case 4: ov_tensor_free(input); break;
            case 5:
                floats_of(output, 2)[1] = 3;
                ov_tensor_free(output);
                break;
            case 6: ov_output_const_port_free(port); break;
            case 7: ov_output_const_port_free(of_compiled); break;
            case 8: ov_preprocess_prepostprocessor_free(processor); break;
            case 9: ov_preprocess_input_info_free(info); break;
            case 10:
                WORKS(ov_preprocess_input_tensor_info_set_element_type(of_tensor, U8));
                ov_preprocess_input_tensor_info_free(of_tensor);
                break;
            case 11:
                WORKS(ov_preprocess_preprocess_steps_mean(steps, 1));
                ov_preprocess_preprocess_steps_free(steps);
                break;
            case 12: ov_layout_free(layout); break;
            }
        }
    }
    (void)core;
}

/* Shapes of any extents; types and numbers that there are not. */
static void shapes(ov_core_t *core) {
    ov_model_t *model = read_text(core, RELU("?,?", "f32"));
    ov_output_port_t *port = NULL;
    WORKS(ov_model_input(model, &port));
    char memory[8] = {0};
    for (int k = 0; k < 1000; k++) {
        int64_t dims[4];
        ov_dimension_t ranges[4];
        for (int j = 0; j < 4; j++) {
            dims[j] = extent();
            ranges[j] = (ov_dimension_t){extent(), extent()};
        }
        ov_element_type_e type = (ov_element_type_e)number(40);
        for (int j = 0; j < 4; j++) {
            if (type == STRING && dims[j] > 7) dims[j] = 7; /* Each takes memory. */
        }
        int64_t rank = number(9) ? (int64_t)number(4) : -1;
        ov_shape_t shape = {rank, dims}, found;
        ov_tensor_t *tensor = NULL;
        if (ov_tensor_create(type, shape, &tensor) == OK) {
            ov_shape_t other = {2, dims + 1};
            size_t size = 0;
            CALL(ov_tensor_set_shape(tensor, other));
            WORKS(ov_tensor_get_shape(tensor, &found));
            ov_shape_free(&found);
            WORKS(ov_tensor_get_byte_size(tensor, &size));
            if (type != STRING && size > 0) {
                void *data = NULL;
                WORKS(ov_tensor_data(tensor, &data));
                ((char *)data)[0] = ((char *)data)[size - 1];
            }
            ov_tensor_free(tensor);
        }
        if (ov_tensor_create_from_host_ptr(type, shape, memory, &tensor) == OK) {
            CALL(ov_tensor_set_shape(tensor, shape));
            ov_tensor_free(tensor);
        }
        const char *texts[] = {"a", "b", "c"};
        if (ov_tensor_create_from_string_array(texts, number(4), shape, &tensor) == OK) ov_tensor_free(tensor);
        ov_partial_shape_t partial;
        if (ov_partial_shape_create(rank, ranges, &partial) == OK) {
            CALL(ov_model_reshape_single_input(model, partial));
            CALL(ov_model_reshape_input_by_name(model, "x", partial));
            size_t index = number(3);
            const ov_output_port_t *ports[] = {port};
            const char *names[] = {number(2) ? "x" : "\xff"};
            CALL(ov_model_reshape_by_port_indexes(model, &index, &partial, 1));
            CALL(ov_model_reshape_by_ports(model, ports, &partial, 1));
            CALL(ov_model_reshape(model, names, &partial, 1));
            if (ov_partial_shape_to_shape(partial, &found) == OK) ov_shape_free(&found);
            ov_free(ov_partial_shape_to_string(partial));
            ov_partial_shape_free(&partial);
        }
        if (ov_shape_to_partial_shape(shape, &partial) == OK) ov_partial_shape_free(&partial);
        CALL(ov_get_error_info((ov_status_e)((int)number(60) - 40)));
    }
    ov_output_port_free(port);
    ov_model_free(model);
}

/* Texts that are no UTF-8, empty or long. */
static void texts(ov_core_t *core) {
    char *large = malloc(100001);
    memset(large, '[', 100000);
    large[100000] = 0;
    const char *bad[] = {"\xff\xfe", "", "\x80", large, "%s%n", "../..", ";\n"};
    ov_model_t *model = read_text(core, ADD("2")), *other = NULL;
    ov_compiled_model_t *compiled = compile_text(core, ADD("2")), *unused = NULL;
    ov_infer_request_t *request = new_request(compiled);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char *value = NULL;
        ov_layout_t *layout = NULL;
        ov_output_const_port_t *port = NULL;
        ov_tensor_t *tensor = NULL;
        ov_preprocess_prepostprocessor_t *processor = NULL;
        ov_preprocess_input_info_t *info = NULL;
        ov_core_version_list_t versions;
        ov_core_t *configured = NULL;
        CHECK(ov_core_read_model(core, bad[k], bad[k], &other) != OK);
        CHECK(ov_core_read_model(core, bad[k], NULL, &other) != OK);
        CHECK(ov_core_import_model(core, bad[k], strlen(bad[k]), "CPU", &unused) != OK);
        CHECK(ov_core_get_property(core, "CPU", bad[k], &value) != OK);
        CHECK(ov_core_set_property(core, "CPU", bad[k], bad[k]) != OK);
        CHECK(ov_core_set_property(core, "CPU", "NUM_STREAMS", bad[k]) != OK);
        if (*bad[k]) {
            CHECK(ov_core_compile_model(core, model, bad[k], 0, &unused) != OK);
            CHECK(ov_core_get_property(core, bad[k], "NUM_STREAMS", &value) != OK);
            CHECK(ov_layout_create(bad[k], &layout) != OK);
            CHECK(ov_core_get_versions_by_device_name(core, bad[k], &versions) != OK);
            CHECK(ov_core_create_with_config(bad[k], &configured) != OK);
            CHECK(ov_compiled_model_export_model(compiled, "/dev/null/none") != OK);
        }
        CHECK(ov_core_compile_model(core, model, "CPU", 2, &unused, bad[k], bad[k]) != OK);
        CHECK(ov_core_compile_model(core, model, "CPU", SIZE_MAX, &unused) != OK);
        CHECK(ov_core_compile_model(core, model, "CPU", 26, &unused) != OK);
        CHECK(ov_core_compile_model(core, model, "CPU", 3, &unused, bad[k], bad[k], bad[k]) != OK);
        CHECK(ov_compiled_model_get_property(compiled, bad[k], &value) != OK);
        CHECK(ov_model_const_input_by_name(model, bad[k], &port) != OK);
        CHECK(ov_compiled_model_output_by_name(compiled, bad[k], &port) != OK);
        CHECK(ov_infer_request_get_tensor(request, bad[k], &tensor) != OK);
        WORKS(ov_preprocess_prepostprocessor_create(model, &processor));
        CHECK(ov_preprocess_prepostprocessor_get_input_info_by_name(processor, bad[k], &info) != OK);
        ov_preprocess_prepostprocessor_free(processor);
    }
    CHECK(ov_model_const_input_by_index(model, SIZE_MAX, NULL) != OK);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    free(large);
}

/* Models that end early or have bytes changed; exported ones, too. */
static void broken_models(ov_core_t *core, const char *folder) {
    char text[] = ADD_WEIGHTS, changed[sizeof text];
    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    float weights[] = {1, 2};
    int64_t two = 2;
    ov_tensor_t *tensor = floats(1, &two, weights);
    for (size_t k = 0; k < sizeof text - 1; k += 11) {
        CHECK(ov_core_read_model_from_memory_buffer(core, text, k, tensor, &model) != OK);
        memcpy(changed, text, sizeof text);
        changed[number(sizeof text - 1)] = (char)number(256);
        changed[number(sizeof text - 1)] = (char)number(256);
        if (ov_core_read_model_from_memory_buffer(core, changed, sizeof text - 1, tensor, &model) == OK) {
            if (ov_core_compile_model(core, model, "CPU", 0, &compiled) == OK) ov_compiled_model_free(compiled);
            ov_model_free(model);
        }
    }
    WORKS(ov_core_read_model_from_memory_buffer(core, text, strlen(text), tensor, &model));
    ov_tensor_free(tensor);
    WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
    ov_model_free(model);
    char path[4096];
    snprintf(path, sizeof path, "%s/exported", folder);
    WORKS(ov_compiled_model_export_model(compiled, path));
    ov_compiled_model_free(compiled);
    FILE *file = fopen(path, "rb");
    CHECK(file);
    static char bytes[1 << 16];
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(count > 0 && count < sizeof bytes);
    for (int k = 0; k < 60; k++) {
        size_t cut = number(count);
        if (ov_core_import_model(core, bytes, cut, "CPU", &compiled) == OK) ov_compiled_model_free(compiled);
        size_t at = number(count);
        char kept = bytes[at];
        bytes[at] = (char)number(256);
        if (ov_core_import_model(core, bytes, count, "CPU", &compiled) == OK) ov_compiled_model_free(compiled);
        bytes[at] = kept;
    }
}

/* Tensors of all kinds are given to a request, reshaped and freed in between, and it runs. */
static void any_calls(ov_core_t *core) {
    enum { COUNT = 6, EXTENT = 5 };
    ov_compiled_model_t *compiled = compile_text(core, ADD("?"));
    ov_infer_request_t *request = new_request(compiled);
    ov_compiled_model_free(compiled);
    ov_tensor_t *tensors[COUNT] = {NULL};
    static float memory[COUNT * EXTENT];
    for (int k = 0; k < 5000; k++) {
        ov_tensor_t **one = &tensors[number(COUNT)];
        int64_t dim = (int64_t)number(EXTENT);
        ov_shape_t shape = {1, &dim};
        const char *name = number(2) ? "a" : "b";
        switch (number(9)) {
        case 0:
            ov_tensor_free(*one);
            *one = NULL;
            CALL(ov_tensor_create(number(8) ? F32 : I32, shape, one));
            break;
        case 1:
            ov_tensor_free(*one);
            *one = NULL;
            CALL(ov_tensor_create_from_host_ptr(F32, shape, memory + number((COUNT - 1) * EXTENT), one));
            break;
        case 2: CALL(ov_tensor_set_shape(*one, shape)); break;
        case 3: CALL(ov_infer_request_set_tensor(request, name, *one)); break;
        case 4: CALL(ov_infer_request_set_output_tensor(request, *one)); break;
        case 5:
            ov_tensor_free(*one);
            *one = NULL;
            CALL(ov_infer_request_get_tensor(request, number(3) ? name : "sum", one));
            break;
        case 6: CALL(ov_infer_request_infer(request)); break;
        case 7:
            CALL(ov_infer_request_start_async(request));
            if (number(2)) CALL(ov_infer_request_cancel(request));
            CALL(ov_infer_request_wait(request));
            break;
        case 8: CALL(ov_infer_request_wait_for(request, (int64_t)number(2))); break;
        }
    }
    for (int k = 0; k < COUNT; k++) ov_tensor_free(tensors[k]);
    ov_infer_request_free(request);
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    ov_core_t *core = new_core();
    any_order(core);
    shapes(core);
    texts(core);
    broken_models(core, arguments[1]);
    any_calls(core);
    ov_core_free(core);
    return 0;
}
