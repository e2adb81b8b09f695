/* The functions that OpenVINO's C API has not. */
#include "check.h"

typedef struct vinelift_memory vinelift_memory_t;
extern ov_status_e vinelift_port_names_size(const ov_output_port_t *port, size_t *size);
extern ov_status_e vinelift_port_name_by_index(const ov_output_port_t *port, size_t index, char **name);
extern ov_status_e vinelift_tensor_hold(const ov_tensor_t *tensor, void **data, vinelift_memory_t **memory);
extern void vinelift_memory_free(vinelift_memory_t *memory);
extern ov_status_e vinelift_tensor_get_string(const ov_tensor_t *tensor, size_t index, char **data, size_t *size);
extern ov_status_e vinelift_infer_request_variables_size(const ov_infer_request_t *request, size_t *size);
extern ov_status_e vinelift_infer_request_variable_name(const ov_infer_request_t *request, size_t index, char **name);
extern ov_status_e vinelift_infer_request_get_variable(const ov_infer_request_t *request, size_t index, ov_tensor_t **tensor);
extern ov_status_e vinelift_infer_request_set_variable(ov_infer_request_t *request, size_t index, const ov_tensor_t *tensor);
extern ov_status_e vinelift_infer_request_reset_variable(ov_infer_request_t *request, size_t index);
extern ov_status_e vinelift_infer_request_outcome(const ov_infer_request_t *request);

/* held = held + x, which starts from 0, by shapes that are declared */
#define VARIABLE "<data variable_id=\"v\" variable_type=\"f32\" variable_shape=\"2\"/>"
#define HOLDS                                                                                            \
    NET("holds",                                                                                         \
        INPUT(0, "x", "2", "f32")                                                                        \
            VERSION(6, 1, "read", "ReadValue", VARIABLE, "<output><port id=\"0\"/></output>")            \
                LAYER(2, "add", "Add", "<data auto_broadcast=\"numpy\"/>",                               \
                      "<input><port id=\"0\"/><port id=\"1\"/></input>"                                  \
                      "<output><port id=\"2\" names=\"sum,total\"/></output>")                           \
                    VERSION(6, 3, "assign", "Assign", VARIABLE,                                          \
                            "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")          \
                        OUTPUT(4, "result"),                                                             \
        EDGE_(1, 0, 2, 0) EDGE_(0, 0, 2, 1) EDGE_(2, 2, 3, 0) EDGE_(2, 2, 4, 0))

static void nulls(void) {
    STATUS(INVALID_C_PARAM, vinelift_port_names_size(NULL, NULL));
    STATUS(INVALID_C_PARAM, vinelift_port_name_by_index(NULL, 0, NULL));
    STATUS(INVALID_C_PARAM, vinelift_tensor_hold(NULL, NULL, NULL));
    vinelift_memory_free(NULL);
    STATUS(INVALID_C_PARAM, vinelift_tensor_get_string(NULL, 0, NULL, NULL));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_variables_size(NULL, NULL));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_variable_name(NULL, 0, NULL));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_get_variable(NULL, 0, NULL));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_set_variable(NULL, 0, NULL));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_reset_variable(NULL, 0));
    STATUS(INVALID_C_PARAM, vinelift_infer_request_outcome(NULL));
}

static void names(ov_core_t *core) {
    ov_model_t *model = read_text(core, HOLDS);
    ov_output_port_t *port = NULL;
    char *name = NULL;
    size_t count = 0;
    WORKS(ov_model_output_by_index(model, 0, &port));
    WORKS(vinelift_port_names_size(port, &count));
    CHECK(count == 4); /* The tensor's, then those of the two layers at it. */
    const char *expected[] = {"sum", "total", "add", "result"};
    for (size_t k = 0; k < count; k++) {
        WORKS(vinelift_port_name_by_index(port, k, &name));
        CHECK(strcmp(name, expected[k]) == 0);
        ov_free(name);
    }
    FAILS_WITH(OUT_OF_BOUNDS, "there is no name 4, there are 4", vinelift_port_name_by_index(port, 4, &name));
    ov_output_port_free(port);
    ov_model_free(model);
}

