/* What the tests share: checks, and models to try. */
#pragma once

#include "openvino_c.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                 \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

/* The call must return this status. */
#define STATUS(expected, call)                                                                           \
    do {                                                                                                 \
        ov_status_e status_ = (call);                                                                    \
        if (status_ != (expected)) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %d (%s)\n", __FILE__, __LINE__, #call, (int)status_,          \
                    ov_get_last_err_msg());                                                              \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)
#define WORKS(call) STATUS(OK, call)

/* The call must fail, with a message that holds this. */
#define FAILS_WITH(expected, text, call)                                                                 \
    do {                                                                                                 \
        STATUS(expected, call);                                                                          \
        const char *message_ = ov_get_last_err_msg();                                                    \
        if (!message_ || !strstr(message_, text)) {                                                      \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, message_);                     \
            exit(1);                                                                                     \
        }                                                                                                \
        ov_free(message_);                                                                               \
    } while (0)

/* Whoever runs the programs says so: valgrind hides itself. */
static inline int under_valgrind(void) { return getenv("VINELIFT_VALGRIND") != NULL; }

#define VERSION(opset, id, name, type, data, ports)                                                      \
    "<layer id=\"" #id "\" name=\"" name "\" type=\"" type "\" version=\"opset" #opset "\">" data ports "</layer>"
#define LAYER(id, name, type, data, ports) VERSION(1, id, name, type, data, ports)
#define INPUT(id, name, shape, type)                                                                     \
    LAYER(id, name, "Parameter", "<data shape=\"" shape "\" element_type=\"" type "\"/>",                \
          "<output><port id=\"0\" names=\"" name "\"/></output>")
#define OUTPUT(id, name) LAYER(id, name, "Result", "", "<input><port id=\"0\"/></input>")
#define EDGE_(from, port, to, at)                                                                        \
    "<edge from-layer=\"" #from "\" from-port=\"" #port "\" to-layer=\"" #to "\" to-port=\"" #at "\"/>"
#define NET(name, layers, edges)                                                                         \
    "<net name=\"" name "\" version=\"11\"><layers>" layers "</layers><edges>" edges "</edges></net>"

/* sum = a + b */
#define ADD(shape)                                                                                       \
    NET("adder",                                                                                         \
        INPUT(0, "a", shape, "f32") INPUT(1, "b", shape, "f32")                                          \
            LAYER(2, "add", "Add", "<data auto_broadcast=\"numpy\"/>",                                   \
                  "<input><port id=\"0\"/><port id=\"1\"/></input>"                                      \
                  "<output><port id=\"2\" names=\"sum\"/></output>") OUTPUT(3, "result"),                \
        EDGE_(0, 0, 2, 0) EDGE_(1, 0, 2, 1) EDGE_(2, 2, 3, 0))

/* y = max(x, 0) */
#define RELU(shape, type)                                                                                \
    NET("relu",                                                                                          \
        INPUT(0, "x", shape, type)                                                                       \
            LAYER(1, "relu", "ReLU", "",                                                                 \
                  "<input><port id=\"0\"/></input><output><port id=\"1\" names=\"y\"/></output>")        \
                OUTPUT(2, "result"),                                                                     \
        EDGE_(0, 0, 1, 0) EDGE_(1, 1, 2, 0))

/* A run that takes some milliseconds: a product of matrices. */
#define PRODUCT(shape)                                                                                   \
    NET("product",                                                                                       \
        INPUT(0, "x", shape, "f32")                                                                      \
            LAYER(1, "product", "MatMul", "<data transpose_a=\"false\" transpose_b=\"false\"/>",        \
                  "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>")    \
                OUTPUT(2, "r"),                                                                          \
        EDGE_(0, 0, 1, 0) EDGE_(0, 0, 1, 1) EDGE_(1, 2, 2, 0))

/* y = x + w, with two f32 in the weights */
#define ADD_WEIGHTS                                                                                      \
    NET("weighted",                                                                                      \
        INPUT(0, "x", "2", "f32")                                                                        \
            LAYER(1, "w", "Const", "<data element_type=\"f32\" shape=\"2\" offset=\"0\" size=\"8\"/>",   \
                  "<output><port id=\"0\" precision=\"FP32\"><dim>2</dim></port></output>")              \
                LAYER(2, "add", "Add", "<data auto_broadcast=\"numpy\"/>",                               \
                      "<input><port id=\"0\"/><port id=\"1\"/></input>"                                  \
                      "<output><port id=\"2\" names=\"y\"/></output>") OUTPUT(3, "result"),              \
        EDGE_(0, 0, 2, 0) EDGE_(1, 0, 2, 1) EDGE_(2, 2, 3, 0))

static inline ov_core_t *new_core(void) {
    ov_core_t *core = NULL;
    WORKS(ov_core_create(&core));
    CHECK(core);
    return core;
}

static inline ov_model_t *read_text(ov_core_t *core, const char *text) {
    ov_model_t *model = NULL;
    WORKS(ov_core_read_model_from_memory_buffer(core, text, strlen(text), NULL, &model));
    CHECK(model);
    return model;
}

static inline ov_compiled_model_t *compile_text(ov_core_t *core, const char *text) {
    ov_model_t *model = read_text(core, text);
    ov_compiled_model_t *compiled = NULL;
    WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
    CHECK(compiled);
    ov_model_free(model);
    return compiled;
}

static inline ov_infer_request_t *new_request(ov_compiled_model_t *compiled) {
    ov_infer_request_t *request = NULL;
    WORKS(ov_compiled_model_create_infer_request(compiled, &request));
    CHECK(request);
    return request;
}

/* A tensor with a copy of `values`. */
static inline ov_tensor_t *floats(int64_t rank, const int64_t *dims, const float *values) {
    ov_shape_t shape;
    ov_tensor_t *tensor = NULL;
    void *data = NULL;
    size_t size = 0;
    WORKS(ov_shape_create(rank, dims, &shape));
    WORKS(ov_tensor_create(F32, shape, &tensor));
    WORKS(ov_shape_free(&shape));
    WORKS(ov_tensor_data(tensor, &data));
    WORKS(ov_tensor_get_byte_size(tensor, &size));
    memcpy(data, values, size);
    return tensor;
}

/* Where the elements of a tensor are, which must be this many floats. */
static inline float *floats_of(ov_tensor_t *tensor, size_t count) {
    void *data = NULL;
    size_t size = 0;
    ov_element_type_e type = DYNAMIC;
    WORKS(ov_tensor_get_element_type(tensor, &type));
    CHECK(type == F32);
    WORKS(ov_tensor_get_size(tensor, &size));
    CHECK(size == count);
    WORKS(ov_tensor_data(tensor, &data));
    return data;
}
