/* Models, their ports and their shapes. */
#include "check.h"

static void expect_shape(const ov_output_const_port_t *port, int64_t rank, const int64_t *dims) {
    ov_shape_t shape;
    WORKS(ov_const_port_get_shape(port, &shape));
    CHECK(shape.rank == rank && memcmp(shape.dims, dims, (size_t)rank * sizeof *dims) == 0);
    ov_shape_free(&shape);
}

static void ports(ov_core_t *core) {
    ov_model_t *model = read_text(core, ADD("2,?"));
    ov_output_const_port_t *constant = NULL;
    ov_output_port_t *port = NULL;
    ov_element_type_e type = DYNAMIC;
    ov_partial_shape_t partial;
    ov_shape_t shape;
    size_t count = 0;
    char *name = NULL;
    WORKS(ov_model_inputs_size(model, &count));
    CHECK(count == 2);
    WORKS(ov_model_outputs_size(model, &count));
    CHECK(count == 1);
    CHECK(ov_model_is_dynamic(model));
    WORKS(ov_model_get_friendly_name(model, &name));
    CHECK(strcmp(name, "adder") == 0);
    ov_free(name);

    WORKS(ov_model_const_input_by_index(model, 1, &constant));
    WORKS(ov_port_get_any_name(constant, &name));
    CHECK(strcmp(name, "b") == 0);
    ov_free(name);
    WORKS(ov_port_get_element_type(constant, &type));
    CHECK(type == F32);
    WORKS(ov_port_get_partial_shape(constant, &partial));
    CHECK(partial.rank.max == 2 && partial.dims[0].min == 2 && ov_dimension_is_dynamic(partial.dims[1]));
    ov_partial_shape_free(&partial);
    FAILS_WITH(PARAMETER_MISMATCH, "is dynamic", ov_const_port_get_shape(constant, &shape));
    ov_output_const_port_free(constant);

    WORKS(ov_model_input_by_name(model, "a", &port));
    FAILS_WITH(PARAMETER_MISMATCH, "is dynamic", ov_port_get_shape(port, &shape));
    ov_output_port_free(port);
    WORKS(ov_model_const_input_by_name(model, "a", &constant));
    ov_output_const_port_free(constant);
    WORKS(ov_model_input_by_index(model, 0, &port));
    ov_output_port_free(port);
    WORKS(ov_model_output(model, &port));
    ov_output_port_free(port);
    WORKS(ov_model_output_by_index(model, 0, &port));
    ov_output_port_free(port);
    WORKS(ov_model_output_by_name(model, "sum", &port));
    ov_output_port_free(port);
    WORKS(ov_model_const_output_by_index(model, 0, &constant));
    ov_output_const_port_free(constant);
    WORKS(ov_model_const_output_by_name(model, "add", &constant));
    ov_output_const_port_free(constant);
    FAILS_WITH(PARAMETER_MISMATCH, "has 2 inputs, expected one", ov_model_input(model, &port));
    FAILS_WITH(PARAMETER_MISMATCH, "has 2 inputs, expected one", ov_model_const_input(model, &constant));
    FAILS_WITH(OUT_OF_BOUNDS, "no input 2, it has 2", ov_model_input_by_index(model, 2, &port));
    FAILS_WITH(NOT_FOUND, "no output 'c', its outputs are 'sum'", ov_model_output_by_name(model, "c", &port));

    /* A port outlives its model. */
    WORKS(ov_model_const_output(model, &constant));
    ov_model_free(model);
    WORKS(ov_port_get_any_name(constant, &name));
    CHECK(strcmp(name, "sum") == 0);
    ov_free(name);
    ov_output_const_port_free(constant);
}

static void reshape(ov_core_t *core) {
    ov_model_t *model = read_text(core, ADD("2,?"));
    ov_output_const_port_t *output = NULL;
    ov_output_port_t *inputs[2];
    ov_partial_shape_t shapes[2];
    const char *names[] = {"a", "b"};
    size_t indexes[] = {1, 0};
    int64_t dims[] = {4, 5};
    WORKS(ov_model_const_output(model, &output));
    WORKS(ov_model_input_by_index(model, 0, &inputs[0]));
    WORKS(ov_model_input_by_index(model, 1, &inputs[1]));
    for (int k = 0; k < 2; k++) WORKS(ov_partial_shape_create_static(2, dims, &shapes[k]));

    WORKS(ov_model_reshape(model, names, shapes, 2));
    expect_shape(output, 2, dims); /* A port shows its model as it is now. */
    CHECK(!ov_model_is_dynamic(model));
    for (int k = 0; k < 2; k++) shapes[k].dims[1].min = shapes[k].dims[1].max = dims[1] = 6;
    WORKS(ov_model_reshape_by_port_indexes(model, indexes, shapes, 2));
    expect_shape(output, 2, dims);
    for (int k = 0; k < 2; k++) shapes[k].dims[1].min = shapes[k].dims[1].max = dims[1] = 7;
    WORKS(ov_model_reshape_by_ports(model, (const ov_output_port_t **)inputs, shapes, 2));
    expect_shape(output, 2, dims);
    shapes[0].dims[0].min = shapes[0].dims[0].max = 1;
    WORKS(ov_model_reshape_input_by_name(model, "a", shapes[0]));
    expect_shape(output, 2, dims);

    /* What does not fit leaves the model as it is. */
    shapes[0].dims[1].min = shapes[0].dims[1].max = 9;
    FAILS_WITH(GENERAL_ERROR, "'add' (Add, opset1)", ov_model_reshape_input_by_name(model, "a", shapes[0]));
    expect_shape(output, 2, dims);
    FAILS_WITH(NOT_FOUND, "no input 'c'", ov_model_reshape_input_by_name(model, "c", shapes[0]));
    FAILS_WITH(GENERAL_ERROR, "'add' (Add, opset1)", ov_model_reshape_single_input(model, shapes[0]));
    indexes[0] = 2;
    FAILS_WITH(OUT_OF_BOUNDS, "no input 2", ov_model_reshape_by_port_indexes(model, indexes, shapes, 2));
    shapes[0].dims[1].max = 3;
    FAILS_WITH(INVALID_C_PARAM, "a dimension from 9 to 3", ov_model_reshape(model, names, shapes, 1));
    FAILS_WITH(INVALID_C_PARAM, "`size` is 0", ov_model_reshape(model, names, shapes, 0));
    const ov_output_port_t *not_an_input = (const ov_output_port_t *)output;
    FAILS_WITH(PARAMETER_MISMATCH, "no input of a model",
               ov_model_reshape_by_ports(model, &not_an_input, shapes + 1, 1));

    ov_output_const_port_free(output);
    for (int k = 0; k < 2; k++) {
        ov_output_port_free(inputs[k]);
        ov_partial_shape_free(&shapes[k]);
    }
    ov_model_free(model);

    model = read_text(core, RELU("?", "f32"));
    ov_partial_shape_t partial;
    ov_dimension_t dim = {3, 3};
    WORKS(ov_partial_shape_create(1, &dim, &partial));
    WORKS(ov_model_reshape_single_input(model, partial));
    CHECK(!ov_model_is_dynamic(model));
    ov_partial_shape_free(&partial);
    ov_model_free(model);
}

