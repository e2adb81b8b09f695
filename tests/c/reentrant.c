/* Callbacks and last functions of a program: they may call the library, too. */
#include "check.h"

static ov_core_t *core;
static int told;

/* Called while a property is set: everything that looks at properties works. */
static void on_message(const char *message) {
    char *value = NULL;
    CHECK(strstr(message, "has no effect"));
    if (told++ > 0) return; /* Of what is set below. */
    WORKS(ov_core_get_property(core, "CPU", "CACHE_DIR", &value));
    CHECK(!strcmp(value, "somewhere"));
    ov_free(value);
    WORKS(ov_core_set_property(core, "CPU", "CACHE_DIR", "elsewhere"));
    ov_compiled_model_free(compile_text(core, RELU("2", "f32")));
    ov_util_set_log_callback(NULL);
    WORKS(ov_core_set_property(core, "CPU", "CACHE_DIR", "nowhere"));
    ov_util_set_log_callback(on_message);
}

static void messages(void) {
    core = new_core();
    ov_util_set_log_callback(on_message);
    WORKS(ov_core_set_property(core, "CPU", "CACHE_DIR", "somewhere"));
    CHECK(told == 2);
    /* Nothing is kept where one of several is wrong, so there is nothing to tell. */
    ov_property_t properties[] = {{"CACHE_DIR", "somewhere"}, {"PERF_COUNT", "maybe"}};
    STATUS(PARAMETER_MISMATCH, ov_core_set_properties(core, "CPU", 2, properties));
    CHECK(told == 2);
    ov_util_reset_log_callback();
}

static int ended;

/* What a thread, or the process, calls when it ends. The message is that of the last call that failed, before the
 * end or in it. */
static void at_the_end(void) {
    char *value = NULL;
    const char *message = ov_get_last_err_msg();
    CHECK(message && strstr(message, "BEFORE"));
    ov_free(message);
    FAILS_WITH(NOT_FOUND, "NONE", ov_core_get_property(core, "CPU", "NONE", &value));
    char name[3000] = {0};
    memset(name, 'x', sizeof name - 1);
    CHECK(ov_core_get_property(core, "CPU", name, &value) == NOT_FOUND);
    message = ov_get_last_err_msg();
    CHECK(message && strlen(message) == 1023 && strstr(message, "xxx"));
    ov_free(message);
    CHECK(ov_core_get_property(NULL, "CPU", "NONE", &value) == INVALID_C_PARAM);
    ov_compiled_model_t *compiled = compile_text(core, ADD("?"));
    ov_infer_request_t *request = new_request(compiled);
    int64_t two = 2;
    ov_tensor_t *tensor = floats(1, &two, (float[]){1, 2}), *output = NULL;
    WORKS(ov_infer_request_set_tensor(request, "a", tensor));
    WORKS(ov_infer_request_set_tensor(request, "b", tensor));
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    WORKS(ov_infer_request_get_output_tensor(request, &output));
    CHECK(floats_of(output, 2)[1] == 4);
    ov_tensor_free(output);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ended++;
}

static void with_key(void *value) {
    (void)value;
    at_the_end();
}

static void *end_with_key(void *key) {
    CHECK(pthread_setspecific(*(pthread_key_t *)key, key) == 0);
    char *value = NULL;
    FAILS_WITH(NOT_FOUND, "BEFORE", ov_core_get_property(core, "CPU", "BEFORE", &value));
    return NULL;
}

static void process_ends(void) {
    at_the_end();
    CHECK(ended == 3);
}

/* So that a thread for runs is there. A thread that is ending is no place to start one: what the system keeps
 * for that is lost. */
static void run_beside(void) {
    ov_compiled_model_t *compiled = compile_text(core, ADD("2"));
    ov_infer_request_t *request = new_request(compiled);
    WORKS(ov_infer_request_start_async(request));
    WORKS(ov_infer_request_wait(request));
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

int main(void) {
    messages();
    run_beside();
    CHECK(atexit(process_ends) == 0);
    pthread_key_t key;
    CHECK(pthread_key_create(&key, with_key) == 0);
    for (int k = 1; k <= 2; k++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, end_with_key, &key) == 0);
        pthread_join(thread, NULL);
        CHECK(ended == k);
    }
    char *value = NULL;
    FAILS_WITH(NOT_FOUND, "BEFORE", ov_core_get_property(core, "CPU", "BEFORE", &value));
    return 0;
}
