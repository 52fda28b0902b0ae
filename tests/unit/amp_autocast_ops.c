/* amp_autocast_ops.c: every operation of the policy's table is run in a region
 * and by hand: what autocast computes is, to the bit, what the operation
 * computes on inputs that were cast by the caller. */
#include <criterion/criterion.h>

#include "amp_test.h"

enum { MAX = 512 };

enum { W_LIN, B_LIN, W_CONV, B_CONV, W_NORM, B_NORM, PARAMS };

static void add_param(eng_world *w, const char *name, int ndim, size_t a,
                      size_t b, size_t c)
{
    const size_t shape[4] = {a, b, c, c};
    cr_assert_eq(tac_params_add(w->params, name, ndim, shape,
                                (tac_init){TAC_INIT_FAN_IN, 4}, 0, NULL),
                 TAC_OK);
}

static eng_world open_world(tac_dtype dtype)
{
    eng_world w = eng_open(NULL, dtype, 2);

    add_param(&w, "w_lin", 2, 5, 7, 0);
    add_param(&w, "b_lin", 1, 5, 0, 0);
    add_param(&w, "w_conv", 4, 4, 3, 3);
    add_param(&w, "b_conv", 1, 4, 0, 0);
    add_param(&w, "w_norm", 1, 6, 0, 0);
    add_param(&w, "b_norm", 1, 6, 0, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(w.params, 3), TAC_OK);
    cr_assert_eq(tac_tape_create(w.params, NULL, &w.tape), TAC_OK);
    cr_assert_eq(tac_tape_begin(w.tape, NULL), TAC_OK);
    return w;
}

/* --- running one operation by name --- */

/* How inputs and parameters get to the operation: as they are (in a region), or
 * cast by hand to `type`. */
typedef struct hand {
    eng_world *w;
    int by_hand;
    tac_dtype type;
    unsigned char data[3][MAX * 8];
    int used;
} hand;

static tac_tensor *as(hand *h, tac_tensor *x)
{
    tac_tensor *y = NULL;

    if (!h->by_hand) return x;
    cr_assert_eq(tac_op_cast(h->w->tape, x, h->type, &y), TAC_OK);
    return y;
}

static tac_tensor *input(hand *h, tac_dtype dtype, int ndim, size_t a, size_t b,
                         size_t c, size_t d)
{
    const size_t shape[4] = {a, b, c, d};
    tac_tensor *x = NULL;
    size_t n = 0;
    void *data = h->data[h->used];

    cr_assert(tac_shape_count(ndim, shape, &n) && n <= MAX);
    for (size_t i = 0; i < n; ++i) {
        const float v = (float)eng_value(9, (uint64_t)h->used, i);
        const uint16_t half =
            dtype == TAC_F16 ? tac_f32_to_f16(v) : tac_f32_to_bf16(v);
        if (dtype == TAC_F32)
            ((float *)data)[i] = v;
        else if (dtype == TAC_F64)
            ((double *)data)[i] = (double)v;
        else
            ((uint16_t *)data)[i] = half;
    }
    h->used += 1;
    cr_assert_eq(
        tac_tape_input(h->w->tape, "x", dtype, ndim, shape, data, 0, &x),
        TAC_OK);
    return as(h, x);
}

static tac_tensor *param(hand *h, size_t i)
{
    return as(h, tac_tape_param(h->w->tape, i));
}

static tac_tensor *run_linear(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_linear(h->w->tape, input(h, d, 2, 3, 7, 0, 0),
                               param(h, W_LIN), param(h, B_LIN), TAC_ACT_RELU,
                               &y),
                 TAC_OK);
    return y;
}

static tac_tensor *run_conv(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_conv2d(h->w->tape, input(h, d, 4, 2, 5, 5, 3),
                               param(h, W_CONV), param(h, B_CONV), 1, 1,
                               TAC_ACT_NONE, &y),
                 TAC_OK);
    return y;
}

static tac_tensor *run_conv_pool(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_conv2d_max_pool2d(
                     h->w->tape, input(h, d, 4, 2, 6, 6, 3), param(h, W_CONV),
                     param(h, B_CONV), 1, 1, 2, 2, &y),
                 TAC_OK);
    return y;
}

