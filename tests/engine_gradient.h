/* engine_gradient.h: the gradients of one small graph, through the tape.
 *
 * A graph is a function of inputs and parameters; its result is projected to
 * five logits, on which there is a cross-entropy. The graph can be run as a
 * block. Gradients come back as doubles: inputs first, then parameters. */
#ifndef TAC_ENGINE_GRADIENT_H
#define TAC_ENGINE_GRADIENT_H

#include "comm_elements.h"
#include "engine_test.h"
#include "tac_check.h"

enum { GRAPH_IN = 3, GRAPH_PARAMS = 3, GRAPH_ALL = GRAPH_IN + GRAPH_PARAMS };

typedef struct graph_shape {
    int ndim; /* 0 ends a list */
    size_t d[4];
} graph_shape;

typedef struct graph {
    const char *name;
    tac_status (*build)(tac_tape *t, tac_tensor *const *in, tac_tensor **y);
    graph_shape in[GRAPH_IN], params[GRAPH_PARAMS];
} graph;

typedef struct graph_rig {
    const graph *g;
    eng_world w;
    tac_dtype t;
    size_t n_in, n_params, count[GRAPH_ALL], projected;
    void *value[GRAPH_ALL], *projection; /* parameters': the arena's */
    tac_tensor *tensor[GRAPH_ALL];
    eng_counter poison;
    tac_allocator activations;
} graph_rig;

static inline void graph_must(tac_status s, const graph_rig *r)
{
    char text[512] = "";

    if (s >= 0) return;
    fprintf(stderr, "%s: %s: %s\n", r->g->name, tac_status_name(s),
            eng_error(&r->w, text, sizeof text));
    exit(1);
}

/* in: inputs, then parameters. */
static inline tac_status graph_block(tac_tape *t, void *arg,
                                     tac_tensor *const *in, tac_tensor **out)
{
    return ((const graph *)arg)->build(t, in, out);
}

static inline tac_status graph_tensors(graph_rig *r)
{
    for (size_t i = 0; i < r->n_in; ++i)
        TAC_TRY(tac_tape_input(r->w.tape, "in", r->t, r->g->in[i].ndim,
                               r->g->in[i].d, r->value[i], 1, &r->tensor[i]));
    for (size_t i = 0; i < r->n_params; ++i)
        r->tensor[r->n_in + i] = tac_tape_param(r->w.tape, i);
    return TAC_OK;
}

static inline tac_status graph_forward(graph_rig *r, unsigned flags,
                                       tac_tensor **loss)
{
    static int32_t label[1] = {3};
    const tac_tape_step step = {flags, 3, 100, 1};
    tac_tape *t = r->w.tape;
    tac_tensor *y = NULL, *w, *labels;
    tac_xent x;

    TAC_TRY(tac_tape_begin(t, &step));
    TAC_TRY(graph_tensors(r));
    TAC_TRY(tac_tape_block(t, graph_block, (void *)(uintptr_t)r->g,
                           r->n_in + r->n_params, r->tensor, 1, &y));
    r->projected = tac_tensor_count(y);
    TAC_TRY(tac_op_reshape(t, y, 2, (size_t[2]){1, r->projected}, &y));
    TAC_TRY(tac_tape_input(t, "projection", r->t, 2,
                           (size_t[2]){5, r->projected}, r->projection, 0, &w));
    TAC_TRY(tac_op_linear(t, y, w, NULL, TAC_ACT_NONE, &y));
    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, (size_t[1]){1}, label, 0,
                           &labels));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, labels, &x));
    *loss = x.loss;
    return TAC_OK;
}

static inline void graph_register(graph_rig *r)
{
    const graph *g = r->g;

    while (r->n_in < GRAPH_IN && g->in[r->n_in].ndim > 0) ++r->n_in;
    while (r->n_params < GRAPH_PARAMS && g->params[r->n_params].ndim > 0)
        ++r->n_params;
    for (size_t i = 0; i < r->n_in + r->n_params; ++i) {
        const graph_shape *s =
            i < r->n_in ? &g->in[i] : &g->params[i - r->n_in];
        const char name[3] = {'p', (char)('0' + i), 0};
        (void)tac_shape_count(s->ndim, s->d, &r->count[i]);
        if (i < r->n_in)
            r->value[i] = calloc(r->count[i] + 1, sizeof(double));
        else
            graph_must(tac_params_add(r->w.params, name, s->ndim, s->d,
                                      (tac_init){TAC_INIT_ZEROS, 0}, 0, NULL),
                       r);
    }
}

static inline void graph_fill(graph_rig *r, uint64_t seed)
{
    for (size_t i = 0; i < r->n_in + r->n_params; ++i)
        for (size_t e = 0; e < r->count[i]; ++e)
            put(r->value[i], r->t, e, eng_value(seed, i, e));
    for (size_t e = 0; e < 5 * r->projected; ++e)
        put(r->projection, r->t, e,
            eng_value(seed, 20, e) / sqrt((double)r->projected));
}

