/* A step: one small kernel for the scalars, one or a few passes a run, one
 * small kernel that counts. The host reads nothing back.
 *
 * Bytes an f32 parameter: sgd 12, with momentum 20; adamw 28; adamw8bit 16;
 * adafactor 24; a 16-bit copy that is kept, 2. */
#include <math.h>

#include "optim_impl.h"

static void *value_at(const tac_optimizer *o, const tac__run *r)
{
    return (char *)tac_params_values(o->params) +
           r->offset * tac_dtype_size(tac_params_dtype(o->params));
}

static void *grad_at(const tac_optimizer *o, const tac__run *r)
{
    return (char *)tac_params_grads(o->params) +
           r->offset * tac_dtype_size(tac_params_grad_dtype(o->params));
}

/* The run's part of the 16-bit copy; NULL: none is kept. */
static uint16_t *low_at(const tac_optimizer *o, const tac__run *r)
{
    return o->low != NULL ? o->low + r->offset : NULL;
}

/* The run's array of state number m; NULL: it has none. */
static void *state_at(const tac_optimizer *o, const tac__run *r, int m)
{
    if (m >= r->slot->n_parts) return NULL;
    return o->state + r->slot->parts[m].offset;
}

static tac_status sgd_run(const tac_optimizer *o, const tac_kctx *kc,
                          const tac__run *r)
{
    const tac_optimizer_config *c = &o->config;
    const tac_sgd_args a = {
        .lr_scale = r->slot->lr_scale,
        .momentum = c->momentum,
        .dampening = c->dampening,
        .weight_decay = r->slot->weight_decay,
        .nesterov = c->nesterov,
        .first = 1,
        .round = r->round,
        .low = low_at(o, r),
        .low_dtype = o->low_dtype,
    };

    return o->k->sgd(kc, r->count, &a, &o->part->scalars, value_at(o, r),
                     grad_at(o, r), state_at(o, r, 0));
}

static tac_status adamw_run(const tac_optimizer *o, const tac_kctx *kc,
                            const tac__run *r)
{
    const tac_optimizer_config *c = &o->config;
    const tac_adamw_args a = {
        .lr_scale = r->slot->lr_scale,
        .beta1 = c->beta1,
        .beta2 = c->beta2,
        .eps = c->eps,
        .weight_decay = r->slot->weight_decay,
        .decay_last = c->kind == TAC_OPTIMIZER_ADAMW8BIT,
        .round = r->round,
        .low = low_at(o, r),
        .low_dtype = o->low_dtype,
    };

    if (r->slot->form == TAC__FORM_QUANT)
        return o->k->adamw8bit(kc, r->count, &a, &o->part->scalars,
                               value_at(o, r), grad_at(o, r), state_at(o, r, 0),
                               state_at(o, r, 1), state_at(o, r, 2),
                               state_at(o, r, 3));
    return o->k->adamw(kc, r->count, &a, &o->part->scalars, value_at(o, r),
                       grad_at(o, r), state_at(o, r, 0), state_at(o, r, 1));
}

static tac_status adafactor_run(const tac_optimizer *o, const tac_kctx *kc,
                                const tac__run *r)
{
    const tac_optimizer_config *c = &o->config;
    const int factors = r->slot->shape.rows > 0 ? 2 : 1;
    const tac_adafactor_args a = {
        .lr_scale = r->slot->lr_scale,
        .eps1 = c->eps1,
        .eps2 = c->eps2,
        .clip_threshold = c->clip_threshold,
        .decay_rate = c->decay_rate,
        .weight_decay = r->slot->weight_decay,
        .beta1 = isnan(c->beta1) ? -1 : c->beta1,
        .scale_parameter = c->scale_parameter,
        .relative_step = c->relative_step,
        .warmup_init = c->warmup_init,
        .round = r->round,
    };

    return o->k->adafactor(
        kc, &r->slot->shape, &a, &o->part->scalars, value_at(o, r),
        grad_at(o, r), factors == 2 ? state_at(o, r, 0) : NULL,
        state_at(o, r, factors - 1), state_at(o, r, factors), o->scratch);
}

static tac_status one_run(const tac_optimizer *o, const tac_kctx *kc,
                          const tac__run *r)
{
    switch (o->config.kind) {
    case TAC_OPTIMIZER_SGD: return sgd_run(o, kc, r);
    case TAC_OPTIMIZER_ADAFACTOR: return adafactor_run(o, kc, r);
    case TAC_OPTIMIZER_ADAMW:
    case TAC_OPTIMIZER_ADAMW8BIT: break;
    }
    return adamw_run(o, kc, r);
}

/* The bias corrections belong to the betas that the kernel sees. In f32 1 -
 * 0.999F differs from 0.001 by 1e-5 of it. */
static double seen(const tac_optimizer *o, double beta)
{
    if (isnan(beta)) return 0;
    return tac_params_grad_dtype(o->params) == TAC_F64 ? beta
                                                       : (double)(float)beta;
}

tac_status tac_optimizer_keep_low(tac_optimizer *o, void *low, tac_dtype dtype,
                                  int *kept)
{
    const int able = o->config.kind != TAC_OPTIMIZER_ADAFACTOR &&
                     tac_params_dtype(o->params) == TAC_F32;

    if (low != NULL && dtype != TAC_F16 && dtype != TAC_BF16)
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: a copy of the parameters is f16 or bf16, "
                        "not %s",
                        tac_dtype_name(dtype));
    o->low = able ? low : NULL;
    o->low_dtype = dtype;
    if (kept != NULL) *kept = o->low != NULL;
    return TAC_OK;
}

tac_status tac_optimizer_step(tac_optimizer *o, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);

    if (o->n_runs == 0) return TAC_OK;
    o->known = TAC__KNOWN_NO; /* what comes next are other gradients */
    TAC_TRY(o->k->step_begin(
        &kc, seen(o, o->config.beta1), seen(o, o->config.beta2),
        o->has_schedule ? &o->schedule : NULL, &o->part->scalars));
    for (size_t i = 0; i < o->n_runs; ++i)
        TAC_TRY(one_run(o, &kc, &o->runs[i]));
    return o->k->step_end(&kc, &o->part->scalars);
}
