/* engine_mixed.c: regions of autocast around one weight: which type operations
 * compute in, how often a parameter is cast, where its gradients meet, blocks,
 * masks, the loss scale and what it is for. */
#include "engine_mixed.h"

/* --- a small world of one weight and one bias --- */

enum { SIDE = 4, ROWS = 3 };

typedef struct world {
    eng_world w;
    float x[ROWS * SIDE];
    int32_t labels[ROWS];
} world;

static world world_open(tac_dtype dtype)
{
    const size_t size[2] = {SIDE, SIDE};
    world w = {.w = eng_open(NULL, dtype, 1), .labels = {0, 2, -1}};

    eng_fill(TAC_F32, w.x, ROWS * SIDE, 5, 0);
    CHECK_OK(tac_params_add(w.w.params, "w", 2, size,
                            (tac_init){TAC_INIT_NORMAL, 0.5}, 0, NULL));
    CHECK_OK(tac_params_add(w.w.params, "b", 1, size,
                            (tac_init){TAC_INIT_NORMAL, 0.5}, 0, NULL));
    CHECK_OK(tac_params_layout(w.w.params, NULL, NULL, NULL));
    CHECK_OK(tac_params_init(w.w.params, 6));
    CHECK_OK(tac_tape_create(w.w.params, NULL, &w.w.tape));
    return w;
}

static tac_tensor *start(world *w, unsigned flags)
{
    const tac_tape_step step = {.flags = flags};
    tac_tensor *x = NULL;

    CHECK_OK(tac_tape_begin(w->w.tape, &step));
    CHECK_OK(tac_tape_input(w->w.tape, "x", TAC_F32, 2, (size_t[2]){ROWS, SIDE},
                            w->x, 1, &x));
    return x;
}

static tac_status loss_of(world *w, tac_tensor *y, tac_xent *out)
{
    tac_tape *t = w->w.tape;
    tac_tensor *labels;

    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, (size_t[1]){ROWS},
                           w->labels, 0, &labels));
    return tac_op_softmax_cross_entropy(t, y, labels, out);
}

/* --- types of results --- */

static void losses_are_f32(tac_dtype low)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x, *y, *wide;
    tac_xent a, b;

    x = start(&w, 0);
    CHECK_OK(tac_op_cast(t, x, low, &y));
    CHECK_OK(tac_op_cast(t, y, TAC_F32, &wide));
    CHECK_OK(loss_of(&w, wide, &a));
    CHECK_OK(mix_begin(t, low, mix_rule, 1, NULL));
    CHECK_OK(loss_of(&w, y, &b));
    CHECK_EQ((int)b.rows->dtype, TAC_F32);
    CHECK_EQ((int)b.loss->dtype, TAC_F64);
    CHECK_EQ_MEM(a.rows->data, b.rows->data, ROWS * sizeof(float));
    CHECK_EQ_F64(*(double *)a.loss->data, *(double *)b.loss->data);
    /* Sums of scalar losses take no part. */
    CHECK_OK(tac_op_add(t, b.loss, b.loss, &y));
    CHECK_EQ_F64(*(double *)y->data, 2 * *(double *)b.loss->data);
    eng_close(&w.w);
}

/* 16-bit logits: their probabilities, kept for backward, are f32. */
static void probabilities_are_f32(tac_dtype low)
{
    enum { N = 32, C = 16 };
    world w = world_open(low);
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    tac_tensor *x, *labels;
    tac_xent out;

    CHECK_OK(tac_tape_begin(w.w.tape, &dry));
    CHECK_OK(
        tac_tape_input(w.w.tape, "x", low, 2, (size_t[2]){N, C}, NULL, 1, &x));
    CHECK_OK(tac_tape_input(w.w.tape, "labels", TAC_I32, 1, (size_t[1]){N},
                            NULL, 0, &labels));
    CHECK_OK(tac_op_softmax_cross_entropy(w.w.tape, x, labels, &out));
    CHECK_EQ((int)out.rows->dtype, TAC_F32);
    /* The loss, rows, the flags, and probabilities, at 64 bytes each. */
    CHECK_EQ((long long)tac_tape_high_water(w.w.tape),
             64 + N * 4 + 64 + N * C * 4);
    eng_close(&w.w);
}