static void strings(void) {
    const char *texts[] = {"a", "", "zwölf"};
    int64_t dims[] = {3};
    ov_shape_t shape = {1, dims};
    ov_tensor_t *tensor = NULL, *numbers = NULL;
    char *data = NULL;
    size_t size = 9;
    WORKS(ov_tensor_create_from_string_array(texts, 3, shape, &tensor));
    for (size_t k = 0; k < 3; k++) {
        WORKS(vinelift_tensor_get_string(tensor, k, &data, &size));
        CHECK(size == strlen(texts[k]) && memcmp(data, texts[k], size) == 0);
        ov_free(data);
    }
    FAILS_WITH(OUT_OF_BOUNDS, "there is no string 3", vinelift_tensor_get_string(tensor, 3, &data, &size));
    void *start = NULL;
    vinelift_memory_t *memory = NULL;
    STATUS(NOT_IMPLEMENTED, vinelift_tensor_hold(tensor, &start, &memory));
    ov_tensor_free(tensor);
    numbers = floats(1, dims, (float[]){1, 2, 3});
    FAILS_WITH(PARAMETER_MISMATCH, "expected a tensor of strings, found one of f32",
               vinelift_tensor_get_string(numbers, 0, &data, &size));
    ov_tensor_free(numbers);
}

static void memory(void) {
    int64_t dims[] = {2}, larger[] = {100000};
    ov_shape_t shape = {1, larger};
    ov_tensor_t *tensor = floats(1, dims, (float[]){5, 6});
    void *before = NULL, *after = NULL;
    vinelift_memory_t *held = NULL, *none = NULL;
    WORKS(vinelift_tensor_hold(tensor, &before, &held));
    CHECK(held && before == floats_of(tensor, 2));
    WORKS(ov_tensor_set_shape(tensor, shape));
    WORKS(ov_tensor_data(tensor, &after));
    CHECK(after != before);
    ov_tensor_free(tensor);
    CHECK(((float *)before)[0] == 5 && ((float *)before)[1] == 6);
    vinelift_memory_free(held);

    float mine[] = {1, 2};
    shape.dims = dims;
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, mine, &tensor));
    held = (vinelift_memory_t *)&none;
    WORKS(vinelift_tensor_hold(tensor, &before, &held));
    CHECK(before == mine && held == NULL);
    ov_tensor_free(tensor);
}

static float first(const ov_infer_request_t *request) {
    ov_tensor_t *tensor = NULL;
    WORKS(vinelift_infer_request_get_variable(request, 0, &tensor));
    float value = floats_of(tensor, 2)[0];
    ov_tensor_free(tensor);
    return value;
}

static void outcome_in_callback(void *arguments) {
    /* The callback cannot wait for its run, but knows how that has ended. */
    ov_infer_request_t *request = *(ov_infer_request_t **)arguments;
    STATUS(REQUEST_BUSY, ov_infer_request_wait(request));
    WORKS(vinelift_infer_request_outcome(request));
    *(ov_infer_request_t **)arguments = NULL;
}

static void variables(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, HOLDS);
    ov_infer_request_t *request = new_request(compiled);
    int64_t dims[] = {2}, three[] = {3};
    ov_tensor_t *x = floats(1, dims, (float[]){1, 1}), *ten = floats(1, dims, (float[]){10, 10});
    ov_tensor_t *wrong = floats(1, three, (float[]){1, 2, 3}), *none = NULL;
    size_t count = 0;
    char *name = NULL;
    STATUS(RESULT_NOT_READY, vinelift_infer_request_outcome(request));
    WORKS(vinelift_infer_request_variables_size(request, &count));
    CHECK(count == 1);
    WORKS(vinelift_infer_request_variable_name(request, 0, &name));
    CHECK(strcmp(name, "v") == 0);
    ov_free(name);
    CHECK(first(request) == 0);
    WORKS(ov_infer_request_set_input_tensor(request, x));
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_infer(request));
    WORKS(vinelift_infer_request_outcome(request));
    CHECK(first(request) == 2);
    WORKS(vinelift_infer_request_set_variable(request, 0, ten));
    floats_of(ten, 2)[0] = 77; /* It was copied. */
    CHECK(first(request) == 10);
    WORKS(ov_infer_request_infer(request));
    CHECK(first(request) == 11);
    FAILS_WITH(PARAMETER_MISMATCH, "variable 'v' must be f32", vinelift_infer_request_set_variable(request, 0, wrong));
    STATUS(OUT_OF_BOUNDS, vinelift_infer_request_set_variable(request, 1, ten));
    STATUS(OUT_OF_BOUNDS, vinelift_infer_request_get_variable(request, 1, &none));
    STATUS(OUT_OF_BOUNDS, vinelift_infer_request_reset_variable(request, 1));
    WORKS(vinelift_infer_request_reset_variable(request, 0));
    CHECK(first(request) == 0);

    ov_infer_request_t *argument = request;
    ov_callback_t callback = {outcome_in_callback, &argument};
    WORKS(ov_infer_request_set_callback(request, &callback));
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    CHECK(argument == NULL);
    ov_tensor_free(x);
    ov_tensor_free(ten);
    ov_tensor_free(wrong);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

int main(void) {
    ov_core_t *core = new_core();
    nulls();
    names(core);
    strings();
    memory();
    variables(core);
    ov_core_free(core);
    return 0;
}
