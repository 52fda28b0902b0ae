/* engine_ops.c: the gradient of every operation, through the tape.
 *
 * A graph of operations ends in a projection to five logits and a
 * cross-entropy. Its gradients, with the f64 reference kernels, are compared
 * with central differences of the loss in f64; then every kernel set's f32
 * gradients are compared with the f64 ones. Memory is poisoned with
 * not-a-numbers before. */
#include "engine_test.h"
#include "tac_check.h"
#include "tacit/kernels.h"

enum { MAX_TENSORS = 8, MAX_CHECKED = 80 };

typedef struct shape {
    int ndim;
    size_t d[4];
} shape;

typedef struct graph graph;
typedef tac_status build_fn(const graph *g, tac_tape *t, tac_tensor **in,
                            tac_tensor **p, tac_tensor **y);

struct graph {
    const char *name;
    build_fn *build;
    shape in[3], params[5]; /* ends at ndim 0 */
    size_t a, b;            /* settings of the operation */
    tac_act act;
};

/* --- the graphs --- */

static tac_status linear(const graph *g, tac_tape *t, tac_tensor **in,
                         tac_tensor **p, tac_tensor **y)
{
    return tac_op_linear(t, in[0], p[0], p[1], g->act, y);
}

static tac_status conv(const graph *g, tac_tape *t, tac_tensor **in,
                       tac_tensor **p, tac_tensor **y)
{
    return tac_op_conv2d(t, in[0], p[0], p[1], g->a, g->b, g->act, y);
}

static tac_status pool(const graph *g, tac_tape *t, tac_tensor **in,
                       tac_tensor **p, tac_tensor **y)
{
    (void)p;
    return tac_op_max_pool2d(t, in[0], g->a, g->b, y);
}

/* The ReLU's mask is applied by the pooling. */
static tac_status conv_pool(const graph *g, tac_tape *t, tac_tensor **in,
                            tac_tensor **p, tac_tensor **y)
{
    TAC_TRY(tac_op_conv2d(t, in[0], p[0], p[1], 1, 1, g->act, y));
    return tac_op_max_pool2d(t, *y, g->a, g->b, y);
}

/* The same as one operation. */
static tac_status conv_and_pool(const graph *g, tac_tape *t, tac_tensor **in,
                                tac_tensor **p, tac_tensor **y)
{
    return tac_op_conv2d_max_pool2d(t, in[0], p[0], p[1], 1, 1, g->a, g->b, y);
}

/* ... and must not be, since the convolution has another consumer. */
static tac_status conv_pool_branch(const graph *g, tac_tape *t, tac_tensor **in,
                                   tac_tensor **p, tac_tensor **y)
{
    tac_tensor *c, *a, *b, *flat;

    TAC_TRY(tac_op_conv2d(t, in[0], p[0], p[1], 1, 1, g->act, &c));
    TAC_TRY(tac_op_max_pool2d(t, c, 2, 2, &a));
    TAC_TRY(tac_op_flatten(t, a, &a));
    TAC_TRY(tac_op_flatten(t, c, &flat));
    TAC_TRY(tac_op_linear(t, flat, p[2], NULL, TAC_ACT_NONE, &b));
    return tac_op_add(t, a, b, y);
}

static tac_status relu(const graph *g, tac_tape *t, tac_tensor **in,
                       tac_tensor **p, tac_tensor **y)
{
    (void)g;
    (void)p;
    return tac_op_relu(t, in[0], y);
}

static tac_status dropout(const graph *g, tac_tape *t, tac_tensor **in,
                          tac_tensor **p, tac_tensor **y)
{
    (void)p;
    return tac_op_dropout(t, in[0], (float)g->a / 10.0F, y);
}

static tac_status add(const graph *g, tac_tape *t, tac_tensor **in,
                      tac_tensor **p, tac_tensor **y)
{
    (void)g;
    (void)p;
    TAC_TRY(tac_op_add(t, in[0], in[1], y));
    return tac_op_add(t, *y, *y, y); /* twice the same */
}

static tac_status scale(const graph *g, tac_tape *t, tac_tensor **in,
                        tac_tensor **p, tac_tensor **y)
{
    (void)g;
    (void)p;
    return tac_op_scale(t, in[0], -1.75, y);
}

