/* mlp.c: a multi-layer perceptron: (linear, ReLU, dropout)..., linear.
 *
 * The hidden layers are cut into segments (segments.c), each a tape block: with
 * recompute only the outputs of segments are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "segments.h"

enum { DEFAULT_HIDDEN = 500, MAX_LAYERS = 1000, MAX_WIDTH = 1 << 24 };

typedef struct mlp mlp;

typedef struct segment {
    const mlp *m;
    size_t first, end; /* hidden layers */
} segment;

struct mlp {
    size_t layers, n_segments;
    float dropout;
    tac__linear last;
    segment *segments; /* behind the layers */
    tac__linear hidden[];
};

static tac_status bad_argument(tac_context *ctx, const char *arg)
{
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "model mlp:%s: expected the sizes of 1 to %d hidden "
                    "layers, each from 1 to %d, as in mlp:500,500",
                    arg, MAX_LAYERS, MAX_WIDTH);
}

static size_t count_widths(const char *arg)
{
    size_t n = 1;
    for (; *arg; ++arg) n += *arg == ',';
    return n;
}

/* Reads "500,500" into width[], which has room for all. */
static tac_status parse_widths(tac_context *ctx, const char *arg, mlp *m)
{
    const char *p = arg;
    for (size_t i = 0; i < m->layers; ++i) {
        char *end = NULL;
        const unsigned long n = strtoul(p, &end, 10);
        const char stop = i + 1 < m->layers ? ',' : '\0';
        if (*p < '0' || *p > '9' || *end != stop || n == 0 || n > MAX_WIDTH)
            return bad_argument(ctx, arg);
        m->hidden[i].out = n;
        p = end + 1;
    }
    return TAC_OK;
}

static tac_status add_layers(tac_model *model, mlp *m)
{
    const tac_model_config *c = &model->config;
    size_t in = c->h * c->w * c->c;
    char name[32];
    for (size_t i = 0; i < m->layers; ++i) {
        const size_t out = m->hidden[i].out;
        snprintf(name, sizeof(name), "fc%zu", i + 1);
        TAC_TRY(tac__linear_add(model, name, in, out, &m->hidden[i]));
        in = out;
    }
    snprintf(name, sizeof(name), "fc%zu", m->layers + 1);
    return tac__linear_add(model, name, in, c->classes, &m->last);
}

/* A layer makes its output, and with dropout the ReLU's before it. */
static tac_status add_segments(tac_model *model, mlp *m)
{
    const size_t n = m->layers, factor = m->dropout > 0 ? 2 : 1;
    size_t *kept = calloc(3 * n, sizeof(*kept));
    size_t *made = kept + n, *last = made + n, first = 0;
    if (!kept)
        return tac_fail(model->ctx, TAC_ERR_NOMEM, "no memory for a model");
    for (size_t i = 0; i < n; ++i) {
        kept[i] = m->hidden[i].out;
        made[i] = factor * kept[i];
    }
    m->n_segments = tac__segments(&(tac__chain){n, kept, made}, last);
    for (size_t k = 0; k < m->n_segments; ++k) {
        m->segments[k] = (segment){m, first, last[k] + 1};
        first = last[k] + 1;
    }
    free(kept);
    return TAC_OK;
}

/* One piece of memory, the segments last: there are as many at most. */
static mlp *new_mlp(size_t layers)
{
    const size_t bytes = sizeof(mlp) + layers * sizeof(tac__linear);
    const size_t at =
        (bytes + _Alignof(segment) - 1) / _Alignof(segment) * _Alignof(segment);
    mlp *m = calloc(1, at + layers * sizeof(segment));
    if (!m) return NULL;
    m->layers = layers;
    m->segments = (segment *)(void *)((char *)m + at);
    return m;
}

static tac_status mlp_build(tac_model *model, const char *arg)
{
    const size_t layers = arg ? count_widths(arg) : 1;
    if (layers > MAX_LAYERS) return bad_argument(model->ctx, arg);
    mlp *m = new_mlp(layers);
    if (!m) return tac_fail(model->ctx, TAC_ERR_NOMEM, "no memory for a model");
    m->dropout = model->config.dropout;
    m->hidden[0].out = DEFAULT_HIDDEN;
    tac_status status = TAC_OK;
    if (arg) status = parse_widths(model->ctx, arg, m);
    if (status >= 0) status = add_layers(model, m);
    if (status >= 0) status = add_segments(model, m);
    if (status < 0) {
        free(m);
        return status;
    }
    model->impl = m;
    return TAC_OK;
}

static tac_status segment_block(tac_tape *t, void *arg, tac_tensor *const *in,
                                tac_tensor **out)
{
    const segment *s = arg;
    tac_tensor *y = in[0];
    for (size_t i = s->first; i < s->end; ++i)
        TAC_TRY(tac__hidden_forward(&s->m->hidden[i], s->m->dropout, t, y, &y));
    out[0] = y;
    return TAC_OK;
}

static tac_status mlp_forward(void *impl, tac_tape *t, tac_tensor *x,
                              tac_tensor **logits)
{
    mlp *m = impl;
    tac_tensor *y = x;
    if (x->ndim != 2) TAC_TRY(tac_op_flatten(t, x, &y));
    for (size_t k = 0; k < m->n_segments; ++k) {
        tac_tensor *in = y;
        TAC_TRY(
            tac_tape_block(t, segment_block, &m->segments[k], 1, &in, 1, &y));
    }
    return tac__linear_forward(&m->last, t, y, TAC_ACT_NONE, logits);
}

const tac__model_ops tac__model_mlp = {mlp_build, mlp_forward, free};
