/* Tensors and runs. */
#include "check.h"

static const int64_t TWO_BY_TWO[] = {2, 2};

static void tensors(void) {
    ov_shape_t shape, found;
    ov_tensor_t *tensor = NULL;
    ov_element_type_e type = DYNAMIC;
    size_t size = 0;
    void *data = NULL;
    int64_t dims[] = {2, 3};
    WORKS(ov_shape_create(2, dims, &shape));
    WORKS(ov_tensor_create(I64, shape, &tensor));
    WORKS(ov_tensor_get_element_type(tensor, &type));
    CHECK(type == I64);
    WORKS(ov_tensor_get_shape(tensor, &found));
    CHECK(found.rank == 2 && found.dims[0] == 2 && found.dims[1] == 3);
    ov_shape_free(&found);
    WORKS(ov_tensor_get_size(tensor, &size));
    CHECK(size == 6);
    WORKS(ov_tensor_get_byte_size(tensor, &size));
    CHECK(size == 48);
    WORKS(ov_tensor_data(tensor, &data));
    CHECK(data && (uintptr_t)data % 64 == 0 && ((int64_t *)data)[5] == 0);
    shape.dims[0] = 100;
    WORKS(ov_tensor_set_shape(tensor, shape));
    WORKS(ov_tensor_get_byte_size(tensor, &size));
    CHECK(size == 2400);
    ov_tensor_free(tensor);

    /* Types below a byte are packed. */
    shape.dims[0] = 1;
    WORKS(ov_tensor_create(U4, shape, &tensor));
    WORKS(ov_tensor_get_byte_size(tensor, &size));
    CHECK(size == 2);
    ov_tensor_free(tensor);

    int64_t memory[6] = {1, 2, 3, 4, 5, 6};
    shape.dims[0] = 2;
    WORKS(ov_tensor_create_from_host_ptr(I64, shape, memory, &tensor));
    WORKS(ov_tensor_data(tensor, &data));
    CHECK(data == memory);
    shape.dims[0] = 1;
    WORKS(ov_tensor_set_shape(tensor, shape));
    shape.dims[0] = 3;
    FAILS_WITH(PARAMETER_MISMATCH, "needs 72 bytes", ov_tensor_set_shape(tensor, shape));
    ov_tensor_free(tensor);

    FAILS_WITH(INVALID_C_PARAM, "dynamic", ov_tensor_create(DYNAMIC, shape, &tensor));
    FAILS_WITH(INVALID_C_PARAM, "no element type 99", ov_tensor_create((ov_element_type_e)99, shape, &tensor));
    shape.dims[0] = INT64_MAX;
    FAILS_WITH(GENERAL_ERROR, "too large", ov_tensor_create(I64, shape, &tensor));
    shape.dims[0] = (int64_t)1 << 56;
    FAILS_WITH(GENERAL_ERROR, "out of memory", ov_tensor_create(U8, shape, &tensor));
    shape.dims[0] = -1;
    FAILS_WITH(INVALID_C_PARAM, "an extent of -1", ov_tensor_create(U8, shape, &tensor));
    FAILS_WITH(INVALID_C_PARAM, "`host_ptr` is NULL", ov_tensor_create_from_host_ptr(U8, shape, NULL, &tensor));
    ov_shape_free(&shape);
}

