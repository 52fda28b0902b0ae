/* The optimizer's life: settings, memory, and what a table of memory asks.
 *
 * All memory is taken in tac_optimizer_create: one piece for the state, one
 * for scratch, one for a step's scalars. */
#include "tacit/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim_impl.h"

static tac_status no_memory(tac_context *ctx)
{
    return tac_fail(ctx, TAC_ERR_NOMEM, "optimizer: no memory");
}

/* Codes of 0.0, so that what a checkpoint of step 0 shows is 0: the signed
 * map's first value is -0.99. */
static tac_status zero_codes(tac_optimizer *o, const tac__slot *slot)
{
    const int signed_zero = 127;

    if (slot->form != TAC__FORM_QUANT) return TAC_OK;
    return tac_device_ops_of(o->dev)->fill(
        tac_device_impl(o->dev), o->state + slot->parts[0].offset, signed_zero,
        slot->parts[0].bytes, NULL);
}

static tac_status make_state(tac_optimizer *o)
{
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    void *state = NULL;

    if (o->plan.state_bytes == 0) return TAC_OK;
    TAC_TRY(
        o->state_alloc.alloc(o->state_alloc.arg, o->plan.state_bytes, &state));
    o->state = state;
    TAC_TRY(ops->fill(tac_device_impl(o->dev), state, 0, o->plan.state_bytes,
                      NULL));
    for (size_t i = 0; i < tac_params_count(o->params); ++i)
        TAC_TRY(zero_codes(o, &o->slots[i]));
    return TAC_OK;
}

static tac_status make_part(tac_optimizer *o)
{
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    void *impl = tac_device_impl(o->dev);
    const double lr = o->config.lr;

    o->fresh.scalars.lr = isnan(lr) ? 1 : lr;
    o->fresh.scalars.grad_scale = 1.0F;
    o->fresh.scalars.clip_coef = 1.0;
    o->fresh.first_bad = UINT64_MAX;
    TAC_TRY(ops->alloc(impl, sizeof o->fresh, (void **)&o->part));
    if (o->plan.scratch_bytes > 0)
        TAC_TRY(ops->alloc(impl, o->plan.scratch_bytes, &o->scratch));
    TAC_TRY(tac__optimizer_write(o, o->part, &o->fresh, sizeof o->fresh, NULL));
    return ops->queue_sync(impl, NULL);
}

static tac_status check_params(const tac_optimizer *o)
{
    if (tac_params_order(o->params) == NULL)
        return tac_fail(o->ctx, TAC_ERR_STATE,
                        "optimizer: call tac_params_layout first");
    if (o->k == NULL)
        return tac_fail(o->ctx, TAC_ERR_UNSUPPORTED,
                        "optimizer: device %s has no kernels for %s",
                        tac_device_name(o->dev),
                        tac_dtype_name(tac_params_dtype(o->params)));
    return TAC_OK;
}

/* What may surprise, said once. */
static void warn(const tac_optimizer *o)
{
    const tac_dtype t = tac_params_dtype(o->params);
    const int small = t == TAC_F16 || t == TAC_BF16;

    if (o->plan.trained == 0)
        tac_log(o->ctx, TAC_LOG_WARN,
                "optimizer: no parameter is trained (%zu of %zu are frozen), "
                "so its steps do nothing",
                tac_params_count(o->params), tac_params_count(o->params));
    if (small && !o->config.stochastic_rounding)
        tac_log(o->ctx, TAC_LOG_WARN,
                "optimizer: %s parameters are rounded to nearest, so that "
                "small updates vanish; use f32 masters or stochastic_rounding",
                tac_dtype_name(t));
    if (!small && o->config.stochastic_rounding)
        tac_log(o->ctx, TAC_LOG_WARN,
                "optimizer: stochastic_rounding changes nothing for %s "
                "parameters",
                tac_dtype_name(t));
}

static tac_status build(tac_optimizer *o)
{
    const size_t n = tac_params_count(o->params);

    TAC_TRY(check_params(o));
    o->slots = calloc(n + 1, sizeof *o->slots);
    if (o->slots == NULL) return no_memory(o->ctx);
    TAC_TRY(tac__optimizer_copy_groups(o));
    TAC_TRY(tac__optimizer_groups(o->params, &o->config, o->slots));
    tac__optimizer_plan(o->params, &o->config, o->slots, &o->plan);
    TAC_TRY(make_state(o));
    TAC_TRY(make_part(o));
    TAC_TRY(tac__optimizer_make_runs(o));
    (void)tac_device_kctx(o->dev, NULL); /* starts the pool, if nobody has */
    warn(o);
    return TAC_OK;
}

static tac_status check(const tac_params *params,
                        const tac_optimizer_config *config)
{
    tac_context *ctx = tac_device_context(tac_params_device(params));

    TAC_TRY(tac__optimizer_check(ctx, config));
    if (config->kind == TAC_OPTIMIZER_ADAMW8BIT &&
        tac_params_dtype(params) == TAC_F64)
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                        "optimizer: adamw8bit has no kernel for f64 "
                        "parameters; use adamw");
    return TAC_OK;
}

tac_status tac_optimizer_create(tac_params *params,
                                const tac_optimizer_config *config,
                                tac_optimizer **out)
{
    tac_device *dev = tac_params_device(params);
    tac_context *ctx = tac_device_context(dev);

    TAC_TRY(check(params, config));
    tac_optimizer *o = calloc(1, sizeof *o);
    if (o == NULL) return no_memory(ctx);
    o->params = params;
    o->dev = dev;
    o->ctx = ctx;
    o->config = *config;
    o->k = tac_device_kernels(dev, tac_params_dtype(params));
    o->grad_k = tac_device_kernels(dev, tac_params_grad_dtype(params));
    o->state_alloc =
        config->state != NULL ? *config->state : tac_device_allocator(dev);
    const tac_status s = build(o);
    if (s < 0) {
        tac_optimizer_destroy(o);
        return s;
    }
    *out = o;
    return TAC_OK;
}

void tac_optimizer_destroy(tac_optimizer *o)
{
    if (o == NULL) return;
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    if (o->state != NULL) o->state_alloc.free(o->state_alloc.arg, o->state);
    if (o->part != NULL) ops->free(tac_device_impl(o->dev), o->part);
    if (o->scratch != NULL) ops->free(tac_device_impl(o->dev), o->scratch);
    tac__optimizer_free_groups(o);
    free(o->slots);
    free(o->runs);
    free(o);
}

size_t tac_optimizer_state_bytes(const tac_optimizer *o)
{
    return o->plan.state_bytes;
}

size_t tac_optimizer_scratch_bytes(const tac_optimizer *o)
{
    return o->plan.scratch_bytes;
}

tac_status tac_optimizer_predict(const tac_params *params,
                                 const tac_optimizer_config *config,
                                 size_t *state, size_t *scratch)
{
    tac_context *ctx = tac_device_context(tac_params_device(params));
    tac__plan plan;

    TAC_TRY(check(params, config));
    tac__slot *slots = calloc(tac_params_count(params) + 1, sizeof *slots);
    if (slots == NULL) return no_memory(ctx);
    const tac_status s = tac__optimizer_groups(params, config, slots);
    if (s >= 0) {
        tac__optimizer_plan(params, config, slots, &plan);
        *state = plan.state_bytes;
        *scratch = plan.scratch_bytes;
    }
    free(slots);
    return s;
}
