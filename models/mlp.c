/* mlp.c: a multi-layer perceptron: (linear, ReLU, dropout)..., linear.
 *
 * Each hidden layer is a tape block: with recompute only the outputs of the
 * layers are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

enum { DEFAULT_HIDDEN = 500, MAX_LAYERS = 1000, MAX_WIDTH = 1 << 24 };

typedef struct hidden {
    tac__linear linear;
    float dropout;
} hidden;

typedef struct mlp {
    size_t layers;
    tac__linear last;
    hidden hidden[];
} mlp;

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
        m->hidden[i].linear.out = n;
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
        hidden *h = &m->hidden[i];
        const size_t out = h->linear.out;
        h->dropout = c->dropout;
        snprintf(name, sizeof(name), "fc%zu", i + 1);
        TAC_TRY(tac__linear_add(model, name, in, out, &h->linear));
        in = out;
    }
    snprintf(name, sizeof(name), "fc%zu", m->layers + 1);
    return tac__linear_add(model, name, in, c->classes, &m->last);
}

static tac_status mlp_build(tac_model *model, const char *arg)
{
    const size_t layers = arg ? count_widths(arg) : 1;
    if (layers > MAX_LAYERS) return bad_argument(model->ctx, arg);
    mlp *m = calloc(1, sizeof(*m) + layers * sizeof(m->hidden[0]));
    if (!m) return tac_fail(model->ctx, TAC_ERR_NOMEM, "no memory for a model");
    m->layers = layers;
    m->hidden[0].linear.out = DEFAULT_HIDDEN;
    tac_status status = TAC_OK;
    if (arg) status = parse_widths(model->ctx, arg, m);
    if (status >= 0) status = add_layers(model, m);
    if (status < 0) {
        free(m);
        return status;
    }
    model->impl = m;
    return TAC_OK;
}

static tac_status hidden_block(tac_tape *t, void *arg, tac_tensor *const *in,
                               tac_tensor **out)
{
    const hidden *h = arg;
    return tac__hidden_forward(&h->linear, h->dropout, t, in[0], out);
}

static tac_status mlp_forward(void *impl, tac_tape *t, tac_tensor *x,
                              tac_tensor **logits)
{
    mlp *m = impl;
    tac_tensor *y = x;
    if (x->ndim != 2) TAC_TRY(tac_op_flatten(t, x, &y));
    for (size_t i = 0; i < m->layers; ++i) {
        tac_tensor *in = y;
        TAC_TRY(tac_tape_block(t, hidden_block, &m->hidden[i], 1, &in, 1, &y));
    }
    return tac__linear_forward(&m->last, t, y, TAC_ACT_NONE, logits);
}

const tac__model_ops tac__model_mlp = {mlp_build, mlp_forward, free};