static void compiled(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, ADD("2,3"));
    ov_output_const_port_t *port = NULL;
    ov_model_t *model = NULL;
    ov_remote_context_t *context = NULL;
    size_t count = 0;
    WORKS(ov_compiled_model_inputs_size(compiled, &count));
    CHECK(count == 2);
    WORKS(ov_compiled_model_outputs_size(compiled, &count));
    CHECK(count == 1);
    WORKS(ov_compiled_model_input_by_index(compiled, 0, &port));
    expect_shape(port, 2, (int64_t[]){2, 3});
    ov_output_const_port_free(port);
    WORKS(ov_compiled_model_input_by_name(compiled, "b", &port));
    ov_output_const_port_free(port);
    WORKS(ov_compiled_model_output(compiled, &port));
    ov_output_const_port_free(port);
    WORKS(ov_compiled_model_output_by_index(compiled, 0, &port));
    ov_output_const_port_free(port);
    FAILS_WITH(PARAMETER_MISMATCH, "expected one", ov_compiled_model_input(compiled, &port));
    STATUS(OUT_OF_BOUNDS, ov_compiled_model_output_by_index(compiled, 1, &port));
    STATUS(NOT_FOUND, ov_compiled_model_output_by_name(compiled, "a", &port));
    STATUS(NOT_IMPLEMENTED, ov_compiled_model_get_context(compiled, &context));
    WORKS(ov_compiled_model_get_runtime_model(compiled, &model));
    WORKS(ov_compiled_model_output_by_name(compiled, "sum", &port));
    ov_compiled_model_free(compiled);
    expect_shape(port, 2, (int64_t[]){2, 3});
    ov_output_const_port_free(port);
    WORKS(ov_model_inputs_size(model, &count));
    CHECK(count == 2);
    ov_model_free(model);
}

/* Weights may be overwritten and freed as soon as the model is read. */
static void weights(ov_core_t *core) {
    float memory[2] = {10, 20};
    int64_t dim = 8;
    ov_shape_t shape;
    ov_tensor_t *weights = NULL;
    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    for (int of_program = 0; of_program < 2; of_program++) {
        WORKS(ov_shape_create(1, &dim, &shape));
        if (of_program) {
            WORKS(ov_tensor_create_from_host_ptr(U8, shape, memory, &weights));
        } else {
            void *data = NULL;
            WORKS(ov_tensor_create(U8, shape, &weights));
            WORKS(ov_tensor_data(weights, &data));
            memcpy(data, memory, 8);
        }
        ov_shape_free(&shape);
        WORKS(ov_core_read_model_from_memory_buffer(core, ADD_WEIGHTS, strlen(ADD_WEIGHTS), weights, &model));
        ov_tensor_free(weights);
        memset(memory, 0, 8);
        WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
        ov_model_free(model);
        ov_infer_request_t *request = new_request(compiled);
        ov_compiled_model_free(compiled);
        WORKS(ov_infer_request_infer(request));
        ov_tensor_t *output = NULL;
        WORKS(ov_infer_request_get_output_tensor(request, &output));
        ov_infer_request_free(request);
        float *values = floats_of(output, 2);
        CHECK(values[0] == 10 && values[1] == 20);
        ov_tensor_free(output);
        memory[0] = 10;
        memory[1] = 20;
    }
    ov_tensor_t *strings = NULL;
    const char *text = "a";
    ov_shape_t scalar = {0, NULL};
    WORKS(ov_tensor_create_from_string_array(&text, 1, scalar, &strings));
    FAILS_WITH(PARAMETER_MISMATCH, "expected a tensor of bytes",
               ov_core_read_model_from_memory_buffer(core, ADD_WEIGHTS, strlen(ADD_WEIGHTS), strings, &model));
    ov_tensor_free(strings);
    STATUS(GENERAL_ERROR, ov_core_read_model_from_memory_buffer(core, ADD_WEIGHTS, strlen(ADD_WEIGHTS), NULL, &model));
}

int main(void) {
    ov_core_t *core = new_core();
    ports(core);
    reshape(core);
    compiled(core);
    weights(core);
    ov_core_free(core);
    return 0;
}