/* Every consumer that can't add to a gradient meets one that is there. */
static tac_status fan_out(const graph *g, tac_tape *t, tac_tensor **in,
                          tac_tensor **p, tac_tensor **y)
{
    tac_tensor *h, *a, *b, *c;

    (void)g;
    TAC_TRY(tac_op_linear(t, in[0], p[0], p[1], TAC_ACT_RELU, &h));
    TAC_TRY(tac_op_relu(t, h, &a));
    TAC_TRY(tac_op_dropout(t, h, 0.4F, &b));
    TAC_TRY(tac_op_scale(t, h, 0.5, &c));
    TAC_TRY(tac_op_add(t, a, b, y));
    TAC_TRY(tac_op_add(t, *y, c, y));
    TAC_TRY(tac_op_linear(t, h, p[2], NULL, TAC_ACT_NONE, &a));
    TAC_TRY(tac_op_add(t, *y, a, y));
    return tac_op_add(t, h, *y, y);
}

/* One weight in two layers, its bias in one of them only. */
static tac_status tied(const graph *g, tac_tape *t, tac_tensor **in,
                       tac_tensor **p, tac_tensor **y)
{
    TAC_TRY(tac_op_linear(t, in[0], p[0], p[1], g->act, y));
    TAC_TRY(tac_op_linear(t, *y, p[0], NULL, g->act, y));
    TAC_TRY(tac_op_linear(t, *y, p[2], p[1], g->act, y));
    return tac_op_linear(t, *y, p[0], p[3], TAC_ACT_NONE, y);
}

/* A product of activations: both operands have gradients, neither is a
 * parameter; and a bias with a gradient over weights without one. */
static tac_status activations(const graph *g, tac_tape *t, tac_tensor **in,
                              tac_tensor **p, tac_tensor **y)
{
    static double constant[12] = {1, -2, 3, 0.5, 0.25, -1, 2, 1, 0.5, 1, -1, 2};
    static float constant32[12] = {1, -2, 3,    0.5F, 0.25F, -1,
                                   2, 1,  0.5F, 1,    -1,    2};
    const size_t size[2] = {4, 3};
    tac_tensor *w;

    (void)g;
    TAC_TRY(tac_op_linear(t, in[0], in[1], NULL, TAC_ACT_NONE, y));
    TAC_TRY(tac_tape_input(t, "constant", tac_tape_dtype(t), 2, size,
                           tac_tape_dtype(t) == TAC_F64 ? (void *)constant
                                                        : (void *)constant32,
                           0, &w));
    return tac_op_linear(t, *y, w, p[0], TAC_ACT_RELU, y);
}

static tac_status small_net(const graph *g, tac_tape *t, tac_tensor **in,
                            tac_tensor **p, tac_tensor **y)
{
    (void)g;
    TAC_TRY(tac_op_conv2d(t, in[0], p[0], p[1], 1, 1, TAC_ACT_RELU, y));
    TAC_TRY(tac_op_max_pool2d(t, *y, 2, 2, y));
    TAC_TRY(tac_op_dropout(t, *y, 0.3F, y));
    TAC_TRY(tac_op_flatten(t, *y, y));
    TAC_TRY(tac_op_linear(t, *y, p[2], p[3], TAC_ACT_RELU, y));
    return tac_op_dropout(t, *y, 0.2F, y);
}

/* clang-format off */
#define S1(a) {1, {a}}
#define S2(a, b) {2, {a, b}}
#define S3(a, b, c) {3, {a, b, c}}
#define S4(a, b, c, d) {4, {a, b, c, d}}