static void strings(ov_core_t *core) {
    const char *texts[] = {"ab", "", "\xc3\xa4"}, *bad = "\xff";
    int64_t dim = 3;
    ov_shape_t shape;
    ov_tensor_t *tensor = NULL, *output = NULL;
    ov_element_type_e type = DYNAMIC;
    size_t size = 1;
    void *data = NULL;
    WORKS(ov_shape_create(1, &dim, &shape));
    WORKS(ov_tensor_create_from_string_array(texts, 3, shape, &tensor));
    WORKS(ov_tensor_get_element_type(tensor, &type));
    CHECK(type == STRING);
    WORKS(ov_tensor_get_byte_size(tensor, &size));
    CHECK(size == 0);
    FAILS_WITH(NOT_IMPLEMENTED, "no layout in C", ov_tensor_data(tensor, &data));
    STATUS(GENERAL_ERROR, ov_tensor_create_from_string_array(texts, 2, shape, &output));
    FAILS_WITH(INVALID_C_PARAM, "not UTF-8", ov_tensor_create_from_string_array(&bad, 1, shape, &output));
    STATUS(GENERAL_ERROR, ov_tensor_set_string_data(tensor, texts, 1));
    STATUS(NOT_IMPLEMENTED, ov_tensor_create_from_host_ptr(STRING, shape, texts, &output));

    /* Two tensors of strings, and where they are equal. */
    ov_compiled_model_t *compiled = compile_text(
        core, NET("equal",
                  INPUT(0, "a", "3", "string") INPUT(1, "b", "3", "string")
                      LAYER(2, "equal", "Equal", "<data auto_broadcast=\"numpy\"/>",
                            "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>")
                          OUTPUT(3, "r"),
                  EDGE_(0, 0, 2, 0) EDGE_(1, 0, 2, 1) EDGE_(2, 2, 3, 0)));
    ov_infer_request_t *request = new_request(compiled);
    WORKS(ov_infer_request_set_tensor(request, "a", tensor));
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_get_tensor(request, "b", &tensor));
    texts[1] = "x";
    WORKS(ov_tensor_set_string_data(tensor, texts, 3));
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_output_tensor(request, &output));
    WORKS(ov_tensor_data(output, &data));
    CHECK(memcmp(data, "\1\0\1", 3) == 0);
    FAILS_WITH(PARAMETER_MISMATCH, "expected a tensor of strings", ov_tensor_set_string_data(output, texts, 3));
    ov_tensor_free(output);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_shape_free(&shape);
}

