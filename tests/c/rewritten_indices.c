/* Indices that another thread rewrites while a run reads them: whatever it finds, a run stays inside its tensors.
 * What lies around the data cannot be touched, so that a stray access ends the program. */
#include "check.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Memory of at least `bytes` bytes, with pages that cannot be read or written around it. */
static void *between_guards(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = (size_t)1 << 30;
    size_t inside = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, inside + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED);
    CHECK(mprotect(start + guard, inside, PROT_READ | PROT_WRITE) == 0);
    return start + guard;
}

static void let_go(void *memory, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = (size_t)1 << 30;
    CHECK(munmap((char *)memory - guard, (bytes + page - 1) / page * page + 2 * guard) == 0);
}

typedef struct {
    void *memory;
    size_t count;
    int is_wide;
    int64_t extent;
    atomic_bool over;
} Indices;

static void write_index(Indices *indices, size_t k, int64_t value) {
    if (indices->is_wide) {
        ((volatile int64_t *)indices->memory)[k] = value;
    } else {
        ((volatile int32_t *)indices->memory)[k] = (int32_t)value;
    }
}

/* One index is good and bad in turns for a while, then another: so a run often checks the one and would use the
 * other. */
static void *rewrite(void *argument) {
    Indices *indices = argument;
    static const int64_t bad[] = {100000000, -100000000, 20000000, -20000000};
    for (size_t round = 0; !atomic_load(&indices->over); round++) {
        size_t k = round * 7919 % indices->count;
        for (int again = 0; again < 3000; again++) {
            write_index(indices, k, bad[again % 4]);
            for (int wait = 0; wait < 10; wait++) {
                atomic_signal_fence(memory_order_seq_cst);
            }
            write_index(indices, k, again % indices->extent);
            for (int wait = 0; wait < 30; wait++) {
                atomic_signal_fence(memory_order_seq_cst);
            }
        }
    }
    return NULL;
}

#define PORTS(n) "<input>" n "</input><output><port id=\"9\" names=\"y\"/></output>"
#define PORT(id) "<port id=\"" #id "\"/>"
#define AXIS                                                                                             \
    LAYER(3, "axis", "Const", "<data element_type=\"i64\" shape=\"\" offset=\"0\" size=\"8\"/>",   \
          "<output><port id=\"0\" precision=\"I64\"/></output>")

/* y = op(data, indices) */
#define GATHER(version, op, attributes, data, indices, type)                                             \
    NET("g",                                                                                             \
        INPUT(0, "data", data, "f32") INPUT(1, "indices", indices, type)                                 \
            VERSION(version, 4, "op", op, "<data " attributes "/>", PORTS(PORT(0) PORT(1)))              \
                OUTPUT(5, "result"),                                                                     \
        EDGE_(0, 0, 4, 0) EDGE_(1, 0, 4, 1) EDGE_(4, 9, 5, 0))
/* The same with an axis, which is in the weights. */
#define GATHER_AXIS(version, op, data, indices, type)                                                    \
    NET("g",                                                                                             \
        INPUT(0, "data", data, "f32") INPUT(1, "indices", indices, type) AXIS                         \
            VERSION(version, 4, "op", op, "", PORTS(PORT(0) PORT(1) PORT(2))) OUTPUT(5, "result"),       \
        EDGE_(0, 0, 4, 0) EDGE_(1, 0, 4, 1) EDGE_(3, 0, 4, 2) EDGE_(4, 9, 5, 0))
/* y = op(data, indices, updates) */
#define SCATTER(version, op, attributes, data, indices, updates, type)                                   \
    NET("s",                                                                                             \
        INPUT(0, "data", data, "f32") INPUT(1, "indices", indices, type)                                 \
            INPUT(2, "updates", updates, "f32")                                                          \
                VERSION(version, 4, "op", op, "<data " attributes "/>", PORTS(PORT(0) PORT(1) PORT(2)))  \
                    OUTPUT(5, "result"),                                                                 \
        EDGE_(0, 0, 4, 0) EDGE_(1, 0, 4, 1) EDGE_(2, 0, 4, 2) EDGE_(4, 9, 5, 0))
