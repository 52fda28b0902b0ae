/* engine_mixed_ops.c: operations in a region of autocast against the same
 * operations on inputs cast by hand: the same type, the same bits, forward and
 * backward, in every kernel set. */
#include "engine_mixed.h"
#include "tacit/kernels.h"

enum { MAX_ELEMENTS = 512 };

typedef struct shape {
    int ndim;
    size_t d[4];
} shape;

typedef struct op_case {
    const char *name;
    tac_status (*build)(tac_tape *t, tac_tensor **x, tac_tensor **p,
                        tac_tensor **y);
    shape in[3], params[2]; /* end at ndim 0 */
    tac_cast_rule rule;
} op_case;

static tac_status linear(tac_tape *t, tac_tensor **x, tac_tensor **p,
                         tac_tensor **y)
{
    return tac_op_linear(t, x[0], p[0], p[1], TAC_ACT_NONE, y);
}

static tac_status linear_relu(tac_tape *t, tac_tensor **x, tac_tensor **p,
                              tac_tensor **y)
{
    return tac_op_linear(t, x[0], p[0], p[1], TAC_ACT_RELU, y);
}

/* The product of two activations, both with gradients. */
static tac_status product(tac_tape *t, tac_tensor **x, tac_tensor **p,
                          tac_tensor **y)
{
    return tac_op_linear(t, x[0], x[1], p[0], TAC_ACT_NONE, y);
}

static tac_status conv(tac_tape *t, tac_tensor **x, tac_tensor **p,
                       tac_tensor **y)
{
    return tac_op_conv2d(t, x[0], p[0], p[1], 1, 1, TAC_ACT_RELU, y);
}

static tac_status conv_pool(tac_tape *t, tac_tensor **x, tac_tensor **p,
                            tac_tensor **y)
{
    return tac_op_conv2d_max_pool2d(t, x[0], p[0], p[1], 1, 1, 2, 2, y);
}

static tac_status attention(tac_tape *t, tac_tensor **x, tac_tensor **p,
                            tac_tensor **y)
{
    (void)p;
    return tac_op_attention(t, x[0], x[1], x[2], 0.4, 1, y);
}

static tac_status layer_norm(tac_tape *t, tac_tensor **x, tac_tensor **p,
                             tac_tensor **y)
{
    return tac_op_layer_norm(t, x[0], p[0], p[1], 1e-5, y);
}

/* clang-format off */
#define S1(a) {1, {a}}
#define S2(a, b) {2, {a, b}}
#define S3(a, b, c) {3, {a, b, c}}
#define S4(a, b, c, d) {4, {a, b, c, d}}

static const op_case cases[] = {
    {"linear", linear, {S2(5, 7)}, {S2(9, 7), S1(9)}, TAC_CAST_LOW},
    {"linear, no bias", linear, {S2(3, 4)}, {S2(6, 4)}, TAC_CAST_LOW},
    {"linear, relu", linear_relu, {S3(2, 3, 8)}, {S2(17, 8), S1(17)},
     TAC_CAST_LOW},
    {"product", product, {S2(4, 5), S2(3, 5)}, {S1(3)}, TAC_CAST_LOW},
    {"conv2d", conv, {S4(2, 5, 4, 3)}, {S4(4, 3, 3, 3), S1(4)}, TAC_CAST_LOW},
    {"conv2d_max_pool2d", conv_pool, {S4(2, 6, 5, 2)},
     {S4(3, 2, 3, 3), S1(3)}, TAC_CAST_LOW},
    {"attention", attention, {S3(2, 5, 4), S3(2, 6, 4), S3(2, 6, 4)}, {{0, {0}}},
     TAC_CAST_LOW},
    {"layer_norm", layer_norm, {S2(6, 9)}, {S1(9), S1(9)}, TAC_CAST_F32},
};
/* clang-format on */

typedef struct rig {
    eng_world w;
    const op_case *c;
    size_t n_in, n_params;
    float in[3][MAX_ELEMENTS];
    int32_t label;
} rig;

static size_t count(const shape *s)
{
    size_t n = 0;
    tac_shape_count(s->ndim, s->d, &n);
    return n;
}

static rig *rig_open(const op_case *c, const char *isa)
{
    rig *r = calloc(1, sizeof *r);

    r->w = eng_open(isa, TAC_F32, 2);
    r->c = c;
    r->label = 1;
    while (r->n_in < 3 && c->in[r->n_in].ndim > 0) ++r->n_in;
    while (r->n_params < 2 && c->params[r->n_params].ndim > 0) ++r->n_params;
    for (size_t i = 0; i < r->n_in; ++i)
        eng_fill(TAC_F32, r->in[i], count(&c->in[i]), 8, i);
    for (size_t i = 0; i < r->n_params; ++i)
        CHECK_OK(tac_params_add(r->w.params, i ? "b" : "w", c->params[i].ndim,
                                c->params[i].d,
                                (tac_init){TAC_INIT_NORMAL, 0.5}, 0, NULL));
    CHECK_OK(tac_params_layout(r->w.params, NULL, NULL, NULL));
    CHECK_OK(tac_params_init(r->w.params, 4));
    CHECK_OK(tac_tape_create(r->w.params, NULL, &r->w.tape));
    return r;
}

