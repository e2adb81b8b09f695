/* Models of many inputs and outputs. */
#define _GNU_SOURCE
#include "check.h"

#include <time.h>

/* Each output is the input of the same number without what is below 0, and with a 0 elsewhere. */
static char *text_of(int count) {
    char *text = malloc((size_t)count * 1200 + 200), *end = text;
    end += sprintf(end, "<net name=\"many\" version=\"11\"><layers>");
    for (int k = 0; k < count; k++) {
        end += sprintf(end,
                       "<layer id=\"%d\" name=\"in%d\" type=\"Parameter\" version=\"opset1\">"
                       "<data shape=\"2\" element_type=\"f32\"/><output><port id=\"0\" names=\"x%d\"/></output></layer>"
                       "<layer id=\"%d\" name=\"relu%d\" type=\"ReLU\" version=\"opset1\">"
                       "<input><port id=\"0\"/></input><output><port id=\"1\" names=\"y%d\"/></output></layer>"
                       "<layer id=\"%d\" name=\"out%d\" type=\"Result\" version=\"opset1\">"
                       "<input><port id=\"0\"/></input></layer>",
                       3 * k, k, k, 3 * k + 1, k, k, 3 * k + 2, k);
    }
    end += sprintf(end, "</layers><edges>");
    for (int k = 0; k < count; k++) {
        end += sprintf(end,
                       "<edge from-layer=\"%d\" from-port=\"0\" to-layer=\"%d\" to-port=\"0\"/>"
                       "<edge from-layer=\"%d\" from-port=\"1\" to-layer=\"%d\" to-port=\"0\"/>",
                       3 * k, 3 * k + 1, 3 * k + 1, 3 * k + 2);
    }
    sprintf(end, "</edges></net>");
    return text;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* The microseconds that an inference takes for each port, at best, with all tensors set and asked for. */
static double time_of(ov_core_t *core, int count) {
    char *text = text_of(count);
    ov_model_t *model = read_text(core, text);
    ov_compiled_model_t *compiled = NULL;
    WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
    ov_infer_request_t *request = new_request(compiled);
    ov_output_const_port_t **inputs = calloc((size_t)count, sizeof *inputs);
    ov_output_const_port_t **outputs = calloc((size_t)count, sizeof *outputs);
    ov_tensor_t **tensors = calloc((size_t)count, sizeof *tensors);
    int64_t two = 2;
    for (int k = 0; k < count; k++) {
        WORKS(ov_model_const_input_by_index(model, (size_t)k, &inputs[k]));
        WORKS(ov_compiled_model_output_by_index(compiled, (size_t)k, &outputs[k]));
        tensors[k] = floats(1, &two, (float[]){(float)k, -1});
    }
    double best = 1e30;
    for (int round = 0; round < 7; round++) {
        double start = now();
        for (int k = 0; k < count; k++) {
            WORKS(ov_infer_request_set_tensor_by_const_port(request, inputs[k], tensors[k]));
        }
        WORKS(ov_infer_request_infer(request));
        for (int k = 0; k < count; k++) {
            ov_tensor_t *output = NULL, *named = NULL;
            char name[16];
            WORKS(ov_infer_request_get_tensor_by_const_port(request, outputs[k], &output));
            CHECK(floats_of(output, 2)[0] == (float)k && floats_of(output, 2)[1] == 0);
            sprintf(name, "y%d", k);
            WORKS(ov_infer_request_get_tensor(request, name, &named));
            CHECK(floats_of(named, 2) == floats_of(output, 2));
            ov_tensor_free(named);
            ov_tensor_free(output);
        }
        double time = now() - start;
        if (time < best) best = time;
    }
    for (int k = 0; k < count; k++) {
        ov_output_const_port_free(inputs[k]);
        ov_output_const_port_free(outputs[k]);
        ov_tensor_free(tensors[k]);
    }
    free(inputs);
    free(outputs);
    free(tensors);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    free(text);
    return best / count;
}

int main(int count, char **arguments) {
    ov_core_t *core = new_core();
    double few = time_of(core, 64), many = time_of(core, 1024);
    if (count > 2) printf("%s: %f and %f microseconds a port\n", arguments[2], few, many);
    /* Each port takes the same time, as near as a busy machine tells: not 16 times as much. */
    CHECK(many < 6 * few);
    ov_core_free(core);
    return 0;
}
