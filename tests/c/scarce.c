/* A system that gives no threads: models are compiled and run on the threads that there are. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

/* How many threads may be started, and how many were asked for. */
static atomic_int allowed, asked;

/* In place of the C library's, for all that this program loads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    atomic_fetch_add(&asked, 1);
    if (atomic_fetch_sub(&allowed, 1) <= 0) {
        atomic_fetch_add(&allowed, 1);
        return EAGAIN;
    }
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, function, argument);
}

/* Two chains of layers, so that there is more than one kernel to compile. */
#define CHAINS                                                                                           \
    NET("chains",                                                                                        \
        INPUT(0, "x", "?,64", "f32")                                                                     \
            LAYER(1, "product", "MatMul", "<data transpose_a=\"false\" transpose_b=\"true\"/>",         \
                  "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>")    \
                LAYER(2, "soft", "SoftMax", "<data axis=\"1\"/>",                                        \
                      "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")                \
                    OUTPUT(3, "r") OUTPUT(4, "s"),                                                       \
        EDGE_(0, 0, 1, 0) EDGE_(0, 0, 1, 1) EDGE_(1, 2, 2, 0) EDGE_(1, 2, 3, 0) EDGE_(2, 1, 4, 0))

static void give_input(ov_infer_request_t *request, int64_t rows) {
    int64_t dims[] = {rows, 64};
    float values[8 * 64];
    for (int k = 0; k < 8 * 64; k++) values[k] = (float)(k % 3);
    ov_tensor_t *tensor = floats(2, dims, values);
    WORKS(ov_infer_request_set_input_tensor(request, tensor));
    ov_tensor_free(tensor);
}

/* The first product: the sum of 21 times 0, 1 and 4, and a 0. */
static void check_output(ov_infer_request_t *request, int64_t rows) {
    ov_tensor_t *output = NULL;
    WORKS(ov_infer_request_get_output_tensor_by_index(request, 0, &output));
    CHECK(floats_of(output, (size_t)(rows * rows))[0] == 105);
    ov_tensor_free(output);
}

struct called {
    ov_infer_request_t *request;
    atomic_int times;
    int again, waits;
};

static void on_done(void *argument) {
    struct called *called = argument;
    atomic_fetch_add(&called->times, 1);
    if (called->again-- <= 0) return;
    WORKS(ov_infer_request_start_async(called->request));
    if (called->waits) WORKS(ov_infer_request_wait(called->request));
}

static void run_all(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, CHAINS);
    ov_infer_request_t *request = new_request(compiled);
    for (int64_t rows = 1; rows <= 8; rows++) {
        give_input(request, rows);
        WORKS(ov_infer_request_infer(request));
        check_output(request, rows);
    }
    give_input(request, 4);
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    check_output(request, 4);

    /* A callback that starts the next run, more often than a stack is deep. */
    int again = under_valgrind() ? 200 : 20000;
    struct called called = {.request = request, .again = again};
    ov_callback_t callback = {on_done, &called};
    WORKS(ov_infer_request_set_callback(request, &callback));
    WORKS(ov_infer_request_start_async(request));
    while (called.times < again + 1) usleep(100);
    WORKS(ov_infer_request_wait(request));

    /* One that waits for the run that it has started. */
    called = (struct called){.request = request, .again = 5, .waits = 1};
    WORKS(ov_infer_request_start_async(request));
    while (called.times < 6) usleep(100);
    WORKS(ov_infer_request_wait(request));
    check_output(request, 4);

    /* One that starts another request, which is freed while it may not have begun. */
    ov_infer_request_t *other = new_request(compiled);
    give_input(other, 3);
    called = (struct called){.request = other, .again = 1};
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    WORKS(ov_infer_request_wait(other));
    check_output(other, 3);
    ov_infer_request_free(other);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

/* A run of a plan that there is starts no thread. */
static void known_shapes(ov_core_t *core) {
    ov_compiled_model_t *compiled = compile_text(core, RELU("?", "f32"));
    ov_infer_request_t *request = new_request(compiled);
    int64_t two = 2;
    ov_tensor_t *tensor = floats(1, &two, (float[]){1, 2});
    WORKS(ov_infer_request_set_input_tensor(request, tensor));
    WORKS(ov_infer_request_infer(request));
    int before = asked;
    for (int k = 0; k < 100; k++) WORKS(ov_infer_request_infer(request));
    CHECK(asked == before);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

int main(void) {
    ov_core_t *core = new_core();
    WORKS(ov_core_set_property(core, "CPU", "INFERENCE_NUM_THREADS", "3"));
    run_all(core);
    CHECK(asked > 0);
    /* Some are started, not all that are asked for. */
    allowed = 1;
    run_all(core);
    /* There are threads again. */
    allowed = 1000000;
    run_all(core);
    known_shapes(core);
    allowed = 0;
    run_all(core);
    ov_core_free(core);
    return 0;
}