/* The same with an axis. */
#define SCATTER_AXIS(version, op, attributes, data, indices, updates, type)                              \
    NET("s",                                                                                             \
        INPUT(0, "data", data, "f32") INPUT(1, "indices", indices, type)                                 \
            INPUT(2, "updates", updates, "f32") AXIS                                                  \
                VERSION(version, 4, "op", op, "<data " attributes "/>",                                  \
                        PORTS(PORT(0) PORT(1) PORT(2) PORT(3))) OUTPUT(5, "result"),                     \
        EDGE_(0, 0, 4, 0) EDGE_(1, 0, 4, 1) EDGE_(2, 0, 4, 2) EDGE_(3, 0, 4, 3) EDGE_(4, 9, 5, 0))

/* A model of an operator that reads indices below `extent`. */
typedef struct {
    const char *what, *text;
    int64_t data[3], indices[3], updates[3], axis;
    int64_t extent;
    int is_wide;
} Case;

#define TWICE(what, text, ...) {what, text("i32"), __VA_ARGS__, 0}, {what, text("i64"), __VA_ARGS__, 1}
#define ALONG_ROWS(type) GATHER(6, "GatherElements", "axis=\"1\"", "64,1000", "64,1000", type)
#define SHORT_ROWS(type) GATHER(6, "GatherElements", "axis=\"1\"", "4096,16", "4096,16", type)
#define ALONG_COLUMNS(type) GATHER(6, "GatherElements", "axis=\"0\"", "500,512", "400,512", type)
#define FEW_COLUMNS(type) GATHER(6, "GatherElements", "axis=\"0\"", "4000,3", "8000,3", type)
#define BY_PAIRS(type) GATHER(8, "GatherND", "batch_dims=\"0\"", "300,300", "20000,2", type)
#define BY_ROWS(type) GATHER(8, "GatherND", "batch_dims=\"0\"", "300,8", "20000,1", type)
#define SINGLE(type) GATHER_AXIS(8, "Gather", "3000", "40000", type)
#define ROWS(type) GATHER_AXIS(8, "Gather", "300,16", "9000", type)
#define ELEMENTS(type)                                                                                   \
    SCATTER_AXIS(12, "ScatterElementsUpdate", "reduction=\"none\" use_init_val=\"true\"", "64,1000",     \
                 "64,1000", "64,1000", type)
#define SUMS(type)                                                                                       \
    SCATTER_AXIS(12, "ScatterElementsUpdate", "reduction=\"sum\" use_init_val=\"true\"", "500,512",      \
                 "400,512", "400,512", type)
#define PAIRS(type) SCATTER(4, "ScatterNDUpdate", "", "300,300", "20000,2", "20000", type)
#define UPDATED_ROWS(type) SCATTER_AXIS(3, "ScatterUpdate", "", "300,16", "200", "200,16", type)

static const Case CASES[] = {
    TWICE("elements of rows", ALONG_ROWS, {64, 1000}, {64, 1000}, {0}, 0, 1000),
    TWICE("elements of short rows", SHORT_ROWS, {4096, 16}, {4096, 16}, {0}, 0, 16),
    TWICE("elements of columns", ALONG_COLUMNS, {500, 512}, {400, 512}, {0}, 0, 500),
    TWICE("elements of few columns", FEW_COLUMNS, {4000, 3}, {8000, 3}, {0}, 0, 4000),
    TWICE("by pairs", BY_PAIRS, {300, 300}, {20000, 2}, {0}, 0, 300),
    TWICE("rows by numbers", BY_ROWS, {300, 8}, {20000, 1}, {0}, 0, 300),
    TWICE("numbers", SINGLE, {3000}, {40000}, {0}, 0, 3000),
    TWICE("rows", ROWS, {300, 16}, {9000}, {0}, 0, 300),
    TWICE("updates of elements", ELEMENTS, {64, 1000}, {64, 1000}, {64, 1000}, 1, 1000),
    TWICE("sums of elements", SUMS, {500, 512}, {400, 512}, {400, 512}, 0, 500),
    TWICE("updates by pairs", PAIRS, {300, 300}, {20000, 2}, {20000}, 0, 300),
    TWICE("updates of rows", UPDATED_ROWS, {300, 16}, {200}, {200, 16}, 0, 300),
};

