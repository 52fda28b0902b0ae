/* linear.c: softmax regression: one linear layer, from samples to logits. Its
 * loss is convex, so what is true of any starting point can be tested on it. */
#include <stdlib.h>

#include "layers.h"

static tac_status check_config(tac_model *m, const char *arg)
{
    if (arg)
        return tac_fail(m->ctx, TAC_ERR_CONFIG,
                        "model linear:%s: the linear model takes no argument; "
                        "hidden layers are the mlp's",
                        arg);
    if (m->config.dropout > 0)
        return tac_fail(m->ctx, TAC_ERR_CONFIG,
                        "model linear: there is no hidden layer that dropout "
                        "%g could follow; leave it out",
                        m->config.dropout);
    return TAC_OK;
}

static tac_status linear_build(tac_model *m, const char *arg)
{
    const tac_model_config *c = &m->config;
    TAC_TRY(check_config(m, arg));
    tac__linear *l = calloc(1, sizeof(*l));
    if (!l) return tac_fail(m->ctx, TAC_ERR_NOMEM, "no memory for a model");
    const tac_status status =
        tac__linear_add(m, "fc1", c->h * c->w * c->c, c->classes, l);
    if (status < 0) {
        free(l);
        return status;
    }
    m->impl = l;
    return TAC_OK;
}

static tac_status linear_forward(void *impl, tac_tape *t, tac_tensor *x,
                                 tac_tensor **logits)
{
    tac_tensor *flat = x;
    if (x->ndim != 2) TAC_TRY(tac_op_flatten(t, x, &flat));
    return tac__linear_forward(impl, t, flat, TAC_ACT_NONE, logits);
}

const tac__model_ops tac__model_linear = {linear_build, linear_forward, free};