static tac_dtype sum_type(tac_tape *t, tac_tensor *a, tac_tensor *b)
{
    tac_tensor *y = NULL;
    return CHECK_OK(tac_op_add(t, a, b, &y)) ? y->dtype : TAC_DTYPE_COUNT;
}

static void sums_take_the_widest(void)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x = start(&w, 0), *f, *bf, *v, *p, *y;

    CHECK_OK(tac_op_cast(t, x, TAC_F16, &f));
    CHECK_OK(tac_op_cast(t, x, TAC_BF16, &bf));
    CHECK_STATUS(tac_op_add(t, f, x, &y), TAC_ERR_ARG);
    CHECK_OK(mix_begin(t, TAC_F16, mix_rule, 1, NULL));
    CHECK_EQ((int)sum_type(t, f, f), TAC_F16);
    CHECK_EQ((int)sum_type(t, bf, bf), TAC_BF16);
    CHECK_EQ((int)sum_type(t, x, x), TAC_F32);
    CHECK_EQ((int)sum_type(t, f, x), TAC_F32);
    CHECK_EQ((int)sum_type(t, x, bf), TAC_F32);
    CHECK_EQ((int)sum_type(t, bf, f), TAC_F32);
    /* An f32 parameter is wider than an f16 activation. */
    CHECK_OK(tac_op_reshape(t, f, 1, (size_t[1]){ROWS * SIDE}, &v));
    CHECK_OK(
        tac_tape_input(t, "v", TAC_F16, 1, (size_t[1]){SIDE}, v->data, 0, &v));
    p = tac_tape_param(t, 1);
    CHECK_EQ((int)sum_type(t, v, p), TAC_F32);
    /* What is not listed keeps its input's type; others must agree. */
    CHECK_OK(tac_op_relu(t, f, &y));
    CHECK_EQ((int)y->dtype, TAC_F16);
    CHECK_OK(tac_op_scale(t, bf, 2, &y));
    CHECK_EQ((int)y->dtype, TAC_BF16);
    CHECK_OK(tac_op_dropout(t, x, 0.5F, &y));
    CHECK_EQ((int)y->dtype, TAC_F32);
    CHECK_OK(tac_op_relu(t, p, &y));
    CHECK_EQ((int)y->dtype, TAC_F32);
    CHECK_OK(mix_begin(t, TAC_F16, mix_none, 1, NULL));
    CHECK_STATUS(tac_op_add(t, f, x, &y), TAC_ERR_ARG);
    CHECK_EQ((int)sum_type(t, p, v), TAC_F16); /* parameters follow */
    CHECK_OK(tac_op_linear(t, bf, tac_tape_param(t, 0), p, TAC_ACT_NONE, &y));
    CHECK_EQ((int)y->dtype, TAC_BF16);
    eng_close(&w.w);
}

static void f64_takes_no_part(void)
{
    world w = world_open(TAC_F64);
    tac_tape *t = w.w.tape;
    double x64[ROWS * SIDE];
    tac_tensor *x, *y;

    for (size_t i = 0; i < ROWS * SIDE; ++i) x64[i] = (double)w.x[i];
    CHECK_OK(tac_tape_begin(t, NULL));
    CHECK_OK(tac_tape_input(t, "x", TAC_F64, 2, (size_t[2]){ROWS, SIDE}, x64, 0,
                            &x));
    CHECK_OK(mix_begin(t, TAC_BF16, mix_rule, 1, NULL));
    CHECK_OK(tac_op_linear(t, x, tac_tape_param(t, 0), tac_tape_param(t, 1),
                           TAC_ACT_NONE, &y));
    CHECK_EQ((int)y->dtype, TAC_F64);
    CHECK_EQ((long long)tac_tape_param_casts(t), 0);
    CHECK_STATUS(tac_op_cast(t, y, TAC_F32, &y), TAC_ERR_ARG);
    CHECK_OK(tac_op_cast(t, y, TAC_F64, &x));
    CHECK(x == y);
    eng_close(&w.w);
}

/* --- what is refused --- */