static void get_and_set(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, ADD("2,2"));
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *a = floats(2, TWO_BY_TWO, (float[]){1, 2, 3, 4}), *tensor = NULL, *same = NULL;
    ov_output_const_port_t *port = NULL;

    /* Tensors are there before the first run; handles to one share it. */
    WORKS(ov_infer_request_get_output_tensor(request, &tensor));
    floats_of(tensor, 4);
    WORKS(ov_infer_request_get_output_tensor_by_index(request, 0, &same));
    CHECK(tensor != same && floats_of(tensor, 4) == floats_of(same, 4));
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_get_input_tensor_by_index(request, 1, &tensor));
    memcpy(floats_of(tensor, 4), (float[]){10, 20, 30, 40}, 16);
    ov_tensor_free(tensor);

    WORKS(ov_infer_request_set_tensor(request, "a", a));
    WORKS(ov_infer_request_infer(request));
    CHECK(floats_of(same, 4)[3] == 44);
    floats_of(a, 4)[3] = 5; /* Read where it is, not copied before. */
    WORKS(ov_infer_request_infer(request));
    CHECK(floats_of(same, 4)[3] == 45);
    ov_tensor_free(same);

    /* By port: of the compiled model, and of the model. */
    WORKS(ov_compiled_model_input_by_name(compiled, "b", &port));
    WORKS(ov_infer_request_set_tensor_by_const_port(request, port, a));
    WORKS(ov_infer_request_get_tensor_by_const_port(request, port, &tensor));
    CHECK(floats_of(tensor, 4) == floats_of(a, 4));
    ov_tensor_free(tensor);
    ov_output_const_port_free(port);
    ov_model_t *model = read_text(core, ADD("2,2"));
    ov_output_port_t *of_model = NULL;
    WORKS(ov_model_output(model, &of_model));
    float out[4] = {0};
    ov_shape_t shape;
    WORKS(ov_shape_create(2, TWO_BY_TWO, &shape));
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, out, &tensor));
    WORKS(ov_infer_request_set_tensor_by_port(request, of_model, tensor));
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_infer(request));
    CHECK(out[0] == 2 && out[3] == 10);
    WORKS(ov_infer_request_get_tensor_by_port(request, of_model, &tensor));
    CHECK(floats_of(tensor, 4) == out);
    ov_tensor_free(tensor);
    ov_output_port_free(of_model);
    ov_model_free(model);
    model = read_text(core, RELU("2,2", "f32"));
    WORKS(ov_model_output(model, &of_model));
    FAILS_WITH(PARAMETER_MISMATCH, "another model", ov_infer_request_get_tensor_by_port(request, of_model, &tensor));
    ov_output_port_free(of_model);
    ov_model_free(model);

    WORKS(ov_infer_request_set_input_tensor_by_index(request, 0, a));
    WORKS(ov_infer_request_set_output_tensor_by_index(request, 0, a)); /* In place. */
    WORKS(ov_infer_request_infer(request));
    CHECK(floats_of(a, 4)[0] == 2);
    WORKS(ov_infer_request_get_tensor(request, "sum", &tensor));
    CHECK(floats_of(tensor, 4) == floats_of(a, 4));
    ov_tensor_free(tensor);

    /* What does not fit. */
    int64_t dims[] = {4};
    ov_tensor_t *wrong = floats(1, dims, (float[]){1, 2, 3, 4}), *bytes = NULL;
    WORKS(ov_tensor_create(U8, shape, &bytes));
    ov_shape_free(&shape);
    FAILS_WITH(PARAMETER_MISMATCH, "input 'a' must be f32[2, 2], found f32[4]",
               ov_infer_request_set_tensor(request, "a", wrong));
    FAILS_WITH(PARAMETER_MISMATCH, "output 'sum' must be f32[2, 2], found u8[2, 2]",
               ov_infer_request_set_output_tensor(request, bytes));
    FAILS_WITH(PARAMETER_MISMATCH, "expected one", ov_infer_request_set_input_tensor(request, a));
    FAILS_WITH(PARAMETER_MISMATCH, "expected one", ov_infer_request_get_input_tensor(request, &tensor));
    FAILS_WITH(OUT_OF_BOUNDS, "no input 2", ov_infer_request_set_input_tensor_by_index(request, 2, a));
    FAILS_WITH(OUT_OF_BOUNDS, "no output 1", ov_infer_request_get_output_tensor_by_index(request, 1, &tensor));
    FAILS_WITH(NOT_FOUND, "no input or output 'c'", ov_infer_request_set_tensor(request, "c", a));
    ov_shape_t flat = {1, dims};
    WORKS(ov_tensor_set_shape(a, flat));
    FAILS_WITH(PARAMETER_MISMATCH, "input 'a' must be", ov_infer_request_infer(request));

    /* The tensors outlive the request, in any order. */
    ov_tensor_free(wrong);
    ov_tensor_free(bytes);
    ov_compiled_model_free(compiled);
    WORKS(ov_infer_request_get_tensor(request, "b", &tensor));
    ov_infer_request_free(request);
    ov_tensor_free(a);
    floats_of(tensor, 4);
    ov_tensor_free(tensor);
}

static void dynamic_shapes(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, RELU("?,2", "f32"));
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *input = NULL, *output = NULL, *large = NULL;
    ov_shape_t shape;
    WORKS(ov_infer_request_get_input_tensor(request, &input));
    WORKS(ov_infer_request_get_output_tensor(request, &output));
    floats_of(output, 0);
    for (int64_t rows = 0; rows < 4; rows++) {
        int64_t dims[] = {rows, 2};
        WORKS(ov_shape_create(2, dims, &shape));
        WORKS(ov_tensor_set_shape(input, shape));
        ov_shape_free(&shape);
        float *values = floats_of(input, (size_t)rows * 2);
        for (int64_t k = 0; k < rows * 2; k++) values[k] = (float)(k - 1);
        WORKS(ov_infer_request_infer(request));
        WORKS(ov_tensor_get_shape(output, &shape));
        CHECK(shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == 2);
        ov_shape_free(&shape);
        values = floats_of(output, (size_t)rows * 2);
        for (int64_t k = 0; k < rows * 2; k++) CHECK(values[k] == (k < 1 ? 0 : (float)(k - 1)));
    }
    /* An output that a program sets takes the shape of the result, if there is room. */
    float memory[8] = {0};
    int64_t dims[] = {4, 2};
    WORKS(ov_shape_create(2, dims, &shape));
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, memory, &large));
    ov_shape_free(&shape);
    WORKS(ov_infer_request_set_output_tensor(request, large));
    WORKS(ov_infer_request_infer(request));
    floats_of(large, 6);
    CHECK(memory[5] == 4);
    dims[0] = 5;
    WORKS(ov_shape_create(2, dims, &shape));
    WORKS(ov_tensor_set_shape(input, shape));
    ov_shape_free(&shape);
    FAILS_WITH(PARAMETER_MISMATCH, "needs 40 bytes", ov_infer_request_infer(request));
    ov_tensor_free(large);
    ov_tensor_free(input);
    ov_tensor_free(output);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

