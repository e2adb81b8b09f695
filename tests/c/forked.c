/* Children that were forked have none of the threads of their parent. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two kernels, large enough for several threads. */
#define KERNELS(shape)                                                                                   \
    NET("kernels",                                                                                       \
        INPUT(0, "x", shape, "f32")                                                                      \
            LAYER(1, "product", "MatMul", "<data transpose_a=\"false\" transpose_b=\"false\"/>",        \
                  "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>")    \
                LAYER(2, "soft", "SoftMax", "<data axis=\"1\"/>",                                        \
                      "<input><port id=\"0\"/></input><output><port id=\"1\"/></output>")                \
                    OUTPUT(3, "r") OUTPUT(4, "s"),                                                       \
        EDGE_(0, 0, 1, 0) EDGE_(0, 0, 1, 1) EDGE_(1, 2, 2, 0) EDGE_(1, 2, 3, 0) EDGE_(2, 1, 4, 0))

enum { EXTENT = 300 };

static void run(ov_infer_request_t *request) {
    static float values[EXTENT * EXTENT];
    int64_t dims[] = {EXTENT, EXTENT};
    for (int k = 0; k < EXTENT * EXTENT; k++) values[k] = 2;
    ov_tensor_t *input = floats(2, dims, values), *output = NULL;
    WORKS(ov_infer_request_set_input_tensor(request, input));
    for (int k = 0; k < 3; k++) {
        if (k % 2) {
            WORKS(ov_infer_request_start_async(request));
            WORKS(ov_infer_request_wait(request));
        } else {
            WORKS(ov_infer_request_infer(request));
        }
        WORKS(ov_infer_request_get_output_tensor_by_index(request, 0, &output));
        const float *found = floats_of(output, EXTENT * EXTENT);
        CHECK(found[0] == 4 * EXTENT && found[EXTENT * EXTENT - 1] == 4 * EXTENT);
        ov_tensor_free(output);
    }
    ov_tensor_free(input);
}

static void compile_and_run(ov_core_t *core, const char *text) {
    ov_compiled_model_t *compiled = compile_text(core, text);
    ov_infer_request_t *request = new_request(compiled);
    run(request);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
}

struct used {
    ov_core_t *core;
    ov_compiled_model_t *compiled;
    ov_infer_request_t *request, *running;
};

/* Ends a child with which all is well. What the threads held that it does not have is lost in it: where leaks are
 * looked for, it leaves no time for that. */
static void end_child(void) {
    if (under_valgrind()) raise(SIGKILL);
    exit(0);
}

static void wait_for_child(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(under_valgrind() ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                           : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What a child does with what it has of its parent. */
static void in_child(struct used *used) {
    compile_and_run(used->core, KERNELS("300,300"));
    compile_and_run(used->core, KERNELS("?,?"));
    run(used->request);
    FAILS_WITH(GENERAL_ERROR, "forked", ov_infer_request_infer(used->running));
    STATUS(GENERAL_ERROR, ov_infer_request_start_async(used->running));
    STATUS(GENERAL_ERROR, ov_infer_request_wait(used->running));
    STATUS(GENERAL_ERROR, ov_infer_request_wait_for(used->running, 1));
    WORKS(ov_infer_request_cancel(used->running));
    ov_infer_request_t *own = new_request(used->compiled);
    run(own);
    pid_t child = fork(); /* A child may have children. */
    CHECK(child >= 0);
    if (child == 0) {
        alarm(under_valgrind() ? 600 : 60);
        run(own);
        compile_and_run(used->core, KERNELS("?,?"));
    } else {
        wait_for_child(child);
    }
    ov_infer_request_free(own);
    ov_infer_request_free(used->request);
    ov_infer_request_free(used->running);
    ov_compiled_model_free(used->compiled);
    ov_core_free(used->core);
    end_child();
}

int main(void) {
    struct used used = {.core = new_core()};
    WORKS(ov_core_set_property(used.core, "CPU", "INFERENCE_NUM_THREADS", "3"));
    used.compiled = compile_text(used.core, KERNELS("300,300"));
    used.request = new_request(used.compiled);
    run(used.request);
    /* It runs for long enough to be running when its process is forked. */
    const char *text = under_valgrind() ? KERNELS("500,500") : KERNELS("1500,1500");
    ov_compiled_model_t *large = compile_text(used.core, text);
    used.running = new_request(large);
    ov_compiled_model_free(large);
    WORKS(ov_infer_request_start_async(used.running));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(under_valgrind() ? 600 : 60);
        in_child(&used);
    }
    wait_for_child(child);
    WORKS(ov_infer_request_cancel(used.running));
    (void)ov_infer_request_wait(used.running);
    run(used.request);
    ov_infer_request_free(used.running);
    ov_infer_request_free(used.request);
    ov_compiled_model_free(used.compiled);
    ov_core_free(used.core);
    return 0;
}