static void errors(void)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x = start(&w, 0), *f, *y = NULL;
    char text[512];

    CHECK_STATUS(mix_begin(t, TAC_F32, mix_rule, 1, NULL), TAC_ERR_ARG);
    CHECK_STATUS(mix_begin(t, TAC_I32, mix_rule, 1, NULL), TAC_ERR_ARG);
    CHECK_STATUS(mix_begin(t, TAC_F16, NULL, 1, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_tape_set_autocast(
                     t, &(tac_tape_autocast){0, TAC_F16, mix_rule, 1, NULL}),
                 TAC_ERR_ARG);
    CHECK(tac_tape_get_autocast(t) == NULL);
    CHECK_OK(mix_begin(t, TAC_F16, mix_rule, 1, NULL));
    const tac_tape_autocast *on = tac_tape_get_autocast(t);
    CHECK(on != NULL && on->low == TAC_F16 && on->rule == mix_rule);
    CHECK_STATUS(mix_begin(t, TAC_F64, mix_rule, 1, NULL), TAC_ERR_ARG);
    CHECK(tac_tape_get_autocast(t) != NULL); /* as it was */
    CHECK_OK(tac_tape_set_autocast(t, NULL));
    CHECK(tac_tape_get_autocast(t) == NULL);
    CHECK_OK(tac_op_cast(t, x, TAC_F16, &f));
    CHECK_STATUS(
        tac_op_linear(t, f, tac_tape_param(t, 0), NULL, TAC_ACT_NONE, &y),
        TAC_ERR_ARG);
    CHECK(strstr(eng_error(&w.w, text, sizeof text), "tac_op_cast") != NULL);
    CHECK_STATUS(tac_op_cast(t, x, TAC_I32, &y), TAC_ERR_ARG);
    CHECK_STATUS(tac_op_cast(t, NULL, TAC_F16, &y), TAC_ERR_ARG);
    CHECK(y == NULL);
    CHECK_OK(mix_begin(t, TAC_F16, mix_rule, 1, NULL));
    CHECK_STATUS(tac_op_linear(t, NULL, NULL, NULL, TAC_ACT_NONE, &y),
                 TAC_ERR_ARG);
    eng_close(&w.w);
}

/* --- one weight in several types --- */

static void bits_of_product(tac_tape *t, tac_tensor *x, tac_tensor *want)
{
    tac_tensor *y = NULL;

    CHECK_OK(tac_op_linear(t, x, tac_tape_param(t, 0), NULL, TAC_ACT_NONE, &y));
    CHECK_EQ((int)y->dtype, (int)want->dtype);
    CHECK_EQ_MEM(y->data, want->data, tac_tensor_bytes(want));
}

/* Parameters that follow their operations' inputs are kept for each type. */
static void parameters_follow(int cache)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x = start(&w, 0), *in[2], *p, *want[2];

    for (int k = 0; k < 2; ++k) {
        CHECK_OK(tac_op_cast(t, x, mix_lows[k], &in[k]));
        CHECK_OK(tac_op_cast(t, tac_tape_param(t, 0), mix_lows[k], &p));
        CHECK_OK(tac_op_linear(t, in[k], p, NULL, TAC_ACT_NONE, &want[k]));
    }
    CHECK_OK(mix_begin(t, TAC_F16, mix_none, cache, NULL));
    const size_t before = tac_tape_param_casts(t);
    for (int i = 0; i < 4; ++i) bits_of_product(t, in[i % 2], want[i % 2]);
    CHECK_EQ((long long)(tac_tape_param_casts(t) - before), cache ? 2 : 4);
    eng_close(&w.w);
}

/* Working weights serve their own type alone: f16 parameters in a region of
 * bf16, in an operation of f32. */
static void weights_of_another_type(void)
{
    world w = world_open(TAC_F16);
    tac_tape *t = w.w.tape;
    void *weights = mix_weights(w.w.params, TAC_BF16);
    tac_tensor *x = start(&w, 0), *y[2], *b = tac_tape_param(t, 1);

    for (int k = 0; k < 2; ++k) {
        CHECK_OK(mix_begin(t, TAC_BF16, mix_rule, 1, k ? weights : NULL));
        CHECK_OK(tac_op_layer_norm(t, x, b, NULL, 1e-5, &y[k]));
    }
    CHECK_EQ((int)y[0]->dtype, TAC_F32);
    CHECK_EQ_MEM(y[0]->data, y[1]->data, tac_tensor_bytes(y[0]));
    free(weights);
    eng_close(&w.w);
}

