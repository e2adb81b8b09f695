/* What is done before and after a model. The expected values are OpenVINO 2026.4.1's, on its CPU
 * device; what they come from is in `cases`. */
#include "check.h"

/* y = -x, for one image of 2 by 2 */
#define PORT(id, names, channels)                                                                        \
    "<port id=\"" id "\" precision=\"FP32\" names=\"" names "\"><dim>1</dim><dim>" channels               \
    "</dim><dim>2</dim><dim>2</dim></port>"
#define NEGATIVE(channels)                                                                               \
    NET("negative",                                                                                      \
        LAYER(0, "x", "Parameter", "<data shape=\"1," channels ",2,2\" element_type=\"f32\"/>",          \
              "<output>" PORT("0", "x", channels) "</output>")                                           \
            LAYER(1, "negative", "Negative", "",                                                         \
                  "<input>" PORT("0", "", channels) "</input><output>" PORT("1", "y", channels) "</output>") \
                LAYER(2, "result", "Result", "", "<input>" PORT("0", "", channels) "</input>"),          \
        EDGE_(0, 0, 1, 0) EDGE_(1, 1, 2, 0))

struct parts {
    ov_preprocess_prepostprocessor_t *processor;
    ov_preprocess_input_info_t *input;
    ov_preprocess_input_tensor_info_t *tensor;
    ov_preprocess_input_model_info_t *model;
    ov_preprocess_preprocess_steps_t *steps;
    ov_preprocess_output_info_t *output;
    ov_preprocess_output_tensor_info_t *output_tensor;
};

static ov_layout_t *layout(const char *text) {
    ov_layout_t *layout = NULL;
    WORKS(ov_layout_create(text, &layout));
    return layout;
}

static void set_layouts(struct parts *p, const char *tensor, const char *model) {
    ov_layout_t *of_tensor = layout(tensor), *of_model = layout(model);
    WORKS(ov_preprocess_input_tensor_info_set_layout(p->tensor, of_tensor));
    WORKS(ov_preprocess_input_model_info_set_layout(p->model, of_model));
    ov_layout_free(of_tensor);
    ov_layout_free(of_model);
}

static void images(struct parts *p) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    set_layouts(p, "NHWC", "NCHW");
}

static void mean_and_scale(struct parts *p) {
    images(p);
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_mean(p->steps, 2));
    WORKS(ov_preprocess_preprocess_steps_scale(p->steps, 4));
}

static void of_each_channel(struct parts *p) {
    const float means[] = {1, 2, 3}, scales[] = {1, 10, 100};
    images(p);
    ov_layout_t *planes = layout("NCHW");
    WORKS(ov_preprocess_preprocess_steps_convert_layout(p->steps, planes));
    ov_layout_free(planes);
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_reverse_channels(p->steps));
    WORKS(ov_preprocess_preprocess_steps_mean_multi_channels(p->steps, means, 3));
    WORKS(ov_preprocess_preprocess_steps_scale_multi_channels(p->steps, scales, 3));
}

static void resize(struct parts *p, ov_preprocess_resize_algorithm_e algorithm) {
    images(p);
    WORKS(ov_preprocess_input_tensor_info_set_spatial_static_shape(p->tensor, 3, 4));
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_resize(p->steps, algorithm));
}

static void linear(struct parts *p) { resize(p, RESIZE_LINEAR); }
static void cubic(struct parts *p) { resize(p, RESIZE_CUBIC); }
static void nearest(struct parts *p) { resize(p, RESIZE_NEAREST); }

static void crop(struct parts *p) {
    int32_t begin[] = {0, 1, 1, 0}, end[] = {1, 3, -1, 3};
    int64_t dims[] = {1, 3, 4, 3};
    ov_shape_t shape;
    ov_tensor_t *tensor = NULL;
    WORKS(ov_shape_create(4, dims, &shape));
    WORKS(ov_tensor_create(U8, shape, &tensor));
    WORKS(ov_preprocess_input_tensor_info_set_from(p->tensor, tensor));
    ov_tensor_free(tensor);
    ov_shape_free(&shape);
    set_layouts(p, "NHWC", "NCHW");
    WORKS(ov_preprocess_preprocess_steps_crop(p->steps, begin, 4, end, 4));
}

static void pad(struct parts *p) {
    const int begin[] = {0, 1, 0, 0}, end[] = {0, 0, 1, 0};
    images(p);
    WORKS(ov_preprocess_input_tensor_info_set_spatial_static_shape(p->tensor, 1, 1));
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_pad(p->steps, begin, 4, end, 4, 7.5f, CONSTANT));
}

