/* Shapes, partial shapes, dimensions, layouts, texts of statuses. */
#include "check.h"

static void shapes(void) {
    int64_t dims[] = {1, 3, 0};
    ov_shape_t shape;
    WORKS(ov_shape_create(3, dims, &shape));
    CHECK(shape.rank == 3 && shape.dims != dims && memcmp(shape.dims, dims, sizeof dims) == 0);
    shape.rank = 1; /* Freeing does not depend on it. */
    WORKS(ov_shape_free(&shape));
    CHECK(shape.dims == NULL && shape.rank == 0);
    WORKS(ov_shape_free(&shape));
    WORKS(ov_shape_create(2, NULL, &shape));
    CHECK(shape.dims[0] == 0 && shape.dims[1] == 0);
    WORKS(ov_shape_free(&shape));
    WORKS(ov_shape_create(0, NULL, &shape));
    WORKS(ov_shape_free(&shape));
    FAILS_WITH(INVALID_C_PARAM, "a rank of -1", ov_shape_create(-1, dims, &shape));
    FAILS_WITH(INVALID_C_PARAM, "a rank of 4611686018427387904", ov_shape_create(INT64_MAX / 2 + 1, dims, &shape));
    dims[2] = -5;
    FAILS_WITH(INVALID_C_PARAM, "an extent of -5", ov_shape_create(3, dims, &shape));
}

static void partial_shapes(void) {
    ov_dimension_t dims[] = {{1, 1}, {-1, -1}, {2, 5}};
    ov_partial_shape_t partial, other;
    ov_shape_t shape;
    WORKS(ov_partial_shape_create(3, dims, &partial));
    CHECK(partial.rank.min == 3 && partial.rank.max == 3 && partial.dims[2].max == 5);
    CHECK(ov_partial_shape_is_dynamic(partial));
    const char *text = ov_partial_shape_to_string(partial);
    CHECK(strcmp(text, "{1,?,2..5}") == 0);
    ov_free(text);
    FAILS_WITH(PARAMETER_MISMATCH, "is dynamic", ov_partial_shape_to_shape(partial, &shape));
    ov_partial_shape_free(&partial);
    CHECK(partial.dims == NULL);
    ov_partial_shape_free(&partial);

    int64_t extents[] = {2, 7};
    WORKS(ov_partial_shape_create_static(2, extents, &partial));
    CHECK(!ov_partial_shape_is_dynamic(partial));
    WORKS(ov_partial_shape_to_shape(partial, &shape));
    CHECK(shape.rank == 2 && shape.dims[1] == 7);
    WORKS(ov_shape_to_partial_shape(shape, &other));
    CHECK(other.rank.max == 2 && other.dims[0].min == 2 && other.dims[0].max == 2);
    ov_partial_shape_free(&other);
    ov_shape_free(&shape);
    ov_partial_shape_free(&partial);

    ov_rank_t any = {-1, -1}, two = {2, 2}, wrong = {3, 2};
    WORKS(ov_partial_shape_create_dynamic(any, NULL, &partial));
    CHECK(partial.dims == NULL && ov_rank_is_dynamic(partial.rank));
    text = ov_partial_shape_to_string(partial);
    CHECK(strcmp(text, "?") == 0);
    ov_free(text);
    WORKS(ov_partial_shape_create_dynamic(two, dims, &partial));
    CHECK(!ov_rank_is_dynamic(partial.rank) && partial.dims[1].min == -1);
    ov_partial_shape_free(&partial);
    STATUS(INVALID_C_PARAM, ov_partial_shape_create_dynamic(wrong, dims, &partial));
    STATUS(INVALID_C_PARAM, ov_partial_shape_create(1, &wrong, &partial));
    STATUS(INVALID_C_PARAM, ov_partial_shape_create(-2, dims, &partial));
    extents[0] = -1;
    STATUS(INVALID_C_PARAM, ov_partial_shape_create_static(2, extents, &partial));

    ov_dimension_t fixed = {0, 0}, open = {3, -1};
    CHECK(!ov_dimension_is_dynamic(fixed) && ov_dimension_is_dynamic(open));
}

static void layouts(void) {
    ov_layout_t *layout = NULL;
    WORKS(ov_layout_create("nhwc", &layout));
    const char *text = ov_layout_to_string(layout);
    CHECK(strcmp(text, "[N,H,W,C]") == 0);
    ov_free(text);
    ov_layout_free(layout);
    FAILS_WITH(INVALID_C_PARAM, "a name occurs twice", ov_layout_create("NN", &layout));
}

int main(void) {
    shapes();
    partial_shapes();
    layouts();
    for (int status = 0; status > -19; status--) CHECK(strlen(ov_get_error_info(status)) > 3);
    CHECK(strcmp(ov_get_error_info(OK), "success") == 0);
    return 0;
}
