/* Runs on threads. */
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

/* As many iterations as the program says. */
#define MANY                                                                                             \
    NET("many",                                                                                          \
        INPUT(0, "trips", "", "i64") INPUT(1, "go", "", "boolean") INPUT(2, "x", "2", "f32")             \
            VERSION(5, 3, "loop", "Loop",                                                                \
                  "<port_map><input external_port_id=\"2\" internal_layer_id=\"0\"/>"                    \
                  "<input external_port_id=\"3\" internal_layer_id=\"1\"/>"                              \
                  "<output external_port_id=\"4\" internal_layer_id=\"3\"/>"                             \
                  "<output external_port_id=\"-1\" internal_layer_id=\"4\" purpose=\"execution_condition\"/>" \
                  "</port_map><back_edges><edge from-layer=\"3\" to-layer=\"0\"/></back_edges>",         \
                  "<input><port id=\"0\"/><port id=\"1\"/><port id=\"2\"/><port id=\"3\"/></input>"      \
                  "<output><port id=\"4\"/></output><body><layers>"                                      \
                  INPUT(0, "xi", "2", "f32") INPUT(1, "gi", "", "boolean")                               \
                  LAYER(2, "relu", "ReLU", "",                                                           \
                        "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")              \
                  OUTPUT(3, "xo") OUTPUT(4, "go_on") "</layers><edges>" EDGE_(0, 0, 2, 0)                \
                  EDGE_(2, 1, 3, 0) EDGE_(1, 0, 4, 0) "</edges></body>") OUTPUT(4, "r"),                 \
        EDGE_(0, 0, 3, 0) EDGE_(1, 0, 3, 1) EDGE_(2, 0, 3, 2) EDGE_(1, 0, 3, 3) EDGE_(3, 4, 4, 0))

struct called {
    atomic_int times;
    ov_infer_request_t *request;
    int again;
};

static void on_done(void *argument) {
    struct called *called = argument;
    atomic_fetch_add(&called->times, 1);
    ov_tensor_t *tensor = NULL;
    WORKS(ov_infer_request_get_output_tensor(called->request, &tensor));
    ov_tensor_free(tensor);
    if (called->again-- > 0) WORKS(ov_infer_request_start_async(called->request));
}

static void callbacks(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, PRODUCT("64,64"));
    ov_infer_request_t *request = new_request(compiled);
    struct called called = {0, request, 0};
    ov_callback_t callback = {on_done, &called};
    WORKS(ov_infer_request_wait(request)); /* Of no run. */
    STATUS(RESULT_NOT_READY, ov_infer_request_wait_for(request, 0));
    WORKS(ov_infer_request_set_callback(request, &callback));
    callback.callback_func = NULL; /* It was copied. */
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    CHECK(called.times == 1);
    WORKS(ov_infer_request_infer(request)); /* Without. */
    CHECK(called.times == 1);
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait_for(request, 60000));
    CHECK(called.times == 2);
    WORKS(ov_infer_request_wait_for(request, 0));
    WORKS(ov_infer_request_wait_for(request, INT64_MAX));

    called.again = 3; /* The callback starts the next run. */
    WORKS(ov_infer_request_start_async(request));
    while (called.times < 6) usleep(100);
    WORKS(ov_infer_request_wait(request));
    CHECK(called.times == 6);

    WORKS(ov_infer_request_set_callback(request, &callback));
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    CHECK(called.times == 6);

    /* Freed while it runs: the run ends first, and its callback is called no more, or was. */
    callback.callback_func = on_done;
    WORKS(ov_infer_request_set_callback(request, &callback));
    WORKS(ov_infer_request_start_async(request));
    ov_compiled_model_free(compiled);
    ov_infer_request_free(request);
}

static void free_in_callback(void *argument) {
    struct called *called = argument;
    ov_infer_request_free(called->request);
    atomic_fetch_add(&called->times, 1);
}

/* A callback may free its request. */
static void freed_in_callback(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, PRODUCT("64,64"));
    struct called called = {0, new_request(compiled), 0};
    ov_callback_t callback = {free_in_callback, &called};
    WORKS(ov_infer_request_set_callback(called.request, &callback));
    WORKS(ov_infer_request_start_async(called.request));
    while (called.times == 0) usleep(100);
    ov_compiled_model_free(compiled);
}

static void busy_and_cancelled(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, PRODUCT("700,700"));
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *tensor = NULL;
    ov_callback_t callback = {on_done, NULL};
    WORKS(ov_infer_request_start_async(request));
    FAILS_WITH(REQUEST_BUSY, "is running", ov_infer_request_start_async(request));
    STATUS(REQUEST_BUSY, ov_infer_request_infer(request));
    STATUS(REQUEST_BUSY, ov_infer_request_get_output_tensor(request, &tensor));
    STATUS(REQUEST_BUSY, ov_infer_request_set_callback(request, &callback));
    FAILS_WITH(RESULT_NOT_READY, "not there yet", ov_infer_request_wait_for(request, 0));
    STATUS(RESULT_NOT_READY, ov_infer_request_wait_for(request, -1));
    WORKS(ov_infer_request_cancel(request));
    FAILS_WITH(INFER_CANCELLED, "cancelled", ov_infer_request_wait(request));
    WORKS(ov_infer_request_cancel(request)); /* There is nothing to cancel. */
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