/* The tensor has the layout of the model, if no other is said. */
static void layout_of_the_model(struct parts *p) {
    const float means[] = {1, 2, 3};
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    ov_layout_t *of_model = layout("NCHW");
    WORKS(ov_preprocess_input_model_info_set_layout(p->model, of_model));
    ov_layout_free(of_model);
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_mean_multi_channels(p->steps, means, 3));
}

/* The tensor has the layout of pictures, if it has colours and no other is said. */
static void colors_alone(struct parts *p) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    ov_layout_t *of_model = layout("NCHW");
    WORKS(ov_preprocess_input_model_info_set_layout(p->model, of_model));
    ov_layout_free(of_model);
    WORKS(ov_preprocess_input_tensor_info_set_color_format(p->tensor, BGR));
    WORKS(ov_preprocess_preprocess_steps_convert_color(p->steps, RGB));
}

static void color(struct parts *p, ov_color_format_e from, ov_color_format_e to) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    ov_layout_t *of_model = layout("NCHW");
    WORKS(ov_preprocess_input_model_info_set_layout(p->model, of_model));
    ov_layout_free(of_model);
    if (from >= RGB) {
        ov_layout_t *of_tensor = layout("NHWC");
        WORKS(ov_preprocess_input_tensor_info_set_layout(p->tensor, of_tensor));
        ov_layout_free(of_tensor);
    }
    if (from == NV12_TWO_PLANES) {
        WORKS(ov_preprocess_input_tensor_info_set_color_format_with_subname(p->tensor, from, 2, "Y", "UV"));
    } else if (from == I420_THREE_PLANES) {
        const char *names[] = {"Y", "U", "V"};
        WORKS(ov_preprocess_input_tensor_info_set_color_format_with_subnames(p->tensor, from, 3, names));
    } else {
        WORKS(ov_preprocess_input_tensor_info_set_color_format(p->tensor, from));
    }
    WORKS(ov_preprocess_preprocess_steps_convert_color(p->steps, to));
}

static void nv12(struct parts *p) { color(p, NV12_SINGLE_PLANE, RGB); }
static void nv12_planes(struct parts *p) { color(p, NV12_TWO_PLANES, BGR); }
static void i420(struct parts *p) { color(p, I420_SINGLE_PLANE, BGR); }
static void i420_planes(struct parts *p) { color(p, I420_THREE_PLANES, RGB); }
static void rgbx(struct parts *p) { color(p, RGBX, RGB); }
static void bgrx(struct parts *p) { color(p, BGRX, RGB); }
static void bgr(struct parts *p) { color(p, BGR, RGB); }
static void gray(struct parts *p) { color(p, RGB, GRAY); }
/* As many channels as the model takes. */
static void gray_channels(struct parts *p) { color(p, GRAY, GRAY); }
static void nv12_gray(struct parts *p) { color(p, NV12_SINGLE_PLANE, GRAY); }
static void nv12_planes_gray(struct parts *p) { color(p, NV12_TWO_PLANES, GRAY); }
static void i420_planes_gray(struct parts *p) { color(p, I420_THREE_PLANES, GRAY); }

/* A layout that names one dim. */
static void named_channels(struct parts *p) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    set_layouts(p, "...C", "NCHW");
}

/* Images without a batch. */
static void hwc(struct parts *p) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    set_layouts(p, "HWC", "NCHW");
}

static void chw(struct parts *p) {
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p->tensor, U8));
    set_layouts(p, "CHW", "NCHW");
}

static void hwc_larger(struct parts *p) {
    hwc(p);
    WORKS(ov_preprocess_input_tensor_info_set_spatial_static_shape(p->tensor, 3, 4));
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p->steps, F32));
    WORKS(ov_preprocess_preprocess_steps_resize(p->steps, RESIZE_LINEAR));
}

static void other_output(struct parts *p) {
    mean_and_scale(p);
    WORKS(ov_preprocess_output_set_element_type(p->output_tensor, I32));
}

struct example {
    const char *name;
    const char *model;
    void (*tell)(struct parts *);
    size_t inputs;
    size_t sizes[3];
    size_t count;
    float expected[12];
};

static const struct example cases[] = {
#include "preprocess_values.h"
};

static void get_parts(const ov_model_t *model, struct parts *p) {
    WORKS(ov_preprocess_prepostprocessor_create(model, &p->processor));
    WORKS(ov_preprocess_prepostprocessor_get_input_info(p->processor, &p->input));
    WORKS(ov_preprocess_input_info_get_tensor_info(p->input, &p->tensor));
    WORKS(ov_preprocess_input_info_get_model_info(p->input, &p->model));
    WORKS(ov_preprocess_input_info_get_preprocess_steps(p->input, &p->steps));
    WORKS(ov_preprocess_prepostprocessor_get_output_info(p->processor, &p->output));
    WORKS(ov_preprocess_output_info_get_tensor_info(p->output, &p->output_tensor));
}

