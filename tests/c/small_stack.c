/* Calls from the top of a small stack, after which there is no memory. */
#define _GNU_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

static ov_core_t *core;
static ov_model_t *model;
static ov_compiled_model_t *compiled;
static ov_status_e status;
static ucontext_t outside, inside;

/* Runs a function at the top of a stack of its own. */
static void on_small_stack(void (*function)(void)) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 64 << 10;
    char *memory = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(mprotect(memory + page, size, PROT_READ | PROT_WRITE) == 0);
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = memory + page;
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, function, 0);
    status = INFER_CANCELLED; /* What none of these ends with. */
    CHECK(swapcontext(&outside, &inside) == 0);
    munmap(memory, size + 2 * page);
}

static void set(void) { status = ov_core_set_property(core, "CPU", "PERF_COUNT", "YES"); }
static void compile(void) { status = ov_core_compile_model(core, model, "CPU", 0, &compiled); }
static void compile_file(void) {
    status = ov_core_compile_model_from_file(core, "/none.xml", "CPU", 0, &compiled);
}
static void set_compiled(void) {
    status = ov_compiled_model_set_property(compiled, "PERF_COUNT", "YES");
}
static void context(void) {
    ov_remote_context_t *none = NULL;
    status = ov_core_create_context(core, "CPU", 0, &none);
}
static void infer(void) {
    ov_infer_request_t *request = NULL;
    int64_t two = 2;
    ov_tensor_t *tensor = floats(1, &two, (float[]){-1, 2}), *output = NULL;
    WORKS(ov_compiled_model_create_infer_request(compiled, &request));
    WORKS(ov_infer_request_set_input_tensor(request, tensor));
    for (int k = 0; k < 3; k++) WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_output_tensor(request, &output));
    CHECK(floats_of(output, 2)[0] == 0 && floats_of(output, 2)[1] == 2);
    ov_tensor_free(output);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    status = OK;
}

/* As many arguments as are read, most of them on the stack. */
static void many_arguments(void) {
    char *value = NULL;
    ov_compiled_model_t *other = NULL;
    WORKS(ov_core_compile_model(core, model, "CPU", 24, &other, "NUM_STREAMS", "1", "NUM_STREAMS", "2",
                                "NUM_STREAMS", "3", "NUM_STREAMS", "4", "NUM_STREAMS", "5", "NUM_STREAMS", "6",
                                "NUM_STREAMS", "7", "NUM_STREAMS", "8", "NUM_STREAMS", "9", "NUM_STREAMS", "10",
                                "INFERENCE_NUM_THREADS", "12", "NUM_STREAMS", "11"));
    WORKS(ov_compiled_model_get_property(other, "NUM_STREAMS", &value));
    CHECK(!strcmp(value, "11"));
    ov_free(value);
    WORKS(ov_compiled_model_get_property(other, "INFERENCE_NUM_THREADS", &value));
    CHECK(!strcmp(value, "12"));
    ov_free(value);
    ov_compiled_model_free(other);
    FAILS_WITH(NOT_IMPLEMENTED, "26 variable arguments", ov_core_compile_model(core, model, "CPU", 26, &other));
}

/* Without memory for a large stack, there is an error. */
static void no_memory(void) {
    if (under_valgrind()) return; /* It would have none itself. */
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!file) return;
    CHECK(fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limit = before;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    ov_model_t *none = NULL;
    FAILS_WITH(GENERAL_ERROR, "a stack of",
               ov_core_read_model_from_memory_buffer(core, ADD("2"), strlen(ADD("2")), NULL, &none));
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    ov_model_free(read_text(core, ADD("2")));
}

int main(void) {
    core = new_core();
    no_memory();
    model = read_text(core, RELU("?", "f32"));
    many_arguments();
    on_small_stack(set);
    CHECK(status == OK);
    on_small_stack(compile_file);
    CHECK(status == GENERAL_ERROR);
    on_small_stack(context);
    CHECK(status == NOT_IMPLEMENTED);
    on_small_stack(compile);
    CHECK(status == OK);
    on_small_stack(set_compiled);
    CHECK(status == NOT_IMPLEMENTED);
    on_small_stack(infer);
    CHECK(status == OK);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    ov_core_free(core);
    return 0;
}