/* --- how often a weight is cast --- */

static size_t casts_of(world *w, int uses, unsigned flags)
{
    const size_t before = tac_tape_param_casts(w->w.tape);
    tac_tensor *y = start(w, flags);

    for (int i = 0; i < uses; ++i)
        CHECK_OK(tac_op_linear(w->w.tape, y, tac_tape_param(w->w.tape, 0), NULL,
                               TAC_ACT_NONE, &y));
    return tac_tape_param_casts(w->w.tape) - before;
}

static void weights_are_cast_once(tac_dtype low)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    void *weights = mix_weights(w.w.params, low);
    tac_tensor *y;

    CHECK_OK(mix_begin(t, low, mix_rule, 1, NULL));
    CHECK_EQ((long long)casts_of(&w, 3, 0), 1);
    CHECK_EQ((long long)casts_of(&w, 3, 0), 1); /* it may have changed */
    CHECK_EQ((long long)casts_of(&w, 3, TAC_TAPE_EVAL), 1);
    CHECK_EQ((long long)casts_of(&w, 3, TAC_TAPE_DRY), 0);
    /* A region within the step is another one. */
    casts_of(&w, 2, 0);
    const size_t before = tac_tape_param_casts(t);
    CHECK_OK(mix_begin(t, low, mix_rule, 1, NULL));
    CHECK_OK(tac_tape_input(t, "x", TAC_F32, 2, (size_t[2]){ROWS, SIDE}, w.x, 1,
                            &y));
    CHECK_OK(tac_op_linear(t, y, tac_tape_param(t, 0), NULL, TAC_ACT_NONE, &y));
    CHECK_EQ((long long)(tac_tape_param_casts(t) - before), 1);
    CHECK_OK(mix_begin(t, low, mix_rule, 0, NULL));
    CHECK_EQ((long long)casts_of(&w, 3, 0), 3);
    CHECK_OK(mix_begin(t, low, mix_rule, 1, weights));
    CHECK_EQ((long long)casts_of(&w, 3, 0), 0);
    CHECK_OK(tac_tape_set_autocast(t, NULL));
    CHECK_EQ((long long)casts_of(&w, 3, 0), 0);
    free(weights);
    eng_close(&w.w);
}

/* A kept cast is of one step: a weight that changes is cast again. */
static void casts_are_of_one_step(tac_dtype low)
{
    world w = world_open(TAC_F32);
    tac_tensor *y;

    CHECK_OK(mix_begin(w.w.tape, low, mix_rule, 1, NULL));
    casts_of(&w, 1, 0);
    memset(tac_params_value(w.w.params, 0), 0, SIDE * SIDE * sizeof(float));
    y = start(&w, 0);
    CHECK_OK(tac_op_linear(w.w.tape, y, tac_tape_param(w.w.tape, 0), NULL,
                           TAC_ACT_NONE, &y));
    for (size_t i = 0; i < ROWS * SIDE; ++i)
        CHECK_EQ_F64(eng_get(low, y->data, i), 0);
    eng_close(&w.w);
}

/* --- gradients of a parameter from everywhere at once --- */

/* An activation, or a parameter, as the weight of two products, which make its
 * gradient in f32; and through operations that can't add to a gradient. */
static tac_status twice(tac_tape *t, tac_tensor *x, tac_tensor *v,
                        tac_tensor **y)
{
    tac_tensor *a, *b, *c;

    TAC_TRY(tac_op_relu(t, v, &a));
    TAC_TRY(tac_op_dropout(t, v, 0.25F, &b));
    TAC_TRY(tac_op_linear(t, x, v, NULL, TAC_ACT_NONE, y));
    TAC_TRY(tac_op_linear(t, *y, v, NULL, TAC_ACT_NONE, &c));
    TAC_TRY(tac_op_add(t, *y, c, y));
    TAC_TRY(tac_op_add(t, *y, a, y));
    return tac_op_add(t, *y, b, y);
}

/* The weight w as the product's operand in `low`, as an f32 term, as a 16-bit
 * term, scaled, and under another shape; the same in f64 without casts. */