static const graph graphs[] = {
    {"linear 1x1x1", linear, {S2(1, 1)}, {S2(1, 1), S1(1)}, 0, 0, 0},
    {"linear 3x5x7", linear, {S2(3, 5)}, {S2(7, 5), S1(7)}, 0, 0, 0},
    {"linear no bias", linear, {S2(4, 3)}, {S2(2, 3)}, 0, 0, 0},
    {"linear relu", linear, {S2(5, 9)}, {S2(17, 9), S1(17)}, 0, 0, TAC_ACT_RELU},
    {"linear 3-d", linear, {S3(2, 3, 4)}, {S2(5, 4), S1(5)}, 0, 0, TAC_ACT_RELU},
    {"linear 1-d", linear, {S1(6)}, {S2(3, 6), S1(3)}, 0, 0, 0},
    {"conv 1x1", conv, {S4(1, 1, 1, 1)}, {S4(1, 1, 1, 1), S1(1)}, 1, 0, 0},
    {"conv 3x3 pad 1", conv, {S4(2, 5, 4, 3)}, {S4(4, 3, 3, 3), S1(4)}, 1, 1, 0},
    {"conv relu", conv, {S4(2, 6, 5, 1)}, {S4(3, 1, 3, 3), S1(3)}, 1, 1,
     TAC_ACT_RELU},
    {"conv stride 2", conv, {S4(1, 7, 6, 2)}, {S4(3, 2, 3, 2), S1(3)}, 2, 1, 0},
    {"conv pad 2 no bias", conv, {S4(2, 3, 3, 2)}, {S4(2, 2, 2, 3)}, 1, 2, 0},
    {"conv stride over", conv, {S4(1, 5, 5, 1)}, {S4(2, 1, 2, 2), S1(2)}, 3, 0,
     TAC_ACT_RELU},
    {"pool 2x2", pool, {S4(2, 4, 6, 3)}, {S1(1)}, 2, 2, 0},
    {"pool odd", pool, {S4(1, 5, 7, 1)}, {S1(1)}, 2, 2, 0},
    {"pool overlapping", pool, {S4(1, 6, 5, 2)}, {S1(1)}, 3, 2, 0},
    {"pool with gaps", pool, {S4(2, 8, 7, 1)}, {S1(1)}, 2, 3, 0},
    {"pool 1x1", pool, {S4(1, 1, 1, 1)}, {S1(1)}, 1, 1, 0},
    {"conv relu pool", conv_pool, {S4(2, 6, 4, 2)}, {S4(3, 2, 3, 3), S1(3)}, 2,
     2, TAC_ACT_RELU},
    {"conv relu pool overlapping", conv_pool, {S4(1, 7, 7, 1)},
     {S4(2, 1, 3, 3), S1(2)}, 3, 2, TAC_ACT_RELU},
    {"conv pool", conv_pool, {S4(1, 5, 5, 1)}, {S4(2, 1, 3, 3), S1(2)}, 2, 3, 0},
    {"conv and pool", conv_and_pool, {S4(2, 6, 5, 2)}, {S4(3, 2, 3, 3), S1(3)},
     2, 2, TAC_ACT_RELU},
    {"conv and pool overlapping", conv_and_pool, {S4(1, 7, 7, 1)},
     {S4(2, 1, 3, 3), S1(2)}, 3, 2, TAC_ACT_RELU},
    {"conv relu pool and branch", conv_pool_branch, {S4(2, 4, 4, 1)},
     {S4(3, 1, 3, 3), S1(3), S2(12, 48)}, 0, 0, TAC_ACT_RELU},
    {"relu", relu, {S3(3, 2, 5)}, {S1(1)}, 0, 0, 0},
    {"relu 1", relu, {S1(1)}, {S1(1)}, 0, 0, 0},
    {"dropout 0.3", dropout, {S2(5, 13)}, {S1(1)}, 3, 0, 0},
    {"dropout 0.9", dropout, {S1(77)}, {S1(1)}, 9, 0, 0},
    {"dropout 0", dropout, {S1(7)}, {S1(1)}, 0, 0, 0},
    {"add", add, {S2(3, 4), S2(3, 4)}, {S1(1)}, 0, 0, 0},
    {"scale", scale, {S2(3, 5)}, {S1(1)}, 0, 0, 0},
    {"fan out", fan_out, {S2(3, 4)}, {S2(6, 4), S1(6), S2(6, 6)}, 0, 0, 0},
    {"tied weights", tied, {S2(3, 5)}, {S2(5, 5), S1(5), S2(5, 5), S1(5)}, 0, 0,
     TAC_ACT_RELU},
    {"tied weights, plain", tied, {S2(1, 3)}, {S2(3, 3), S1(3), S2(3, 3), S1(3)},
     0, 0, 0},
    {"activations", activations, {S2(2, 5), S2(3, 5)}, {S1(4)}, 0, 0, 0},
    {"small net", small_net, {S4(3, 6, 6, 2)},
     {S4(4, 2, 3, 3), S1(4), S2(7, 36), S1(7)}, 0, 0, 0},
};
/* clang-format on */

/* --- one graph in one world --- */

typedef struct rig {
    const graph *g;
    eng_world w;
    size_t n_in, n_params;
    void *in[3], *projection;
    tac_tensor *in_tensor[3];
    size_t projected; /* elements of the graph's result */
} rig;

static size_t count(const shape *s)
{
    size_t n = 0;
    tac_shape_count(s->ndim, s->d, &n);
    return n;
}

static void must(tac_status s, const char *what)
{
    if (s >= 0) return;
    fprintf(stderr, "%s: %s\n", what, tac_status_name(s));
    exit(1);
}