static tac_tensor *run_attention(hand *h, tac_dtype d)
{
    tac_tensor *q = input(h, d, 3, 2, 4, 6, 0), *k = input(h, d, 3, 2, 4, 6, 0);
    tac_tensor *v = input(h, d, 3, 2, 4, 6, 0), *y = NULL;
    cr_assert_eq(tac_op_attention(h->w->tape, q, k, v, 0.5, 1, &y), TAC_OK);
    return y;
}

static tac_tensor *run_xent(hand *h, tac_dtype d)
{
    static int32_t label[3] = {0, 5, -1};
    const size_t n = 3;
    tac_tensor *labels = NULL, *x = input(h, d, 2, 3, 6, 0, 0);
    tac_xent y;

    cr_assert_eq(
        tac_tape_input(h->w->tape, "labels", TAC_I32, 1, &n, label, 0, &labels),
        TAC_OK);
    cr_assert_eq(tac_op_softmax_cross_entropy(h->w->tape, x, labels, &y),
                 TAC_OK);
    cr_assert_eq(y.loss->dtype, TAC_F64);
    return y.rows;
}

static tac_tensor *run_norm(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_layer_norm(h->w->tape, input(h, d, 2, 3, 6, 0, 0),
                                   param(h, W_NORM), param(h, B_NORM), 1e-5,
                                   &y),
                 TAC_OK);
    return y;
}

/* Its second input is f32: the widest of the two is f32 too. */
static tac_tensor *run_add(hand *h, tac_dtype d)
{
    tac_tensor *a = input(h, d, 2, 3, 6, 0, 0);
    tac_tensor *b = input(h, TAC_F32, 2, 3, 6, 0, 0), *y = NULL;
    cr_assert_eq(tac_op_add(h->w->tape, a, b, &y), TAC_OK);
    return y;
}

static tac_tensor *run_relu(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_relu(h->w->tape, input(h, d, 2, 3, 6, 0, 0), &y),
                 TAC_OK);
    return y;
}

static tac_tensor *run_pool(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(
        tac_op_max_pool2d(h->w->tape, input(h, d, 4, 2, 4, 4, 3), 2, 2, &y),
        TAC_OK);
    return y;
}

static tac_tensor *run_dropout(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(
        tac_op_dropout(h->w->tape, input(h, d, 2, 3, 6, 0, 0), 0.25F, &y),
        TAC_OK);
    return y;
}

static tac_tensor *run_scale(hand *h, tac_dtype d)
{
    tac_tensor *y = NULL;
    cr_assert_eq(tac_op_scale(h->w->tape, input(h, d, 2, 3, 6, 0, 0), 0.3, &y),
                 TAC_OK);
    return y;
}

static const struct {
    const char *op;
    tac_tensor *(*run)(hand *h, tac_dtype d);
} runners[] = {
    {"linear", run_linear},
    {"conv2d", run_conv},
    {"conv2d_max_pool2d", run_conv_pool},
    {"attention", run_attention},
    {"softmax_cross_entropy", run_xent},
    {"layer_norm", run_norm},
    {"add", run_add},
    {"relu", run_relu},
    {"max_pool2d", run_pool},
    {"dropout", run_dropout},
    {"scale", run_scale},
};

static size_t runner_of(const char *op)
{
    for (size_t i = 0; i < sizeof runners / sizeof *runners; ++i)
        if (strcmp(runners[i].op, op) == 0) return i;
    cr_assert_fail("the policy lists %s, which this test doesn't run", op);
    return 0;
}

/* What the rule makes of inputs of type d (and f32, for add). */
static tac_dtype computed_in(tac_cast_rule rule, tac_dtype low, tac_dtype d)
{
    switch (rule) {
    case TAC_CAST_LOW: return low;
    case TAC_CAST_F32: return TAC_F32;
    case TAC_CAST_WIDEST: return TAC_F32; /* as run_add has an f32 input */
    case TAC_CAST_NONE: return d;
    }
    return d;
}