static ov_tensor_t *of_memory(int64_t count, void *memory) {
    ov_shape_t shape = {1, &count};
    ov_tensor_t *tensor = NULL;
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, memory, &tensor));
    return tensor;
}

static void set_input_and_output(ov_infer_request_t *request, int64_t count, void *in, void *out) {
    ov_tensor_t *input = of_memory(count, in), *output = of_memory(count, out);
    WORKS(ov_infer_request_set_input_tensor(request, input));
    WORKS(ov_infer_request_set_output_tensor_by_index(request, 0, output));
    ov_tensor_free(input);
    ov_tensor_free(output);
}

/* Outputs are written where the program wants them, wherever that is. */
static void memory_of_the_program(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, RELU("4", "f32"));
    ov_infer_request_t *request = new_request(compiled);
    ov_compiled_model_free(compiled);

    /* Where the input is, too. */
    float memory[5] = {-1, 2, -3, 4, -5};
    set_input_and_output(request, 4, memory, memory + 1);
    WORKS(ov_infer_request_infer(request));
    CHECK(memcmp(memory, (float[]){-1, 0, 2, 0, 4}, sizeof memory) == 0);
    set_input_and_output(request, 4, memory + 1, memory);
    WORKS(ov_infer_request_infer(request));
    CHECK(memcmp(memory, (float[]){0, 2, 0, 4, 4}, sizeof memory) == 0);

    /* At any address. */
    unsigned char bytes[40];
    memset(bytes, 77, sizeof bytes);
    memcpy(bytes + 1, (float[]){-1, 1, -2, 2}, 16);
    set_input_and_output(request, 4, bytes + 1, bytes + 19);
    WORKS(ov_infer_request_infer(request));
    CHECK(memcmp(bytes + 19, (float[]){0, 1, 0, 2}, 16) == 0);
    CHECK(bytes[18] == 77 && bytes[35] == 77);

    /* Memory that is gone is not used, whatever was done with it. */
    for (int k = 0; k < 3; k++) {
        float *in = malloc(16), *out = malloc(16);
        for (int j = 0; j < 4; j++) in[j] = (float)(j - k);
        set_input_and_output(request, 4, in, out);
        WORKS(ov_infer_request_infer(request));
        for (int j = 0; j < 4; j++) CHECK(out[j] == (j > k ? (float)(j - k) : 0));
        set_input_and_output(request, 4, memory, bytes + 19);
        free(in);
        free(out);
        WORKS(ov_infer_request_infer(request));
        CHECK(memcmp(bytes + 19, memory, 16) == 0);
    }
    ov_infer_request_free(request);

    /* Two outputs in one place: the last that is written stays. */
    compiled = compile_text(
        core, NET("both",
                  INPUT(0, "x", "4", "f32")
                      LAYER(1, "relu", "ReLU", "",
                            "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")
                          LAYER(2, "negative", "Negative", "",
                                "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")
                              OUTPUT(3, "r") OUTPUT(4, "s") OUTPUT(5, "t"),
                  EDGE_(0, 0, 1, 0) EDGE_(0, 0, 2, 0) EDGE_(1, 1, 3, 0) EDGE_(2, 1, 4, 0) EDGE_(0, 0, 5, 0)));
    request = new_request(compiled);
    ov_compiled_model_free(compiled);
    float in[4] = {-1, 2, -3, 4}, out[4], copy[4];
    set_input_and_output(request, 4, in, out);
    ov_tensor_t *output = of_memory(4, out);
    WORKS(ov_infer_request_set_output_tensor_by_index(request, 1, output));
    ov_tensor_free(output);
    output = of_memory(4, copy);
    WORKS(ov_infer_request_set_output_tensor_by_index(request, 2, output));
    ov_tensor_free(output);
    WORKS(ov_infer_request_infer(request));
    CHECK(memcmp(out, (float[]){1, -2, 3, -4}, 16) == 0 && memcmp(copy, in, 16) == 0);
    ov_infer_request_free(request);
}

