/* What a step reads: rate, loss scale, clipping factor, found_inf; and what
 * finds it out from the gradients. Everything is enqueued. */
#include <math.h>

#include "optim_impl.h"

tac_status tac__optimizer_write(tac_optimizer *o, void *dst, const void *src,
                                size_t bytes, tac_queue *queue)
{
    return tac_device_ops_of(o->dev)->copy(tac_device_impl(o->dev), dst, src,
                                           bytes, TAC_COPY_HOST_TO_DEVICE,
                                           queue);
}

tac_status tac_optimizer_set_lr(tac_optimizer *o, double lr, tac_queue *queue)
{
    double *slot = &o->lr_slots[o->next_lr_slot++ % TAC__SLOTS];

    if (!(lr >= 0.0) || !isfinite(lr))
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: lr is %g; it must be 0 or more, and finite",
                        lr);
    *slot = lr;
    return tac__optimizer_write(o, &o->part->scalars.lr, slot, sizeof *slot,
                                queue);
}

tac_status tac_optimizer_set_schedule(tac_optimizer *o,
                                      const tac_schedule *schedule)
{
    o->has_schedule = schedule != NULL;
    if (schedule == NULL) return TAC_OK;
    if (!(schedule->lr >= 0.0) || !isfinite(schedule->lr) ||
        !(schedule->final_fraction >= 0.0) ||
        !isfinite(schedule->final_fraction)) {
        o->has_schedule = 0;
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: a schedule of lr %g and final_fraction %g; "
                        "both must be 0 or more, and finite",
                        schedule->lr, schedule->final_fraction);
    }
    o->schedule = *schedule;
    return TAC_OK;
}

tac_status tac_optimizer_set_grad_scale(tac_optimizer *o, const float *scale,
                                        tac_queue *queue)
{
    return tac_device_ops_of(o->dev)->copy(
        tac_device_impl(o->dev), &o->part->scalars.grad_scale, scale,
        sizeof *scale, TAC_COPY_DEVICE_TO_DEVICE, queue);
}

static tac_status find_first_bad(tac_optimizer *o, const tac_kctx *kc)
{
    return o->grad_k->first_bad(kc, tac_params_padded(o->params),
                                tac_params_grads(o->params), 0,
                                &o->part->scalars, &o->part->first_bad);
}

tac_status tac_optimizer_unscale(tac_optimizer *o, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);

    o->known = TAC__KNOWN_NO;
    TAC_TRY(o->grad_k->unscale(&kc, tac_params_padded(o->params),
                               tac_params_grads(o->params), &o->part->scalars));
    TAC_TRY(tac__optimizer_write(o, &o->part->scalars.grad_scale,
                                 &o->fresh.scalars.grad_scale, sizeof(float),
                                 queue));
    return find_first_bad(o, &kc);
}

static tac_status measure(tac_optimizer *o, const tac_kctx *kc,
                          tac__known least, tac__known who)
{
    if (o->known >= least) return TAC_OK;
    TAC_TRY(o->grad_k->sum_squares(kc, tac_params_padded(o->params),
                                   tac_params_grads(o->params),
                                   &o->part->sum_squares));
    o->known = who;
    return TAC_OK;
}

tac_status tac_optimizer_check(tac_optimizer *o, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);

    TAC_TRY(measure(o, &kc, TAC__KNOWN_CLIP, TAC__KNOWN_CHECK));
    TAC_TRY(o->k->check_finite(&kc, &o->part->sum_squares, &o->part->scalars));
    return find_first_bad(o, &kc);
}

/* Only a check's sum is taken over: who clips twice may have changed the
 * gradients in between. */
tac_status tac_optimizer_clip(tac_optimizer *o, double max_norm,
                              tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);

    if (!(max_norm >= 0.0))
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: clipping to a norm of %g; it must be 0 or "
                        "more",
                        max_norm);
    TAC_TRY(measure(o, &kc, TAC__KNOWN_CHECK, TAC__KNOWN_CLIP));
    return o->k->clip_coef(&kc, &o->part->sum_squares, max_norm,
                           &o->part->scalars, &o->part->norm);
}

tac_status tac_optimizer_clear_found_inf(tac_optimizer *o, tac_queue *queue)
{
    o->known = TAC__KNOWN_NO;
    TAC_TRY(tac__optimizer_write(o, &o->part->scalars.found_inf,
                                 &o->fresh.scalars.found_inf, sizeof(float),
                                 queue));
    return tac__optimizer_write(o, &o->part->first_bad, &o->fresh.first_bad,
                                sizeof o->fresh.first_bad, queue);
}

tac_params *tac_optimizer_params(const tac_optimizer *o)
{
    return o->params;
}

tac_step_scalars *tac_optimizer_scalars(const tac_optimizer *o)
{
    return &o->part->scalars;
}

double *tac_optimizer_norm(const tac_optimizer *o)
{
    return &o->part->norm;
}

uint64_t *tac_optimizer_first_bad(const tac_optimizer *o)
{
    return &o->part->first_bad;
}

tac_status tac_optimizer_read(tac_optimizer *o, tac_step_scalars *out,
                              tac_queue *queue)
{
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    void *impl = tac_device_impl(o->dev);
    tac_step_scalars s;

    TAC_TRY(ops->copy(impl, &s, &o->part->scalars, sizeof s,
                      TAC_COPY_DEVICE_TO_HOST, queue));
    TAC_TRY(ops->queue_sync(impl, queue));
    *out = s;
    return TAC_OK;
}