/* One operation in one world: the bytes and type of its result. */
static tac_dtype result(const char *op, tac_dtype low, tac_dtype d, int by_hand,
                        tac_dtype type, unsigned char *out, size_t *bytes)
{
    static hand h;
    eng_world w = open_world(TAC_F32);
    tac_autocast region;

    h = (hand){.w = &w, .by_hand = by_hand, .type = type};
    if (!by_hand)
        cr_assert_eq(tac_autocast_begin(w.tape, low, NULL, &region), TAC_OK);
    const tac_tensor *y = runners[runner_of(op)].run(&h, d);
    const tac_dtype dtype = y->dtype;
    *bytes = tac_tensor_bytes(y);
    cr_assert_leq(*bytes, (size_t)MAX * 4);
    memcpy(out, y->data, *bytes);
    if (!by_hand) cr_assert_eq(tac_autocast_end(&region), TAC_OK);
    eng_close(&w);
    return dtype;
}

static void compare_one(const tac_autocast_entry *e, tac_dtype low, tac_dtype d)
{
    static unsigned char a[MAX * 4], b[MAX * 4];
    const tac_dtype want = computed_in(e->rule, low, d);
    size_t na = 0, nb = 0;

    const tac_dtype got = result(e->op, low, d, 0, low, a, &na);
    const tac_dtype hand_got = result(e->op, low, d, 1, want, b, &nb);
    cr_assert_eq(got, want, "%s of %s in a region of %s gives %s", e->op,
                 tac_dtype_name(d), tac_dtype_name(low), tac_dtype_name(got));
    cr_assert_eq(hand_got, want, "%s by hand", e->op);
    cr_assert_eq(na, nb);
    cr_assert_eq(memcmp(a, b, na), 0, "%s of %s in %s: other bits than by hand",
                 e->op, tac_dtype_name(d), tac_dtype_name(low));
}

Test(amp_autocast, every_operation_is_as_if_cast_by_hand)
{
    const tac_dtype lows[] = {TAC_F16, TAC_BF16};

    for (size_t l = 0; l < 2; ++l)
        for (const tac_autocast_entry *e = tac_autocast_policy(); e->op; ++e) {
            compare_one(e, lows[l], TAC_F32);
            compare_one(e, lows[l], lows[l]);
        }
}

/* A region that is not enabled, and one of f32, compute in f32, whatever comes
 * in, and take nothing from the region around them. */
Test(amp_autocast, a_disabled_region_computes_in_f32)
{
    for (const tac_autocast_entry *e = tac_autocast_policy(); e->op; ++e) {
        static hand h;
        eng_world w = open_world(TAC_F32);
        tac_autocast_config off = TAC_AUTOCAST_CONFIG_INIT;
        tac_autocast outer, inner;

        off.enabled = 0;
        cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, NULL, &outer), TAC_OK);
        cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, &off, &inner), TAC_OK);
        h = (hand){.w = &w};
        cr_assert_eq(runners[runner_of(e->op)].run(&h, TAC_F16)->dtype, TAC_F32,
                     "%s", e->op);
        cr_assert_eq(tac_autocast_end(&inner), TAC_OK);
        cr_assert_eq(tac_autocast_begin(w.tape, TAC_F32, NULL, &inner), TAC_OK);
        h = (hand){.w = &w};
        cr_assert_eq(runners[runner_of(e->op)].run(&h, TAC_BF16)->dtype,
                     TAC_F32, "%s", e->op);
        cr_assert_eq(tac_autocast_end(&inner), TAC_OK);
        cr_assert_eq(tac_autocast_end(&outer), TAC_OK);
        eng_close(&w);
    }
}

Test(amp_autocast, f64_takes_no_part)
{
    static hand h;
    eng_world w = open_world(TAC_F64);
    tac_autocast r;

    cr_assert_eq(tac_autocast_begin(w.tape, TAC_F16, NULL, &r), TAC_OK);
    h = (hand){.w = &w};
    cr_assert_eq(run_linear(&h, TAC_F64)->dtype, TAC_F64);
    cr_assert_eq(tac_autocast_end(&r), TAC_OK);
    eng_close(&w);
}