/* What a variable holds does not change with the program's memory. */
static void variables(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(
        core, NET("memory",
                  INPUT(0, "x", "2", "f32") 
                  "<layer id=\"1\" name=\"read\" type=\"ReadValue\" version=\"opset3\"><data variable_id=\"v\"/>"
                  "<input><port id=\"0\"/></input><output><port id=\"1\"/></output></layer>"
                  "<layer id=\"2\" name=\"assign\" type=\"Assign\" version=\"opset3\"><data variable_id=\"v\"/>"
                  "<input><port id=\"0\"/></input></layer>" OUTPUT(3, "r"),
                  EDGE_(0, 0, 1, 0) EDGE_(0, 0, 2, 0) EDGE_(1, 1, 3, 0)));
    ov_infer_request_t *request = new_request(compiled);
    ov_compiled_model_free(compiled);
    float *memory = malloc(8);
    int64_t dim = 2;
    ov_shape_t shape = {1, &dim};
    ov_tensor_t *input = NULL, *output = NULL;
    memcpy(memory, (float[]){1, 2}, 8);
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, memory, &input));
    WORKS(ov_infer_request_set_input_tensor(request, input));
    WORKS(ov_infer_request_infer(request));
    ov_tensor_free(input);
    input = floats(1, &dim, (float[]){7, 8});
    WORKS(ov_infer_request_set_input_tensor(request, input));
    free(memory);
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_output_tensor(request, &output));
    CHECK(floats_of(output, 2)[0] == 1 && floats_of(output, 2)[1] == 2);
    ov_tensor_free(input);
    ov_tensor_free(output);
    ov_infer_request_free(request);
}

static void profiling(ov_core_t *core) {
    ov_model_t *model = read_text(core, ADD("2,2"));
    ov_compiled_model_t *compiled = NULL;
    ov_profiling_info_list_t list;
    WORKS(ov_core_compile_model(core, model, "CPU", 2, &compiled, ov_property_key_enable_profiling, "YES"));
    ov_infer_request_t *request = new_request(compiled);
    ov_compiled_model_free(compiled);
    for (int has_run = 0; has_run < 2; has_run++) {
        WORKS(ov_infer_request_get_profiling_info(request, &list));
        CHECK(list.size == 4);
        int executed = 0;
        for (size_t k = 0; k < list.size; k++) {
            const ov_profiling_info_t *info = &list.profiling_infos[k];
            CHECK(strlen(info->node_name) > 0 && strlen(info->exec_type) > 0 && strlen(info->node_type) > 0);
            CHECK(info->real_time >= 0);
            executed += info->status == EXECUTED;
            CHECK(info->status != EXECUTED || strcmp(info->node_type, "Add") == 0);
        }
        CHECK(executed == has_run);
        ov_profiling_info_list_free(&list);
        ov_profiling_info_list_free(&list);
        WORKS(ov_infer_request_infer(request));
    }
    ov_infer_request_free(request);
    WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
    request = new_request(compiled);
    FAILS_WITH(GENERAL_ERROR, "PERF_COUNT", ov_infer_request_get_profiling_info(request, &list));
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
}

int main(void) {
    ov_core_t *core = new_core();
    tensors();
    strings(core);
    get_and_set(core);
    dynamic_shapes(core);
    memory_of_the_program(core);
    variables(core);
    profiling(core);
    ov_core_free(core);
    return 0;
}
