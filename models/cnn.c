/* cnn.c: two convolutions with pooling and two linear layers.
 *
 * Three tape blocks: conv1 and its pool, conv2 and its pool, fc1. A
 * convolution, its ReLU and its pool are one operation: the network's largest
 * activations, which lie between them, are never stored. */
#include <stdlib.h>

#include "layers.h"

enum { CHANNELS_1 = 32, CHANNELS_2 = 64, HIDDEN = 128, KERNEL = 3, PAD = 1 };

typedef struct cnn {
    tac__conv conv[2];
    tac__linear fc1, fc2;
    float dropout;
} cnn;

static tac_status check_shape(tac_model *m, const char *arg)
{
    if (arg)
        return tac_fail(m->ctx, TAC_ERR_CONFIG,
                        "model cnn:%s: the cnn takes no argument", arg);
    if (m->config.h < 4 || m->config.w < 4)
        return tac_fail(m->ctx, TAC_ERR_ARG,
                        "model cnn: images of %zux%zu are too small for two "
                        "2x2 pools; at least 4x4, or use the mlp",
                        m->config.h, m->config.w);
    return TAC_OK;
}

static tac_status add_layers(tac_model *m, cnn *n)
{
    const tac_model_config *c = &m->config;
    const size_t h1 = c->h / 2, w1 = c->w / 2; /* after the first pool */
    const size_t flat = (h1 / 2) * (w1 / 2) * CHANNELS_2;
    TAC_TRY(tac__conv_add(m, "conv1", c->c, CHANNELS_1, KERNEL, PAD, c->h, c->w,
                          &n->conv[0]));
    TAC_TRY(tac__conv_add(m, "conv2", CHANNELS_1, CHANNELS_2, KERNEL, PAD, h1,
                          w1, &n->conv[1]));
    TAC_TRY(tac__linear_add(m, "fc1", flat, HIDDEN, &n->fc1));
    return tac__linear_add(m, "fc2", HIDDEN, c->classes, &n->fc2);
}

static tac_status cnn_build(tac_model *m, const char *arg)
{
    TAC_TRY(check_shape(m, arg));
    cnn *n = calloc(1, sizeof(*n));
    if (!n) return tac_fail(m->ctx, TAC_ERR_NOMEM, "no memory for a model");
    n->dropout = m->config.dropout;
    const tac_status status = add_layers(m, n);
    if (status < 0) {
        free(n);
        return status;
    }
    m->impl = n;
    return TAC_OK;
}

static tac_status conv_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    return tac__conv_pool_forward(arg, 2, t, in[0], out);
}

static tac_status fc_block(tac_tape *t, void *arg, tac_tensor *const *in,
                           tac_tensor **out)
{
    const cnn *n = arg;
    return tac__hidden_forward(&n->fc1, n->dropout, t, in[0], out);
}

static tac_status cnn_forward(void *impl, tac_tape *t, tac_tensor *x,
                              tac_tensor **logits)
{
    cnn *n = impl;
    tac_tensor *a = NULL, *b = NULL, *flat = NULL, *h = NULL;
    TAC_TRY(tac_tape_block(t, conv_block, &n->conv[0], 1, &x, 1, &a));
    TAC_TRY(tac_tape_block(t, conv_block, &n->conv[1], 1, &a, 1, &b));
    TAC_TRY(tac_op_flatten(t, b, &flat));
    TAC_TRY(tac_tape_block(t, fc_block, n, 1, &flat, 1, &h));
    return tac__linear_forward(&n->fc2, t, h, TAC_ACT_NONE, logits);
}

const tac__model_ops tac__model_cnn = {cnn_build, cnn_forward, free};