static size_t count_of(const int64_t *dims, int64_t *rank) {
    size_t count = 1;
    for (*rank = 0; *rank < 3 && dims[*rank]; ++*rank) {
        count *= (size_t)dims[*rank];
    }
    return *rank ? count : 0;
}

/* Has an input or output be this memory. */
static void set(ov_infer_request_t *request, const char *name, ov_element_type_e type, const int64_t *dims,
                void *memory) {
    ov_shape_t shape;
    ov_tensor_t *tensor = NULL;
    int64_t rank;
    count_of(dims, &rank);
    WORKS(ov_shape_create(rank, dims, &shape));
    WORKS(ov_tensor_create_from_host_ptr(type, shape, memory, &tensor));
    WORKS(ov_infer_request_set_tensor(request, name, tensor));
    WORKS(ov_shape_free(&shape));
    ov_tensor_free(tensor);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void try(ov_core_t *core, const Case *it, double duration) {
    ov_tensor_t *weights = NULL;
    ov_shape_t eight;
    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    void *axis = NULL;
    WORKS(ov_shape_create(1, (int64_t[]){8}, &eight));
    WORKS(ov_tensor_create(U8, eight, &weights));
    WORKS(ov_tensor_data(weights, &axis));
    memcpy(axis, &it->axis, 8);
    WORKS(ov_core_read_model_from_memory_buffer(core, it->text, strlen(it->text), weights, &model));
    WORKS(ov_core_compile_model(core, model, "CPU", 0, &compiled));
    ov_infer_request_t *request = new_request(compiled);

    int64_t rank;
    size_t data_bytes = 4 * count_of(it->data, &rank), updates_bytes = 4 * count_of(it->updates, &rank);
    Indices indices = {.count = count_of(it->indices, &rank), .is_wide = it->is_wide, .extent = it->extent};
    size_t index_bytes = indices.count * (it->is_wide ? 8 : 4);
    indices.memory = between_guards(index_bytes);
    void *data = between_guards(data_bytes);
    set(request, "data", F32, it->data, data);
    set(request, "indices", it->is_wide ? I64 : I32, it->indices, indices.memory);
    void *updates = NULL, *out = NULL;
    if (updates_bytes) {
        updates = between_guards(updates_bytes);
        out = between_guards(data_bytes);
        set(request, "updates", F32, it->updates, updates);
        set(request, "y", F32, it->data, out);
    }
    WORKS(ov_infer_request_infer(request));

    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, rewrite, &indices) == 0);
    int runs = 0, faults = 0;
    for (double end = seconds() + duration; seconds() < end; runs++) {
        if (ov_infer_request_infer(request) != OK) {
            const char *why = ov_get_last_err_msg();
            CHECK(strstr(why, "indices"));
            ov_free(why);
            faults++;
        }
    }
    atomic_store(&indices.over, true);
    CHECK(pthread_join(writer, NULL) == 0);
    if (getenv("VERBOSE")) {
        printf("%s, %s: %d runs, %d faults\n", it->what, it->is_wide ? "i64" : "i32", runs, faults);
    }
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    ov_tensor_free(weights);
    ov_shape_free(&eight);
    let_go(indices.memory, index_bytes);
    let_go(data, data_bytes);
    if (updates) {
        let_go(updates, updates_bytes);
        let_go(out, data_bytes);
    }
}

/* Each case is a process of its own, so that all are told that fail. */
int main(void) {
    int failed = 0;
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            ov_core_t *core = new_core();
            try(core, &CASES[k], 0.25);
            ov_core_free(core);
            return 0;
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            fprintf(stderr, "%s, %s: status %#x\n", CASES[k].what, CASES[k].is_wide ? "i64" : "i32", status);
            failed = 1;
        }
    }
    return failed;
}