static inline graph_rig *graph_open(const graph *g, const char *isa,
                                    tac_dtype dtype, int recompute,
                                    uint64_t seed)
{
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;
    tac_tensor *loss = NULL;
    graph_rig *r = calloc(1, sizeof *r);

    r->g = g;
    r->t = dtype;
    r->w = eng_open(isa, dtype, 2);
    graph_register(r);
    r->activations = eng_allocator(&r->poison);
    config.activations = &r->activations;
    config.recompute = recompute;
    graph_must(tac_tape_create(r->w.params, &config, &r->w.tape), r);
    graph_must(graph_forward(r, TAC_TAPE_DRY, &loss), r);
    graph_must(tac_params_layout(r->w.params, NULL, NULL, NULL), r);
    for (size_t i = 0; i < r->n_params; ++i)
        r->value[r->n_in + i] = tac_params_value(r->w.params, i);
    r->projection = calloc(5 * r->projected + 1, sizeof(double));
    graph_fill(r, seed);
    return r;
}

static inline void graph_close(graph_rig *r)
{
    for (size_t i = 0; i < r->n_in; ++i) free(r->value[i]);
    free(r->projection);
    eng_close(&r->w);
    free(r);
}

/* Gradients of all tensors as doubles. */
typedef struct graph_grads {
    double *g[GRAPH_ALL], loss;
    size_t n[GRAPH_ALL], tensors;
} graph_grads;

static inline graph_grads graph_take(graph_rig *r, double loss)
{
    graph_grads out = {.loss = loss, .tensors = r->n_in + r->n_params};

    for (size_t i = 0; i < out.tensors; ++i) {
        const int param = i >= r->n_in;
        const void *g = tac_tensor_grad(r->tensor[i]);
        const tac_dtype t = param ? tac_params_grad_dtype(r->w.params) : r->t;
        out.n[i] = r->count[i];
        out.g[i] = calloc(r->count[i] + 1, sizeof(double));
        for (size_t e = 0; e < r->count[i]; ++e)
            out.g[i][e] = g != NULL ? get(g, t, e) : (double)NAN;
    }
    return out;
}

/* One training step; gradients start as not-a-numbers unless they are added
 * to. */
static inline graph_grads graph_backward(graph_rig *r, unsigned flags)
{
    const size_t bytes = tac_params_padded(r->w.params) *
                         tac_dtype_size(tac_params_grad_dtype(r->w.params));
    tac_tensor *loss = NULL;

    if ((flags & TAC_TAPE_ACCUMULATE) == 0 && bytes > 0)
        memset(tac_params_grads(r->w.params), 0xff, bytes);
    graph_must(graph_forward(r, flags, &loss), r);
    const double value = *(const double *)loss->data;
    graph_must(tac_tape_backward(r->w.tape, loss, 2.0), r);
    return graph_take(r, value);
}

static inline void graph_free(graph_grads *g)
{
    for (size_t i = 0; i < g->tensors; ++i) free(g->g[i]);
}

static inline double graph_largest(const graph_grads *g, size_t i)
{
    double m = 0;
    for (size_t e = 0; e < g->n[i]; ++e)
        m = fabs(g->g[i][e]) > m ? fabs(g->g[i][e]) : m;
    return m;
}

static inline double graph_loss(graph_rig *r)
{
    tac_tensor *loss = NULL;
    graph_must(graph_forward(r, 0, &loss), r);
    return *(const double *)loss->data;
}

static inline double graph_difference(graph_rig *r, double *x)
{
    const double h = 1e-5, before = *x;

    *x = before + h;
    const double up = graph_loss(r);
    *x = before - h;
    const double down = graph_loss(r);
    *x = before;
    return 2.0 * (up - down) / (2 * h); /* backward's scale is 2 */
}

/* f64 reference gradients against central differences of the loss. */
static inline void graph_check_differences(const graph *g)
{
    graph_rig *r = graph_open(g, "ref", TAC_F64, 0, 1);
    graph_grads got = graph_backward(r, 0);

    for (size_t i = 0; i < got.tensors; ++i) {
        const double tolerance = 1e-6 * (graph_largest(&got, i) + 1e-3);
        for (size_t e = 0; e < got.n[i]; e += 1 + got.n[i] / 80) {
            const double want = graph_difference(r, (double *)r->value[i] + e);
            CHECK_MSG(fabs(got.g[i][e] - want) <= tolerance,
                      "%s: tensor %zu [%zu]: %.12g, by differences %.12g",
                      g->name, i, e, got.g[i][e], want);
        }
    }
    graph_free(&got);
    graph_close(r);
}

static inline void graph_same(const graph_grads *a, const graph_grads *b,
                              const char *name, const char *what)
{
    CHECK_MSG(a->loss == b->loss, "%s, %s: losses differ", name, what);
    for (size_t i = 0; i < a->tensors; ++i)
        CHECK_MSG(memcmp(a->g[i], b->g[i], a->n[i] * sizeof(double)) == 0,
                  "%s, %s: the gradients of tensor %zu differ", name, what, i);
}

