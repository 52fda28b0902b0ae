/* engine_tensor.c: shapes, and the errors of operations. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "engine_test.h"

Test(tensor, counts)
{
    size_t n = 7;
    const size_t a[3] = {2, 3, 5}, zero[3] = {SIZE_MAX, 0, SIZE_MAX};
    const size_t big[2] = {SIZE_MAX / 2, 3}, edge[2] = {SIZE_MAX / 3, 3};

    cr_assert_eq(tac_shape_count(0, NULL, &n), 1);
    cr_assert_eq(n, 1);
    cr_assert_eq(tac_shape_count(3, a, &n), 1);
    cr_assert_eq(n, 30);
    cr_assert_eq(tac_shape_count(2, big, &n), 0);
    cr_assert_eq(n, 30, "written only on success");
    cr_assert_eq(tac_shape_count(2, edge, &n), 1);
    cr_assert_eq(n, SIZE_MAX / 3 * 3);
    cr_assert_eq(tac_shape_count(3, zero, &n), 0, "a 0 excuses no overflow");
    cr_assert_eq(tac_shape_count(2, zero, &n), 1);
    cr_assert_eq(n, 0);
}

Test(tensor, texts)
{
    char buf[64];
    tac_tensor t = {.ndim = 3, .shape = {2, 0, 44}, .dtype = TAC_F32};

    cr_assert_str_eq(tac_tensor_shape_text(&t, buf, sizeof buf), "(2,0,44)");
    cr_assert_str_eq(tac_tensor_shape_text(&t, buf, 4), "(2,");
    t.ndim = 0;
    cr_assert_str_eq(tac_tensor_shape_text(&t, buf, sizeof buf), "()");
    t.ndim = 1;
    cr_assert_str_eq(tac_tensor_shape_text(&t, buf, sizeof buf), "(2)");
    cr_assert_eq(tac_tensor_bytes(&t), 8);
}

/* A tape in a dry step with one weight, fc.weight (4,3), and a bias (4). */
static eng_world small(void)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    const size_t shape[2] = {4, 3};
    const tac_init zero = {TAC_INIT_ZEROS, 0};
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};

    cr_assert_eq(tac_params_add(w.params, "fc.weight", 2, shape, zero, 0, NULL),
                 TAC_OK);
    cr_assert_eq(tac_params_add(w.params, "fc.bias", 1, shape, zero, 0, NULL),
                 TAC_OK);
    cr_assert_eq(tac_tape_create(w.params, NULL, &w.tape), TAC_OK);
    cr_assert_eq(tac_tape_begin(w.tape, &dry), TAC_OK);
    return w;
}

static tac_tensor *input(eng_world *w, tac_dtype dtype, int ndim, size_t a,
                         size_t b, size_t c, size_t d)
{
    const size_t shape[4] = {a, b, c, d};
    tac_tensor *x = NULL;

    cr_assert_eq(
        tac_tape_input(w->tape, "pixels", dtype, ndim, shape, NULL, 0, &x),
        TAC_OK);
    return x;
}

/* The call fails with ARG, leaves the output alone, and its message holds all
 * of `words` (separated by '|'). */
static void wrong(const eng_world *w, tac_status s, const tac_tensor *out,
                  const char *words)
{
    char text[1024], list[256], *save = NULL;

    cr_assert_eq(s, TAC_ERR_ARG, "%s", words);
    cr_assert_null(out);
    eng_error(w, text, sizeof text);
    snprintf(list, sizeof list, "%s", words);
    for (char *p = strtok_r(list, "|", &save); p;
         p = strtok_r(NULL, "|", &save))
        cr_assert_not_null(strstr(text, p), "\"%s\" not in \"%s\"", p, text);
}

Test(ops, shape_errors_name_tensors_and_shapes)
{
    eng_world w = small();
    tac_tape *t = w.tape;
    tac_tensor *fc = tac_tape_param(t, 0), *bias = tac_tape_param(t, 1);
    tac_tensor *x = input(&w, TAC_F32, 2, 8, 5, 0, 0), *y = NULL;
    tac_tensor *img = input(&w, TAC_F32, 4, 2, 6, 6, 1);
    tac_xent xent = {NULL, NULL, NULL};

    wrong(&w, tac_op_linear(t, x, fc, bias, TAC_ACT_NONE, &y), y,
          "linear|pixels (8,5)|fc.weight (4,3)|fc.bias (4)");
    wrong(&w, tac_op_linear(t, NULL, fc, bias, TAC_ACT_NONE, &y), y,
          "linear|x is missing");
    wrong(&w, tac_op_linear(t, x, bias, NULL, TAC_ACT_NONE, &y), y,
          "linear|fc.bias (4)|1 dimensions");
    wrong(&w, tac_op_conv2d(t, img, fc, NULL, 1, 0, TAC_ACT_NONE, &y), y,
          "conv2d|fc.weight (4,3)");
    wrong(&w, tac_op_conv2d(t, img, img, NULL, 1, 0, TAC_ACT_NONE, &y), y,
          "conv2d|pixels (2,6,6,1)|stride 1|pad 0");
    wrong(&w, tac_op_max_pool2d(t, img, 7, 1, &y), y,
          "max_pool2d|pixels (2,6,6,1)|window 7");
    wrong(&w, tac_op_max_pool2d(t, img, 2, 0, &y), y, "stride 0");
    wrong(&w, tac_op_dropout(t, img, 1.0F, &y), y, "dropout|1|[0, 1)");
    wrong(&w, tac_op_add(t, img, x, &y), y,
          "add|pixels (2,6,6,1)|pixels (8,5)");
    wrong(&w, tac_op_reshape(t, img, 2, (const size_t[2]){2, 35}, &y), y,
          "reshape|pixels (2,6,6,1)|(2,35)");
    wrong(&w,
          tac_op_softmax_cross_entropy(t, x, input(&w, TAC_I32, 1, 9, 0, 0, 0),
                                       &xent),
          xent.loss, "softmax_cross_entropy|pixels (8,5)|(9)");
    wrong(&w,
          tac_op_softmax_cross_entropy(t, x, input(&w, TAC_F32, 1, 8, 0, 0, 0),
                                       &xent),
          xent.loss, "i32");
    wrong(&w, tac_op_relu(t, input(&w, TAC_I32, 1, 9, 0, 0, 0), &y), y,
          "relu|i32|f32");
    wrong(&w, tac_tape_backward(t, x, 1.0), NULL, "backward|loss");
    eng_close(&w);
}

Test(ops, calls_in_the_wrong_order)
{
    eng_world w = small();
    tac_tape *t = w.tape;
    tac_tensor *y = NULL;
    size_t order[2];

    cr_assert_eq(tac_tape_begin(t, NULL), TAC_ERR_STATE, "no layout");
    cr_assert_eq(tac_op_relu(t, tac_tape_param(t, 0), &y), TAC_ERR_STATE);
    cr_assert_eq(tac_tape_final_order(t, order), TAC_ERR_STATE);
    cr_assert_eq(tac_tape_unused(t, order), 0);
    cr_assert_null(tac_tape_param(t, 2));
    cr_assert_null(y);
    tac_tape_destroy(NULL);
    eng_close(&w);
}
