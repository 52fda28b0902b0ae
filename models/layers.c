/* layers.c: linear and convolution layers: their parameters and counts. */
#include "layers.h"

#include <stdio.h>

/* Weight and bias of one layer; both drawn from U(+-1/sqrt(fan_in)). */
static tac_status add_pair(tac_params *p, const char *name, int ndim,
                           const size_t *shape, size_t fan_in, size_t *weight,
                           size_t *bias)
{
    char full[64];
    const tac_init init = {TAC_INIT_FAN_IN, (double)fan_in};
    snprintf(full, sizeof(full), "%s.weight", name);
    TAC_TRY(tac_params_add(p, full, ndim, shape, init, 0, weight));
    snprintf(full, sizeof(full), "%s.bias", name);
    return tac_params_add(p, full, 1, shape, init, 0, bias);
}

static void add_macs(tac_model *m, uint64_t macs)
{
    if (m->macs == 0) m->first_macs = macs;
    m->macs += macs;
}

tac_status tac__linear_add(tac_model *m, const char *name, size_t in,
                           size_t out, tac__linear *layer)
{
    const size_t shape[] = {out, in};
    layer->in = in;
    layer->out = out;
    TAC_TRY(
        add_pair(m->params, name, 2, shape, in, &layer->weight, &layer->bias));
    add_macs(m, (uint64_t)in * out);
    return TAC_OK;
}

tac_status tac__conv_add(tac_model *m, const char *name, size_t in, size_t out,
                         size_t k, size_t pad, size_t h, size_t w,
                         tac__conv *layer)
{
    const size_t shape[] = {out, in, k, k};
    *layer = (tac__conv){in, out, k, pad, 0, 0};
    TAC_TRY(add_pair(m->params, name, 4, shape, in * k * k, &layer->weight,
                     &layer->bias));
    add_macs(m, (uint64_t)h * w * k * k * in * out);
    return TAC_OK;
}

tac_status tac__linear_forward(const tac__linear *l, tac_tape *t, tac_tensor *x,
                               tac_act act, tac_tensor **y)
{
    return tac_op_linear(t, x, tac_tape_param(t, l->weight),
                         tac_tape_param(t, l->bias), act, y);
}

tac_status tac__conv_pool_forward(const tac__conv *l, size_t k, tac_tape *t,
                                  tac_tensor *x, tac_tensor **y)
{
    return tac_op_conv2d_max_pool2d(t, x, tac_tape_param(t, l->weight),
                                    tac_tape_param(t, l->bias), 1, l->pad, k, k,
                                    y);
}

tac_status tac__hidden_forward(const tac__linear *l, float p, tac_tape *t,
                               tac_tensor *x, tac_tensor **y)
{
    if (p == 0) return tac__linear_forward(l, t, x, TAC_ACT_RELU, y);
    tac_tensor *h = NULL;
    TAC_TRY(tac__linear_forward(l, t, x, TAC_ACT_RELU, &h));
    return tac_op_dropout(t, h, p, y);
}