static tac_status all_uses(world *w, tac_dtype low, void *x_data)
{
    tac_tape *t = w->w.tape;
    const tac_dtype dtype = tac_tape_dtype(t);
    const size_t square[2] = {SIDE, SIDE}, flat[1] = {SIDE * SIDE};
    tac_tensor *p = tac_tape_param(t, 0), *x, *y, *v = p, *s, *p16;
    tac_xent out;
    int32_t *labels = w->labels;

    TAC_TRY(tac_tape_begin(t, NULL));
    TAC_TRY(tac_tape_input(t, "x", dtype, 2, square, x_data, 0, &x));
    if (low != dtype) TAC_TRY(mix_begin(t, low, mix_rule, 1, NULL));
    TAC_TRY(tac_op_linear(t, x, p, tac_tape_param(t, 1), TAC_ACT_NONE, &y));
    TAC_TRY(tac_op_add(t, y, p, &y)); /* f32, with the parameter */
    TAC_TRY(tac_op_linear(t, y, p, tac_tape_param(t, 1), TAC_ACT_NONE, &y));
    if (low != dtype) TAC_TRY(tac_op_cast(t, p, low, &v));
    TAC_TRY(twice(t, x, v, &p16));
    TAC_TRY(tac_op_reshape(t, v, 1, flat, &v));
    TAC_TRY(tac_op_scale(t, v, -0.75, &s)); /* 16 bits, a factor */
    TAC_TRY(tac_op_add(t, v, s, &v));       /* 16 bits, twice */
    TAC_TRY(tac_op_reshape(t, v, 2, square, &v));
    TAC_TRY(tac_op_relu(t, v, &s)); /* can't add */
    TAC_TRY(tac_op_add(t, v, s, &v));
    TAC_TRY(twice(t, x, v, &v)); /* an activation */
    TAC_TRY(tac_op_add(t, v, p16, &v));
    TAC_TRY(tac_op_add(t, y, v, &y));
    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, (size_t[1]){ROWS}, labels,
                           0, &s));
    TAC_TRY(tac_tape_input(t, "top", dtype, 2, (size_t[2]){ROWS, SIDE}, x_data,
                           0, &x));
    TAC_TRY(tac_op_linear(t, x, y, NULL, TAC_ACT_NONE, &y));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, s, &out));
    return tac_tape_backward(t, out.loss, 1.0);
}

/* Roundings on the longest way to the weight: x, w, y of three products
 * forward and the sums between them, and as many on the way back, about 24, of
 * at most one unit and of independent signs: a deviation of sqrt(24 / 3) units,
 * of which twice is allowed. */
enum { UNITS = 6 };

static void all_uses_meet(tac_dtype low)
{
    world ref = world_open(TAC_F64), w = world_open(TAC_F32);
    double x64[SIDE * SIDE], most = 0;
    float x32[SIDE * SIDE];

    for (size_t i = 0; i < SIDE * SIDE; ++i)
        x64[i] = (double)(x32[i] = (float)eng_value(9, 9, i));
    memset(tac_params_grads(w.w.params), 0xff,
           tac_params_padded(w.w.params) * sizeof(float));
    CHECK_OK(all_uses(&ref, TAC_F64, x64));
    CHECK_OK(all_uses(&w, low, x32));
    CHECK_EQ((long long)tac_tape_unused(w.w.tape, NULL), 0);
    for (size_t k = 0; k < 2; ++k) {
        const double *want = tac_params_grad(ref.w.params, k);
        const float *got = tac_params_grad(w.w.params, k);
        const size_t n = tac_params_get(w.w.params, k)->count;
        for (size_t i = 0; i < n; ++i) most = fmax(most, fabs(want[i]));
        for (size_t i = 0; i < n; ++i)
            CHECK_NEAR((double)got[i], want[i], UNITS * mix_unit(low) * most);
    }
    eng_close(&ref.w);
    eng_close(&w.w);
}

/* --- dropout --- */