static inline tac_cast_rule graph_rule(const char *op)
{
    if (strcmp(op, "linear") == 0 || strcmp(op, "attention") == 0)
        return TAC_CAST_LOW;
    if (strcmp(op, "add") == 0) return TAC_CAST_WIDEST;
    return strcmp(op, "layer_norm") == 0 ||
                   strcmp(op, "softmax_cross_entropy") == 0
               ? TAC_CAST_F32
               : TAC_CAST_NONE;
}

/* All steps from now on in a region of autocast; nothing if `low` is F32. */
static inline void graph_autocast(graph_rig *r, tac_dtype low)
{
    const tac_tape_autocast a = {sizeof a, low, graph_rule, 1, NULL};

    if (low != TAC_F32) graph_must(tac_tape_set_autocast(r->w.tape, &a), r);
}

/* Run again in backward: the same bits. */
static inline void graph_check_recompute(const graph *g, const char *isa,
                                         tac_dtype t, tac_dtype low)
{
    graph_rig *kept = graph_open(g, isa, t, 0, 2);
    graph_rig *again = graph_open(g, isa, t, 1, 2);

    graph_autocast(kept, low);
    graph_autocast(again, low);
    graph_grads a = graph_backward(kept, 0), b = graph_backward(again, 0);

    graph_same(&a, &b, g->name, "as a block that runs again");
    graph_free(&a);
    graph_free(&b);
    graph_close(kept);
    graph_close(again);
}

/* Two equal steps, the second adding: parameters' gradients are twice as
 * large, up to the order of sums. */
static inline void graph_check_accumulate(const graph *g, const char *isa,
                                          tac_dtype t)
{
    graph_rig *r = graph_open(g, isa, t, 0, 3);
    graph_grads once = graph_backward(r, 0);
    graph_grads twice = graph_backward(r, TAC_TAPE_ACCUMULATE);

    for (size_t i = r->n_in; i < once.tensors; ++i) {
        const double unit = t == TAC_F64 ? 0x1p-53 : 0x1p-24;
        const double allowed = 8 * unit * graph_largest(&once, i);
        for (size_t e = 0; e < once.n[i]; ++e)
            CHECK_MSG(fabs(twice.g[i][e] - 2 * once.g[i][e]) <= allowed,
                      "%s: added to itself: tensor %zu [%zu]: %.9g, once %.9g",
                      g->name, i, e, twice.g[i][e], once.g[i][e]);
    }
    graph_free(&once);
    graph_free(&twice);
    graph_close(r);
}

/* Another type or set against the f64 reference, within `tolerance` of the
 * largest gradient of each tensor. */
static inline void graph_check_near(const graph *g, const char *isa,
                                    tac_dtype t, tac_dtype low,
                                    double tolerance)
{
    graph_rig *ref = graph_open(g, "ref", TAC_F64, 0, 4);
    graph_rig *r = graph_open(g, isa, t, 0, 4);

    graph_autocast(r, low);

    for (size_t i = 0; i < r->n_in + r->n_params; ++i) /* the rounded values */
        for (size_t e = 0; e < r->count[i]; ++e)
            put(ref->value[i], TAC_F64, e, get(r->value[i], t, e));
    for (size_t e = 0; e < 5 * r->projected; ++e)
        put(ref->projection, TAC_F64, e, get(r->projection, t, e));
    graph_grads want = graph_backward(ref, 0), got = graph_backward(r, 0);
    for (size_t i = 0; i < want.tensors; ++i) {
        const double allowed = tolerance * (graph_largest(&want, i) + 1e-3);
        for (size_t e = 0; e < want.n[i]; ++e)
            CHECK_MSG(fabs(got.g[i][e] - want.g[i][e]) <= allowed,
                      "%s, %s in %s: tensor %zu [%zu]: %.9g, reference %.9g",
                      g->name, isa, tac_dtype_name(t), i, e, got.g[i][e],
                      want.g[i][e]);
    }
    graph_free(&want);
    graph_free(&got);
    graph_close(ref);
    graph_close(r);
}

static inline double graph_tolerance(tac_dtype t)
{
    return t == TAC_F16 ? 1e-2 : t == TAC_BF16 ? 8e-2 : 1e-5;
}

/* All that holds of a graph whatever the type. */
static inline void graph_check_type(const graph *g, const char *isa,
                                    tac_dtype t)
{
    graph_check_near(g, isa, t, TAC_F32, graph_tolerance(t));
    graph_check_recompute(g, isa, t, TAC_F32);
    graph_check_accumulate(g, isa, t);
    if (t != TAC_F16 && t != TAC_BF16) return;
    graph_check_near(g, isa, TAC_F32, t, graph_tolerance(t));
    graph_check_recompute(g, isa, TAC_F32, t);
}

#endif