/* The graph, its projection to (1,5) logits, and half of the loss plus half
 * of it again, so that scalar losses are scaled and added as well. */
static tac_status forward(rig *r, const tac_tape_step *step, tac_tensor **loss)
{
    static int32_t label[1] = {3};
    const size_t one[1] = {1};
    tac_tape *t = r->w.tape;
    tac_tensor *p[5] = {NULL}, *y = NULL, *w, *labels;
    tac_xent x;

    TAC_TRY(tac_tape_begin(t, step));
    for (size_t i = 0; i < r->n_in; ++i)
        TAC_TRY(tac_tape_input(t, "in", tac_tape_dtype(t), r->g->in[i].ndim,
                               r->g->in[i].d, r->in[i], 1, &r->in_tensor[i]));
    for (size_t i = 0; i < r->n_params; ++i) p[i] = tac_tape_param(t, i);
    TAC_TRY(r->g->build(r->g, t, r->in_tensor, p, &y));
    r->projected = tac_tensor_count(y);
    TAC_TRY(tac_op_reshape(t, y, 2, (size_t[2]){1, r->projected}, &y));
    TAC_TRY(tac_tape_input(t, "projection", tac_tape_dtype(t), 2,
                           (size_t[2]){5, r->projected}, r->projection, 0, &w));
    TAC_TRY(tac_op_linear(t, y, w, NULL, TAC_ACT_NONE, &y));
    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, one, label, 0, &labels));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, labels, &x));
    TAC_TRY(tac_op_scale(t, x.loss, 0.5, loss));
    return tac_op_add(t, *loss, *loss, loss);
}

static const tac_tape_step train = {0, 3, 100, 1};

static double loss_now(rig *r)
{
    tac_tensor *loss = NULL;
    must(forward(r, &train, &loss), r->g->name);
    return *(double *)loss->data;
}

static void fill(rig *r, uint64_t seed)
{
    const tac_dtype t = tac_params_dtype(r->w.params);
    const size_t n = 5 * r->projected;

    for (size_t i = 0; i < r->n_in; ++i)
        eng_fill(t, r->in[i], count(&r->g->in[i]), seed, i);
    for (size_t i = 0; i < r->n_params; ++i)
        eng_fill(t, tac_params_value(r->w.params, i), count(&r->g->params[i]),
                 seed, 10 + i);
    for (size_t i = 0; i < n; ++i)
        eng_set(t, r->projection, i,
                eng_value(seed, 20, i) / sqrt((double)r->projected));
}

static eng_counter poisoned;

static rig rig_open(const graph *g, const char *isa, tac_dtype dtype)
{
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    const tac_allocator activations = eng_allocator(&poisoned);
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;
    tac_tensor *loss = NULL;
    rig r = {.g = g, .w = eng_open(isa, dtype, 2)};

    while (r.n_in < 3 && g->in[r.n_in].ndim > 0) ++r.n_in;
    while (r.n_params < 5 && g->params[r.n_params].ndim > 0) ++r.n_params;
    for (size_t i = 0; i < r.n_params; ++i) {
        const char name[3] = {'p', (char)('0' + i), 0};
        must(tac_params_add(r.w.params, name, g->params[i].ndim, g->params[i].d,
                            (tac_init){TAC_INIT_ZEROS, 0}, 0, NULL),
             g->name);
    }
    config.seed = 5;
    config.activations = &activations;
    must(tac_tape_create(r.w.params, &config, &r.w.tape), g->name);
    for (size_t i = 0; i < r.n_in; ++i)
        r.in[i] = calloc(count(&g->in[i]), sizeof(double));
    must(forward(&r, &dry, &loss), g->name);
    must(tac_params_layout(r.w.params, NULL, NULL, NULL), g->name);
    r.projection = calloc(5 * r.projected, sizeof(double));
    return r;
}

static void rig_close(rig *r)
{
    for (size_t i = 0; i < r->n_in; ++i) free(r->in[i]);
    free(r->projection);
    eng_close(&r->w);
}

/* Gradients of all tensors (inputs, then parameters), in f64, to be freed. */
typedef struct grads {
    double *g[MAX_TENSORS];
    size_t n[MAX_TENSORS], tensors;
} grads;

static void take(grads *out, tac_dtype t, const void *g, size_t n)
{
    double *copy = calloc(n + 1, sizeof *copy);

    for (size_t i = 0; i < n; ++i) copy[i] = g != NULL ? eng_get(t, g, i) : NAN;
    out->g[out->tensors] = copy;
    out->n[out->tensors++] = n;
}