static void set_trips(ov_infer_request_t *request, int64_t trips) {
    ov_tensor_t *tensor = NULL;
    void *data = NULL;
    WORKS(ov_infer_request_get_tensor(request, "trips", &tensor));
    WORKS(ov_tensor_data(tensor, &data));
    *(int64_t *)data = trips;
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_get_tensor(request, "go", &tensor));
    WORKS(ov_tensor_data(tensor, &data));
    *(uint8_t *)data = 1;
    ov_tensor_free(tensor);
}

static void count_call(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

/* A run that would take years ends at once. */
static void cut_short(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, MANY);
    ov_infer_request_t *request = new_request(compiled);
    atomic_int calls = 0;
    ov_callback_t callback = {count_call, &calls};
    WORKS(ov_infer_request_set_callback(request, &callback));
    for (int k = 0; k < 3; k++) {
        set_trips(request, INT64_MAX / 2);
        WORKS(ov_infer_request_start_async(request));
        STATUS(RESULT_NOT_READY, ov_infer_request_wait_for(request, 20));
        WORKS(ov_infer_request_cancel(request));
        FAILS_WITH(INFER_CANCELLED, "cancelled", ov_infer_request_wait_for(request, 60000));
        CHECK(calls == 2 * k + 1);
        set_trips(request, 3);
        WORKS(ov_infer_request_start_async(request));
        WORKS(ov_infer_request_wait(request));
    }
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

/* More runs at a time than there are processors. */
static void many_requests(ov_core_t *core) {
    enum { COUNT = 20 };
    ov_compiled_model_t *compiled = compile_text(core, MANY);
    ov_infer_request_t *requests[COUNT];
    for (int k = 0; k < COUNT; k++) requests[k] = new_request(compiled);
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < COUNT; k++) {
            set_trips(requests[k], INT64_MAX / 2);
            WORKS(ov_infer_request_start_async(requests[k]));
        }
        for (int k = 0; k < COUNT; k++) WORKS(ov_infer_request_cancel(requests[k]));
        for (int k = 0; k < COUNT; k++) STATUS(INFER_CANCELLED, ov_infer_request_wait(requests[k]));
    }
    for (int k = 0; k < COUNT; k++) ov_infer_request_free(requests[k]);
    ov_compiled_model_free(compiled);
}

struct worker {
    ov_core_t *core;
    ov_compiled_model_t *compiled;
    int number;
};

/* Requests of one compiled model, and messages of its own. */
static void *work(void *argument) {
    struct worker *worker = argument;
    ov_infer_request_t *request = new_request(worker->compiled);
    ov_tensor_t *input = NULL, *output = NULL;
    ov_model_t *model = NULL;
    char text[32];
    for (int64_t k = 1; k < 40; k++) {
        int64_t dims[] = {1 + (k * worker->number) % 7};
        float values[7];
        for (int j = 0; j < 7; j++) values[j] = (float)(worker->number * 100 + j - 3);
        input = floats(1, dims, values);
        WORKS(ov_infer_request_set_input_tensor(request, input));
        if (k % 2) {
            WORKS(ov_infer_request_infer(request));
        } else {
            WORKS(ov_infer_request_start_async(request));
            WORKS(ov_infer_request_wait(request));
        }
        WORKS(ov_infer_request_get_output_tensor(request, &output));
        const float *found = floats_of(output, (size_t)dims[0]);
        for (int64_t j = 0; j < dims[0]; j++) CHECK(found[j] == (values[j] > 0 ? values[j] : 0));
        ov_tensor_free(input);
        ov_tensor_free(output);
        snprintf(text, sizeof text, "/none%d.xml", worker->number);
        FAILS_WITH(GENERAL_ERROR, text, ov_core_read_model(worker->core, text, NULL, &model));
    }
    ov_infer_request_free(request);
    return NULL;
}

static void threads(ov_core_t *core) {
    enum { COUNT = 6 };
    ov_compiled_model_t *compiled = compile_text(core, RELU("?", "f32"));
    pthread_t threads[COUNT];
    struct worker workers[COUNT];
    for (int k = 0; k < COUNT; k++) {
        workers[k] = (struct worker){core, compiled, k};
        CHECK(pthread_create(&threads[k], NULL, work, &workers[k]) == 0);
    }
    for (int k = 0; k < COUNT; k++) pthread_join(threads[k], NULL);
    ov_compiled_model_free(compiled);
}

/* An error in a run is an error of the wait. */
static void failing(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, ADD("?"));
    ov_infer_request_t *request = new_request(compiled);
    int64_t two = 2, three = 3;
    ov_tensor_t *a = floats(1, &two, (float[]){1, 2}), *b = floats(1, &three, (float[]){1, 2, 3});
    WORKS(ov_infer_request_set_tensor(request, "a", a));
    WORKS(ov_infer_request_set_tensor(request, "b", b));
    WORKS(ov_infer_request_start_async(request));
    FAILS_WITH(GENERAL_ERROR, "'add' (Add, opset1)", ov_infer_request_wait(request));
    STATUS(GENERAL_ERROR, ov_infer_request_infer(request));
    WORKS(ov_infer_request_set_tensor(request, "b", a));
    WORKS(ov_infer_request_infer(request));
    ov_tensor_free(a);
    ov_tensor_free(b);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

int main(void) {
    ov_core_t *core = new_core();
    callbacks(core);
    freed_in_callback(core);
    busy_and_cancelled(core);
    cut_short(core);
    many_requests(core);
    threads(core);
    failing(core);
    ov_core_free(core);
    return 0;
}