/* Zeroes of rows `first`, first + stride, ... of the global batch. */
static void mask(tac_dtype dtype, uint64_t first, uint64_t stride,
                 unsigned char *zero)
{
    world w = world_open(dtype == TAC_F64 ? TAC_F64 : TAC_F32);
    const tac_tape_step step = {0, 3, first, stride};
    double ones[ROWS * SIDE];
    tac_tensor *x, *y;

    for (size_t i = 0; i < ROWS * SIDE; ++i) eng_set(dtype, ones, i, 1);
    CHECK_OK(tac_tape_begin(w.w.tape, &step));
    CHECK_OK(tac_tape_input(w.w.tape, "ones", dtype, 2, (size_t[2]){ROWS, SIDE},
                            ones, 0, &x));
    CHECK_OK(tac_op_dropout(w.w.tape, x, 0.5F, &y));
    CHECK_EQ((int)y->dtype, (int)dtype);
    for (size_t i = 0; i < ROWS * SIDE; ++i) {
        const double v = eng_get(dtype, y->data, i);
        CHECK(v == 0 || v == 2);
        zero[i] = v == 0;
    }
    eng_close(&w.w);
}

/* A mask depends on the sample alone, not on the type or on the micro-batch. */
static void masks_are_the_same(void)
{
    static const tac_dtype types[4] = {TAC_F32, TAC_F64, TAC_F16, TAC_BF16};
    unsigned char want[3][ROWS * SIDE], got[ROWS * SIDE];

    for (uint64_t i = 0; i < 3; ++i) mask(TAC_F32, i * ROWS, 1, want[i]);
    CHECK(memcmp(want[0], want[1], sizeof want[0]) != 0);
    for (int k = 0; k < 4; ++k) {
        mask(types[k], ROWS, 1, got);
        CHECK_EQ_MEM(got, want[1], sizeof got);
        mask(types[k], 1, 3, got); /* samples 1, 4, 7 */
        for (size_t i = 0; i < ROWS; ++i)
            CHECK_EQ_MEM(got + i * SIDE, want[i] + SIDE, SIDE);
    }
}

/* --- blocks --- */

/* What comes out is a parameter in another type, made in the block. */
static tac_status cast_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    (void)in;
    TAC_TRY(tac_op_cast(t, tac_tape_param(t, 0), *(tac_dtype *)arg, &out[0]));
    return tac_op_reshape(t, out[0], 2, (size_t[2]){2, 8}, &out[1]);
}

/* A region that a block leaves on stays on, whether or not it runs again. */
static tac_status region_block(tac_tape *t, void *arg, tac_tensor *const *in,
                               tac_tensor **out)
{
    TAC_TRY(mix_begin(t, *(tac_dtype *)arg, mix_rule, 1, NULL));
    return tac_op_relu(t, in[0], &out[0]);
}

/* Another type each time, of the same size: the second time is found out. */
static tac_status fickle_block(tac_tape *t, void *arg, tac_tensor *const *in,
                               tac_tensor **out)
{
    int *calls = arg; /* two in forward, one in backward */
    return tac_op_cast(t, in[0], mix_lows[(*calls)++ / 2], &out[0]);
}

static void another_type_is_found(void)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x;
    tac_xent out;
    int calls = 0;

    tac_tape_set_recompute(t, 1);
    x = start(&w, 0);
    CHECK_OK(tac_tape_block(t, fickle_block, &calls, 1, &x, 1, &x));
    CHECK_OK(tac_op_cast(t, x, TAC_F32, &x));
    CHECK_OK(loss_of(&w, x, &out));
    CHECK_STATUS(tac_tape_backward(t, out.loss, 1), TAC_ERR_STATE);
    CHECK_EQ(calls, 3);
    eng_close(&w.w);
}

static void blocks(int recompute, tac_dtype low)
{
    world w = world_open(TAC_F32);
    tac_tape *t = w.w.tape;
    tac_tensor *x, *y[2], *z;
    tac_xent out;

    tac_tape_set_recompute(t, recompute);
    x = start(&w, 0);
    CHECK_OK(tac_tape_block(t, cast_block, &low, 0, NULL, 2, y));
    for (int i = 0; i < 2; ++i) {
        CHECK_EQ((int)y[i]->dtype, (int)low);
        const float *p = tac_params_value(w.w.params, 0);
        for (size_t k = 0; k < SIDE * SIDE; ++k)
            CHECK_NEAR(eng_get(low, y[i]->data, k), (double)p[k],
                       mix_unit(low) * fabs((double)p[k]));
    }
    CHECK_EQ((long long)y[1]->shape[1], 8);
    CHECK_OK(tac_tape_block(t, region_block, &low, 1, &x, 1, &z));
    CHECK(tac_tape_get_autocast(t) != NULL);
    CHECK_OK(tac_op_linear(t, z, y[0], tac_tape_param(t, 1), TAC_ACT_NONE, &z));
    CHECK_EQ((int)z->dtype, (int)low);
    CHECK_OK(tac_tape_set_autocast(t, NULL));
    CHECK_OK(tac_op_cast(t, z, TAC_F32, &z));
    CHECK_OK(loss_of(&w, z, &out));
    CHECK_OK(tac_tape_backward(t, out.loss, 1));
    CHECK(tac_tape_get_autocast(t) == NULL);
    CHECK_EQ((long long)tac_tape_unused(t, NULL), 0);
    eng_close(&w.w);
}