static void free_parts(struct parts *p) {
    ov_preprocess_output_tensor_info_free(p->output_tensor);
    ov_preprocess_output_info_free(p->output);
    ov_preprocess_input_info_free(p->input);
    ov_preprocess_preprocess_steps_free(p->steps);
    ov_preprocess_input_tensor_info_free(p->tensor);
    ov_preprocess_input_model_info_free(p->model);
    ov_preprocess_prepostprocessor_free(p->processor);
}

static void run(ov_core_t *core, const struct example *one, int print) {
    struct parts p;
    ov_model_t *model = read_text(core, one->model), *built = NULL;
    get_parts(model, &p);
    one->tell(&p);
    WORKS(ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);
    ov_model_free(model);
    ov_compiled_model_t *compiled = NULL;
    WORKS(ov_core_compile_model(core, built, "CPU", 2, &compiled, "INFERENCE_PRECISION_HINT", "f32"));
    size_t count = 0;
    WORKS(ov_compiled_model_inputs_size(compiled, &count));
    CHECK(count == one->inputs);
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *tensor = NULL;
    for (size_t k = 0; k < count; k++) {
        void *data = NULL;
        size_t size = 0;
        WORKS(ov_infer_request_get_input_tensor_by_index(request, k, &tensor));
        WORKS(ov_tensor_get_byte_size(tensor, &size));
        CHECK(size == one->sizes[k]);
        WORKS(ov_tensor_data(tensor, &data));
        for (size_t j = 0; j < size; j++) ((uint8_t *)data)[j] = (uint8_t)(40 * k + j * 37 % 211);
        ov_tensor_free(tensor);
    }
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_tensor(request, "y", &tensor));
    ov_element_type_e type = DYNAMIC;
    void *data = NULL;
    WORKS(ov_tensor_get_element_type(tensor, &type));
    WORKS(ov_tensor_get_size(tensor, &count));
    WORKS(ov_tensor_data(tensor, &data));
    CHECK(type == (one->tell == other_output ? I32 : F32));
    if (print) printf("%s: %zu:", one->name, count);
    for (size_t k = 0; k < count; k++) {
        float value = type == I32 ? (float)((int32_t *)data)[k] : ((float *)data)[k];
        if (print) {
            printf(" %.9g,", value);
        } else {
            float difference = value - one->expected[k];
            if (difference > 1e-3f || difference < -1e-3f) {
                fprintf(stderr, "%s[%zu]: %g, expected %g\n", one->name, k, value, one->expected[k]);
                exit(1);
            }
        }
    }
    if (print) printf("\n");
    else CHECK(count == one->count);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(built);
}

/* The steps of a second processor come before those of the first. */
static void twice(ov_core_t *core) {
    ov_model_t *model = read_text(core, NEGATIVE("1")), *halved = NULL, *built = NULL;
    struct parts p;
    get_parts(model, &p);
    WORKS(ov_preprocess_preprocess_steps_scale(p.steps, 2));
    WORKS(ov_preprocess_prepostprocessor_build(p.processor, &halved));
    free_parts(&p);
    get_parts(halved, &p);
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p.tensor, U8));
    WORKS(ov_preprocess_preprocess_steps_convert_element_type(p.steps, F32));
    WORKS(ov_preprocess_preprocess_steps_mean(p.steps, 1));
    WORKS(ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);
    ov_compiled_model_t *compiled = NULL;
    WORKS(ov_core_compile_model(core, built, "CPU", 0, &compiled));
    ov_infer_request_t *request = new_request(compiled);
    ov_tensor_t *tensor = NULL;
    void *data = NULL;
    WORKS(ov_infer_request_get_input_tensor(request, &tensor));
    WORKS(ov_tensor_data(tensor, &data));
    for (int k = 0; k < 4; k++) ((uint8_t *)data)[k] = (uint8_t)(3 * k);
    ov_tensor_free(tensor);
    WORKS(ov_infer_request_infer(request));
    WORKS(ov_infer_request_get_output_tensor(request, &tensor));
    WORKS(ov_tensor_data(tensor, &data));
    for (int k = 0; k < 4; k++) CHECK(((float *)data)[k] == -(3 * k - 1) / 2.0f);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(built);
    ov_model_free(halved);
    ov_model_free(model);
}