static void rig_close(rig *r)
{
    eng_close(&r->w);
    free(r);
}

/* What one run leaves: the result and all gradients. */
typedef struct outcome {
    tac_dtype dtype;
    unsigned char y[MAX_ELEMENTS * 4], dx[3][MAX_ELEMENTS * 4];
    unsigned char dp[MAX_ELEMENTS * 8];
} outcome;

static tac_status cast_all(tac_tape *t, tac_tensor **x, size_t n,
                           tac_dtype dtype)
{
    for (size_t i = 0; i < n; ++i) TAC_TRY(tac_op_cast(t, x[i], dtype, &x[i]));
    return TAC_OK;
}

/* An operation of rule f32 gets 16-bit inputs. */
static tac_status apply(rig *r, tac_dtype low, int by_hand, tac_tensor **x,
                        tac_tensor **y)
{
    tac_tape *t = r->w.tape;
    tac_tensor *p[2] = {NULL, NULL};
    const int up = r->c->rule == TAC_CAST_F32;

    for (size_t i = 0; i < r->n_params; ++i) p[i] = tac_tape_param(t, i);
    if (up) TAC_TRY(cast_all(t, x, r->n_in, low));
    if (!by_hand) {
        TAC_TRY(mix_begin(t, low, mix_rule, 1, NULL));
        TAC_TRY(r->c->build(t, x, p, y));
        return tac_tape_set_autocast(t, NULL);
    }
    TAC_TRY(cast_all(t, x, r->n_in, up ? TAC_F32 : low));
    TAC_TRY(cast_all(t, p, r->n_params, up ? TAC_F32 : low));
    return r->c->build(t, x, p, y);
}

static tac_status to_loss(rig *r, tac_tensor *y, tac_tensor **loss)
{
    tac_tape *t = r->w.tape;
    tac_tensor *labels;
    tac_xent out;

    TAC_TRY(tac_op_reshape(t, y, 2, (size_t[2]){1, tac_tensor_count(y)}, &y));
    TAC_TRY(tac_op_cast(t, y, TAC_F32, &y));
    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, (size_t[1]){1}, &r->label,
                           0, &labels));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, labels, &out));
    *loss = out.loss;
    return TAC_OK;
}

static tac_status run(rig *r, tac_dtype low, int by_hand, outcome *o)
{
    tac_tape *t = r->w.tape;
    const size_t padded = tac_params_padded(r->w.params) * sizeof(float);
    tac_tensor *in[3], *x[3], *y = NULL, *loss = NULL;

    memset(o, 0, sizeof *o);
    if (padded > 0) memset(tac_params_grads(r->w.params), 0xff, padded);
    TAC_TRY(tac_tape_begin(t, NULL));
    for (size_t i = 0; i < r->n_in; ++i) {
        TAC_TRY(tac_tape_input(t, "x", TAC_F32, r->c->in[i].ndim, r->c->in[i].d,
                               r->in[i], 1, &in[i]));
        x[i] = in[i];
    }
    TAC_TRY(apply(r, low, by_hand, x, &y));
    o->dtype = y->dtype;
    memcpy(o->y, y->data, tac_tensor_bytes(y));
    TAC_TRY(to_loss(r, y, &loss));
    TAC_TRY(tac_tape_backward(t, loss, 3.0));
    for (size_t i = 0; i < r->n_in; ++i)
        memcpy(o->dx[i], tac_tensor_grad(in[i]), tac_tensor_bytes(in[i]));
    for (size_t i = 0; i < r->n_params; ++i) {
        const tac_param *q = tac_params_get(r->w.params, i);
        memcpy(o->dp + q->offset * 4, tac_params_grad(r->w.params, i),
               q->count * 4);
    }
    return TAC_OK;
}

static void as_by_hand(const char *isa, const op_case *c, tac_dtype low)
{
    rig *r = rig_open(c, isa);
    outcome a, b;

    CHECK_OK(run(r, low, 0, &a));
    CHECK_OK(run(r, low, 1, &b));
    const tac_dtype want = c->rule == TAC_CAST_F32 ? TAC_F32 : low;
    CHECK_MSG(a.dtype == want && b.dtype == want, "%s: result in %s", c->name,
              tac_dtype_name(a.dtype));
    CHECK_MSG(memcmp(a.y, b.y, sizeof a.y) == 0, "%s (%s, %s): y differs",
              c->name, isa, tac_dtype_name(low));
    CHECK_MSG(memcmp(a.dx, b.dx, sizeof a.dx) == 0, "%s (%s, %s): dx differs",
              c->name, isa, tac_dtype_name(low));
    CHECK_MSG(memcmp(a.dp, b.dp, sizeof a.dp) == 0,
              "%s (%s, %s): gradients of parameters differ", c->name, isa,
              tac_dtype_name(low));
    rig_close(r);
}

int main(void)
{
    char why[256];

    for (const tac_kernel_set *const *s = tac_cpu_kernel_sets(); *s; ++s) {
        if (!(*s)->available(why, sizeof why)) continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
            for (int k = 0; k < 2; ++k)
                as_by_hand((*s)->name, &cases[i], mix_lows[k]);
    }
    return tac_check_summary();
}