static grads run_backward(rig *r)
{
    const tac_dtype t = tac_params_dtype(r->w.params);
    grads out = {.tensors = 0};
    tac_tensor *loss = NULL;

    memset(tac_params_grads(r->w.params), 0xff,
           tac_params_padded(r->w.params) * tac_dtype_size(t));
    must(forward(r, &train, &loss), r->g->name);
    must(tac_tape_backward(r->w.tape, loss, 2.0), r->g->name);
    for (size_t i = 0; i < r->n_in; ++i)
        take(&out, t, tac_tensor_grad(r->in_tensor[i]), count(&r->g->in[i]));
    for (size_t i = 0; i < r->n_params; ++i)
        take(&out, t, tac_params_grad(r->w.params, i), count(&r->g->params[i]));
    return out;
}

static void grads_free(grads *g)
{
    for (size_t i = 0; i < g->tensors; ++i) free(g->g[i]);
}

static double largest(const double *x, size_t n)
{
    double m = 0;
    for (size_t i = 0; i < n; ++i) m = fabs(x[i]) > m ? fabs(x[i]) : m;
    return m;
}

/* --- against central differences --- */

static double difference(rig *r, double *x)
{
    const double h = 1e-5, before = *x;

    *x = before + h;
    const double up = loss_now(r);
    *x = before - h;
    const double down = loss_now(r);
    *x = before;
    return 2.0 * (up - down) / (2 * h); /* backward's scale is 2 */
}

static void check_tensor(rig *r, const grads *g, size_t i, double *x)
{
    const size_t n = g->n[i], stride = 1 + n / MAX_CHECKED;
    const double tolerance = 1e-6 * (largest(g->g[i], n) + 1e-3);

    for (size_t e = 0; e < n; e += stride) {
        const double want = difference(r, &x[e]);
        CHECK_MSG(fabs(g->g[i][e] - want) <= tolerance,
                  "%s: tensor %zu [%zu]: %.12g, by differences %.12g",
                  r->g->name, i, e, g->g[i][e], want);
    }
}

static void central_differences(const graph *g)
{
    rig r = rig_open(g, "ref", TAC_F64);

    for (uint64_t seed = 1; seed <= 3; ++seed) {
        fill(&r, seed);
        grads got = run_backward(&r);
        for (size_t i = 0; i < r.n_in; ++i) check_tensor(&r, &got, i, r.in[i]);
        for (size_t i = 0; i < r.n_params; ++i)
            check_tensor(&r, &got, r.n_in + i, tac_params_value(r.w.params, i));
        grads_free(&got);
    }
    rig_close(&r);
}

/* --- other kernels against the f64 reference --- */

static void compare_sets(const graph *g, const char *isa)
{
    rig ref = rig_open(g, "ref", TAC_F64), r = rig_open(g, isa, TAC_F32);

    fill(&ref, 4);
    fill(&r, 4);
    const double loss = loss_now(&ref);
    CHECK_NEAR(loss_now(&r), loss, 1e-5 * (1 + fabs(loss)));
    grads want = run_backward(&ref), got = run_backward(&r);
    for (size_t i = 0; i < want.tensors; ++i) {
        const double tolerance = 1e-5 * (largest(want.g[i], want.n[i]) + 1e-3);
        for (size_t e = 0; e < want.n[i]; ++e)
            CHECK_MSG(fabs(got.g[i][e] - want.g[i][e]) <= tolerance,
                      "%s, %s: tensor %zu [%zu]: %.9g, reference %.9g", isa,
                      g->name, i, e, got.g[i][e], want.g[i][e]);
    }
    grads_free(&want);
    grads_free(&got);
    rig_close(&ref);
    rig_close(&r);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    const size_t n = sizeof graphs / sizeof *graphs;
    char why[256];

    for (size_t i = 0; i < n; ++i) central_differences(&graphs[i]);
    printf("central differences: %zu graphs, %ld failures\n", n,
           tac_check_failed());
    for (size_t s = 0; sets[s] != NULL; ++s) {
        if (!sets[s]->available(why, sizeof why)) {
            printf("%s: not here: %s\n", sets[s]->name, why);
            continue;
        }
        for (size_t i = 0; i < n; ++i) compare_sets(&graphs[i], sets[s]->name);
        printf("up to %s: %ld failures so far\n", sets[s]->name,
               tac_check_failed());
    }
    return tac_check_summary();
}