/* --- underflow --- */

static double step_with(world *w, tac_dtype low, double factor,
                        const float *scale)
{
    tac_tape *t = w->w.tape;
    const float *g = tac_params_grad(w->w.params, 0);
    tac_tensor *x = start(w, 0);
    tac_xent out;
    double sum = 0;

    CHECK_OK(low != TAC_F32 ? mix_begin(t, low, mix_rule, 1, NULL)
                            : tac_tape_set_autocast(t, NULL));
    CHECK_OK(tac_op_linear(t, x, tac_tape_param(t, 0), tac_tape_param(t, 1),
                           TAC_ACT_NONE, &x));
    CHECK_OK(loss_of(w, x, &out));
    CHECK_OK(tac_tape_backward_scaled(t, out.loss, factor, scale));
    for (size_t i = 0; i < SIDE * SIDE; ++i) sum += fabs((double)g[i]);
    return sum;
}

/* Gradients of logits near 1e-8 are below half the smallest f16 number. */
static void scaling_saves_small_gradients(void)
{
    world w = world_open(TAC_F32);
    const float scale = 65536.0F, one = 1.0F;
    float want[SIDE * SIDE];
    const float *g = tac_params_grad(w.w.params, 0);

    CHECK(step_with(&w, TAC_F32, 1e-8, NULL) > 1e-9);
    memcpy(want, g, sizeof want);
    CHECK(step_with(&w, TAC_BF16, 1e-8, NULL) > 1e-9); /* f32's range */
    CHECK_EQ_F64(step_with(&w, TAC_F16, 1e-8, NULL), 0);
    CHECK_EQ_F64(step_with(&w, TAC_F16, 1e-8, &one), 0);
    CHECK(step_with(&w, TAC_F16, 1e-8, &scale) > 1e-5);
    double most = 0;
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        most = fmax(most, fabs((double)want[i]));
    for (size_t i = 0; i < SIDE * SIDE; ++i) /* x, w, b, y, dy */
        CHECK_NEAR((double)g[i] / 65536.0, (double)want[i],
                   8 * mix_unit(TAC_F16) * most);
    eng_close(&w.w);
}

/* The device's scale is a factor beside the host's, in every type. */
static void the_loss_scale_is_a_factor(tac_dtype low)
{
    world w = world_open(TAC_F32);
    const float scale = 8.0F;
    float want[SIDE * SIDE];
    const float *g = tac_params_grad(w.w.params, 0);

    step_with(&w, low, 2.0, NULL);
    memcpy(want, g, sizeof want);
    step_with(&w, low, 0.25, &scale);
    CHECK_EQ_MEM(g, want, sizeof want);
    step_with(&w, low, 2.0, NULL); /* it is of one walk */
    CHECK_EQ_MEM(g, want, sizeof want);
    eng_close(&w.w);
}

int main(void)
{
    sums_take_the_widest();
    f64_takes_no_part();
    errors();
    for (int k = 0; k < 2; ++k) {
        losses_are_f32(mix_lows[k]);
        weights_are_cast_once(mix_lows[k]);
        casts_are_of_one_step(mix_lows[k]);
        all_uses_meet(mix_lows[k]);
        the_loss_scale_is_a_factor(mix_lows[k]);
        probabilities_are_f32(mix_lows[k]);
        parameters_follow(k);
        blocks(0, mix_lows[k]);
        blocks(1, mix_lows[k]);
    }
    masks_are_the_same();
    weights_of_another_type();
    another_type_is_found();
    the_loss_scale_is_a_factor(TAC_F32);
    scaling_saves_small_gradients();
    return tac_check_summary();
}