static void what_does_not_fit(ov_core_t *core) {
    struct parts p;
    ov_model_t *model = read_text(core, NEGATIVE("3")), *built = NULL;
    ov_preprocess_input_info_t *input = NULL;
    ov_preprocess_output_info_t *output = NULL;

    get_parts(model, &p);
    FAILS_WITH(NOT_FOUND, "no input 'z'",
               ov_preprocess_prepostprocessor_get_input_info_by_name(p.processor, "z", &input));
    WORKS(ov_preprocess_prepostprocessor_get_input_info_by_name(p.processor, "x", &input));
    ov_preprocess_input_info_free(input);
    FAILS_WITH(OUT_OF_BOUNDS, "no input 1",
               ov_preprocess_prepostprocessor_get_input_info_by_index(p.processor, 1, &input));
    WORKS(ov_preprocess_prepostprocessor_get_input_info_by_index(p.processor, 0, &input));
    ov_preprocess_input_info_free(input);
    FAILS_WITH(OUT_OF_BOUNDS, "no output 1",
               ov_preprocess_prepostprocessor_get_output_info_by_index(p.processor, 1, &output));
    WORKS(ov_preprocess_prepostprocessor_get_output_info_by_index(p.processor, 0, &output));
    ov_preprocess_output_info_free(output);
    WORKS(ov_preprocess_prepostprocessor_get_output_info_by_name(p.processor, "y", &output));
    ov_preprocess_output_info_free(output);
    FAILS_WITH(INVALID_C_PARAM, "no resize algorithm 9",
               ov_preprocess_preprocess_steps_resize(p.steps, (ov_preprocess_resize_algorithm_e)9));
    FAILS_WITH(INVALID_C_PARAM, "no colour format 77",
               ov_preprocess_preprocess_steps_convert_color(p.steps, (ov_color_format_e)77));
    FAILS_WITH(INVALID_C_PARAM, "`value_size`", ov_preprocess_preprocess_steps_mean_multi_channels(p.steps, NULL, 0));
    FAILS_WITH(NOT_IMPLEMENTED, "GPU_SURFACE",
               ov_preprocess_input_tensor_info_set_memory_type(p.tensor, "GPU_SURFACE"));
    /* Nothing was told, so nothing changes. */
    WORKS(ov_preprocess_prepostprocessor_build(p.processor, &built));
    ov_model_free(built);
    WORKS(ov_preprocess_input_tensor_info_set_element_type(p.tensor, U8));
    WORKS(ov_preprocess_preprocess_steps_mean(p.steps, 1));
    FAILS_WITH(PARAMETER_MISMATCH, "convert the element type first",
               ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    WORKS(ov_preprocess_preprocess_steps_reverse_channels(p.steps));
    FAILS_WITH(PARAMETER_MISMATCH, "layout is not known", ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    set_layouts(&p, "NHWC", "NCHW");
    WORKS(ov_preprocess_input_tensor_info_set_spatial_static_shape(p.tensor, 5, 5));
    FAILS_WITH(PARAMETER_MISMATCH, "[1, 3, 5, 5], and the model takes [1, 3, 2, 2]",
               ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    set_layouts(&p, "NHW", "NCHW");
    FAILS_WITH(PARAMETER_MISMATCH, "[1, 1, 2, 2], and the model takes [1, 3, 2, 2]",
               ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    set_layouts(&p, "NDHWC", "NCHW");
    FAILS_WITH(PARAMETER_MISMATCH, "not one of 4 dimensions",
               ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    color(&p, RGBX, GRAY);
    FAILS_WITH(NOT_IMPLEMENTED, "cannot be converted", ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    get_parts(model, &p);
    WORKS(ov_preprocess_preprocess_steps_convert_color(p.steps, BGR));
    FAILS_WITH(INVALID_C_PARAM, "colour format is set", ov_preprocess_prepostprocessor_build(p.processor, &built));
    free_parts(&p);

    /* The model itself is as it was. */
    ov_output_const_port_t *port = NULL;
    ov_element_type_e type = DYNAMIC;
    WORKS(ov_model_const_input(model, &port));
    WORKS(ov_port_get_element_type(port, &type));
    CHECK(type == F32);
    ov_output_const_port_free(port);
    ov_model_free(model);
}

int main(int count, char **arguments) {
    int print = count > 2 && strcmp(arguments[2], "print") == 0;
    ov_core_t *core = new_core();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) run(core, &cases[k], print);
    if (!print) twice(core);
    if (!print) what_does_not_fit(core);
    ov_core_free(core);
    return 0;
}
