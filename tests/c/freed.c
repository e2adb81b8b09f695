/* Requests that are freed beside or inside their callbacks: after that nothing of theirs runs. */
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

enum { EXTENT = 700, COUNT = EXTENT * EXTENT };
static const int64_t DIMS[] = {EXTENT, EXTENT};

/* What a request writes to. It is the program's. */
struct lent {
    float *memory;
    ov_infer_request_t *request;
    atomic_int begun, started, ended;
    ov_status_e status;
};

static ov_infer_request_t *lend(ov_compiled_model_t *compiled, struct lent *lent) {
    ov_infer_request_t *request = new_request(compiled);
    ov_shape_t shape;
    ov_tensor_t *output = NULL;
    memset(lent, 0, sizeof *lent);
    lent->memory = calloc(COUNT, sizeof(float));
    lent->request = request;
    WORKS(ov_shape_create(2, DIMS, &shape));
    WORKS(ov_tensor_create_from_host_ptr(F32, shape, lent->memory, &output));
    WORKS(ov_infer_request_set_output_tensor(request, output));
    ov_tensor_free(output);
    ov_shape_free(&shape);
    return request;
}

static void call_back(struct lent *lent, void (*function)(void *)) {
    ov_callback_t callback = {function, lent};
    WORKS(ov_infer_request_set_callback(lent->request, &callback));
}

/* The memory is the program's again: nothing else writes to it. */
static void is_left_alone(const struct lent *lent) {
    for (int k = 0; k < COUNT; k++) lent->memory[k] = 7;
    usleep(200000);
    for (int k = 0; k < COUNT; k++) CHECK(lent->memory[k] == 7);
}

static void start_late(void *argument) {
    struct lent *lent = argument;
    atomic_fetch_add(&lent->begun, 1);
    usleep(50000); /* By now, the request is being freed. */
    lent->status = ov_infer_request_start_async(lent->request);
    atomic_fetch_add(&lent->ended, 1);
}

/* Freed by another thread while the callback runs, which then wants to start the next run. */
static void freed_beside(ov_compiled_model_t *compiled) {
    struct lent lent;
    ov_infer_request_t *request = lend(compiled, &lent);
    call_back(&lent, start_late);
    WORKS(ov_infer_request_start_async(request));
    while (!lent.begun) usleep(100);
    ov_infer_request_free(request);
    CHECK(lent.ended == 1); /* The callback has returned. */
    is_left_alone(&lent);
    CHECK(lent.begun == 1);
    CHECK(lent.status == INFER_CANCELLED);
    free(lent.memory);
}

static void start_early(void *argument) {
    struct lent *lent = argument;
    if (atomic_fetch_add(&lent->begun, 1) == 0) {
        WORKS(ov_infer_request_start_async(lent->request));
        atomic_fetch_add(&lent->started, 1);
        usleep(50000); /* The other run, and its callback, are over before this one is. */
    }
    atomic_fetch_add(&lent->ended, 1);
}

/* Freed while the callback of an earlier run is still at work. */
static void freed_in_between(ov_compiled_model_t *compiled) {
    for (int late = 0; late < 2; late++) {
        struct lent lent;
        ov_infer_request_t *request = lend(compiled, &lent);
        call_back(&lent, start_early);
        WORKS(ov_infer_request_start_async(request));
        while (!lent.started) usleep(100);
        if (late) usleep(20000);
        ov_infer_request_free(request);
        CHECK(lent.ended == lent.begun);
        int begun = lent.begun;
        is_left_alone(&lent);
        CHECK(lent.begun == begun);
        free(lent.memory);
    }
}

static void start_and_free(void *argument) {
    struct lent *lent = argument;
    atomic_fetch_add(&lent->begun, 1);
    WORKS(ov_infer_request_start_async(lent->request));
    ov_infer_request_free(lent->request);
    is_left_alone(lent);
    atomic_fetch_add(&lent->ended, 1);
}

/* Freed by the callback, which has started another run. */
static void freed_inside(ov_compiled_model_t *compiled) {
    struct lent lent;
    ov_infer_request_t *request = lend(compiled, &lent);
    call_back(&lent, start_and_free);
    WORKS(ov_infer_request_start_async(request));
    while (!lent.ended) usleep(100);
    is_left_alone(&lent);
    CHECK(lent.begun == 1);
    free(lent.memory);
}

static void go_on(void *argument) {
    struct lent *lent = argument;
    atomic_fetch_add(&lent->begun, 1);
    ov_status_e status = ov_infer_request_start_async(lent->request);
    CHECK(status == OK || status == INFER_CANCELLED);
    atomic_fetch_add(&lent->ended, 1);
}

/* Freed at any time, while each callback starts the next run and another thread waits. */
static void *wait_for_it(void *argument) {
    struct lent *lent = argument;
    while (!lent->started) {
        ov_status_e status = ov_infer_request_wait_for(lent->request, 1);
        CHECK(status == OK || status == RESULT_NOT_READY);
    }
    return NULL;
}

static void freed_at_any_time(ov_compiled_model_t *compiled) {
    for (int k = 0; k < 60; k++) {
        struct lent lent;
        pthread_t waiting;
        ov_infer_request_t *request = lend(compiled, &lent);
        call_back(&lent, go_on);
        WORKS(ov_infer_request_start_async(request));
        CHECK(pthread_create(&waiting, NULL, wait_for_it, &lent) == 0);
        usleep((useconds_t)(37 * k));
        lent.started = 1;
        pthread_join(waiting, NULL);
        ov_infer_request_free(request);
        int begun = lent.begun;
        CHECK(lent.ended == begun);
        free(lent.memory);
        if (k % 10 == 0) usleep(1000);
        CHECK(lent.begun == begun);
    }
}

int main(void) {
    ov_core_t *core = new_core();
    ov_compiled_model_t *slow = compile_text(core, PRODUCT("700,700"));
    ov_compiled_model_t *fast = compile_text(core, RELU("700,700", "f32"));
    freed_beside(slow);
    freed_in_between(fast);
    freed_inside(slow);
    freed_at_any_time(fast);
    ov_compiled_model_free(slow);
    ov_compiled_model_free(fast);
    ov_core_free(core);
    return 0;
}
