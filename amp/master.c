/* Working weights: the value arena once more, in 16 bits.
 *
 * To nearest: one pass over the whole arena, padding included (0 stays 0), or
 * none where the optimizer's own pass writes them.
 * Stochastically: one call a parameter, because the random numbers are keyed
 * by the parameter's number and the element in it, so that they depend on
 * neither the layout nor the number of ranks. */
#include <stdlib.h>

#include "master_impl.h"

enum { ROUND_TENSORS = 65536 }; /* what a rounding key has room for */

static tac_status check_config(tac_context *ctx, const tac_params *p,
                               const tac_master_config *c)
{
    if (c->struct_size != sizeof *c)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "working weights: start from TAC_MASTER_CONFIG_INIT");
    if (c->low != TAC_F16 && c->low != TAC_BF16)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "working weights are f16 or bf16, not %s",
                        tac_dtype_name(c->low));
    if (c->stochastic && c->step == NULL)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "working weights: stochastic rounding needs the "
                        "optimizer's counter of steps (config.step)");
    if (c->stochastic && tac_params_count(p) > ROUND_TENSORS)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "working weights: stochastic rounding knows at most "
                        "%d parameters, not %zu; round to nearest",
                        ROUND_TENSORS, tac_params_count(p));
    return TAC_OK;
}

static tac_status check_params(tac_context *ctx, const tac_params *p)
{
    if (tac_params_dtype(p) != TAC_F32)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "working weights: the masters are f32, not %s; "
                        "register the parameters as f32",
                        tac_dtype_name(tac_params_dtype(p)));
    if (tac_params_order(p) == NULL)
        return tac_fail(ctx, TAC_ERR_STATE,
                        "working weights: call tac_params_layout first");
    return TAC_OK;
}

static tac_status fill(tac_master *m)
{
    const tac_device_ops *ops = tac_device_ops_of(m->dev);
    void *impl = tac_device_impl(m->dev);

    if (m->k == NULL)
        return tac_fail(m->ctx, TAC_ERR_UNSUPPORTED,
                        "working weights: device %s has no kernels for f32",
                        tac_device_name(m->dev));
    TAC_TRY(m->alloc.alloc(m->alloc.arg, tac_master_bytes(m), &m->weights));
    TAC_TRY(ops->fill(impl, m->weights, 0, tac_master_bytes(m), NULL));
    return ops->queue_sync(impl, NULL);
}

tac_status tac_master_create(tac_params *params,
                             const tac_master_config *config, tac_master **out)
{
    static const tac_master_config defaults = TAC_MASTER_CONFIG_INIT;
    const tac_master_config *c = config != NULL ? config : &defaults;
    tac_device *dev = tac_params_device(params);
    tac_context *ctx = tac_device_context(dev);

    TAC_TRY(check_config(ctx, params, c));
    TAC_TRY(check_params(ctx, params));
    tac_master *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tac_fail(ctx, TAC_ERR_NOMEM, "working weights: no memory");
    m->params = params;
    m->dev = dev;
    m->ctx = ctx;
    m->k = tac_device_kernels(dev, TAC_F32);
    m->low = c->low;
    m->stochastic = c->stochastic;
    m->seed = c->seed;
    m->step = c->step;
    m->alloc = c->alloc != NULL ? *c->alloc : tac_device_allocator(dev);
    const tac_status s = fill(m);
    if (s < 0) {
        tac_master_destroy(m);
        return s;
    }
    *out = m;
    return TAC_OK;
}

void tac_master_destroy(tac_master *m)
{
    if (m == NULL) return;
    if (m->weights != NULL) m->alloc.free(m->alloc.arg, m->weights);
    free(m);
}

static tac_status round_one(const tac_master *m, const tac_kctx *kc, size_t i)
{
    const tac_param *q = tac_params_get(m->params, i);
    const tac_round r = {m->seed, m->step, (uint32_t)i, 0};

    return m->k->cast_stochastic(kc, q->count, tac_params_value(m->params, i),
                                 m->low, (uint16_t *)m->weights + q->offset,
                                 &r);
}

tac_status tac_master_refresh(tac_master *m, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(m->dev, queue);

    if (!m->stochastic)
        return m->k->cast(&kc, tac_params_padded(m->params), TAC_F32,
                          tac_params_values(m->params), m->low, m->weights, 0);
    for (size_t i = 0; i < tac_params_count(m->params); ++i)
        TAC_TRY(round_one(m, &kc, i));
    return TAC_OK;
}

tac_status tac_master_follow(tac_master *m, tac_optimizer *o)
{
    if (tac_optimizer_params(o) != m->params)
        return tac_fail(m->ctx, TAC_ERR_ARG,
                        "working weights: the optimizer has other parameters; "
                        "follow the one that updates the masters");
    m->kept = 0;
    if (m->stochastic) return TAC_OK;
    return tac_optimizer_keep_low(o, m->weights, m->low, &m->kept);
}

tac_status tac_master_after_step(tac_master *m, tac_queue *queue)
{
    return m->kept ? TAC_OK : tac_master_refresh(m, queue);
}

const void *tac_master_weights(const tac_master *m)
{
    return m->weights;
}

tac_dtype tac_master_dtype(const tac_master *m)
{
    return m->low;
}

size_t tac_master_bytes(const tac_master *m)
{
    return tac_params_padded(m->params) * tac_dtype_size(m->low);
}
