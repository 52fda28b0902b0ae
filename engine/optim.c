/* The optimizer: its memory, a step, what it shows of its state.
 *
 * A step is one small kernel for the scalars, one pass a run, and one small
 * kernel that counts; the host reads nothing back. AdamW moves 28 bytes an
 * f32 parameter (p, m, v read and written, g read), SGD with momentum 20. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optim_impl.h"

static tac_status write_device(tac_optimizer *o, void *dst, const void *src,
                               size_t bytes, tac_queue *queue)
{
    return tac_device_ops_of(o->dev)->copy(tac_device_impl(o->dev), dst, src,
                                           bytes, TAC_COPY_HOST_TO_DEVICE,
                                           queue);
}

static void name_moments(tac_optimizer *o)
{
    if (o->config.kind == TAC_OPTIMIZER_ADAMW) {
        o->n_moments = 2;
        o->moment_names[0] = "exp_avg";
        o->moment_names[1] = "exp_avg_sq";
    } else if (o->config.momentum > 0.0) {
        o->n_moments = 1;
        o->moment_names[0] = "momentum_buffer";
    }
}

static size_t arena_bytes(const tac_optimizer *o)
{
    return tac_params_padded(o->params) *
           tac_dtype_size(tac_params_dtype(o->params));
}

static tac_status make_moments(tac_optimizer *o)
{
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    const size_t bytes = arena_bytes(o);

    name_moments(o);
    for (int i = 0; i < o->n_moments; ++i) {
        TAC_TRY(
            o->state_alloc.alloc(o->state_alloc.arg, bytes, &o->moments[i]));
        TAC_TRY(
            ops->fill(tac_device_impl(o->dev), o->moments[i], 0, bytes, NULL));
    }
    return TAC_OK;
}

static tac_status make_part(tac_optimizer *o)
{
    const tac_device_ops *ops = tac_device_ops_of(o->dev);
    tac__device_part first;

    memset(&first, 0, sizeof first);
    first.scalars.lr = (float)o->config.lr;
    first.scalars.grad_scale = 1.0F;
    first.scalars.clip_coef = 1.0F;
    TAC_TRY(
        ops->alloc(tac_device_impl(o->dev), sizeof first, (void **)&o->part));
    TAC_TRY(write_device(o, o->part, &first, sizeof first, NULL));
    return ops->queue_sync(tac_device_impl(o->dev), NULL);
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

static tac_status fill(tac_optimizer *o)
{
    TAC_TRY(check_params(o));
    TAC_TRY(tac__optimizer_make_runs(o));
    TAC_TRY(make_moments(o));
    return make_part(o);
}

tac_status tac_optimizer_create(tac_params *params,
                                const tac_optimizer_config *config,
                                tac_optimizer **out)
{
    tac_device *dev = tac_params_device(params);
    tac_context *ctx = tac_device_context(dev);

    TAC_TRY(tac__optimizer_check(ctx, config));
    tac_optimizer *o = calloc(1, sizeof *o);
    if (o == NULL) return tac_fail(ctx, TAC_ERR_NOMEM, "optimizer: no memory");
    o->params = params;
    o->dev = dev;
    o->ctx = ctx;
    o->config = *config;
    o->k = tac_device_kernels(dev, tac_params_dtype(params));
    o->state_alloc =
        config->state != NULL ? *config->state : tac_device_allocator(dev);
    const tac_status s = fill(o);
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
    for (int i = 0; i < TAC__MOMENTS; ++i)
        if (o->moments[i] != NULL)
            o->state_alloc.free(o->state_alloc.arg, o->moments[i]);
    if (o->part != NULL)
        tac_device_ops_of(o->dev)->free(tac_device_impl(o->dev), o->part);
    free(o->runs);
    free(o);
}

tac_status tac_optimizer_set_lr(tac_optimizer *o, double lr, tac_queue *queue)
{
    float *slot = &o->lr_slots[o->next_lr_slot++ % TAC__LR_SLOTS];

    if (!(lr >= 0.0) || !isfinite(lr))
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: lr is %g; it must be 0 or more, and finite",
                        lr);
    *slot = (float)lr;
    return write_device(o, &o->part->scalars.lr, slot, sizeof *slot, queue);
}

tac_status tac_optimizer_clip(tac_optimizer *o, double max_norm,
                              tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);

    if (!(max_norm >= 0.0))
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: clipping to a norm of %g; it must be 0 or "
                        "more",
                        max_norm);
    TAC_TRY(o->k->sum_squares(&kc, tac_params_padded(o->params),
                              tac_params_grads(o->params),
                              &o->part->sum_squares));
    return o->k->clip_coef(&kc, &o->part->sum_squares, max_norm,
                           &o->part->scalars, &o->part->norm);
}

static void *at(const tac_optimizer *o, void *arena, size_t offset)
{
    if (arena == NULL) return NULL;
    return (char *)arena + offset * tac_dtype_size(tac_params_dtype(o->params));
}

static tac_status sgd_run(const tac_optimizer *o, const tac_kctx *kc,
                          const tac__run *r)
{
    const tac_optimizer_config *c = &o->config;
    const tac_sgd_args a = {
        .momentum = (float)c->momentum,
        .dampening = (float)c->dampening,
        .weight_decay = r->weight_decay,
        .nesterov = c->nesterov,
        .first = 1,
    };

    return o->k->sgd(kc, r->count, &a, &o->part->scalars,
                     at(o, tac_params_values(o->params), r->offset),
                     at(o, tac_params_grads(o->params), r->offset),
                     at(o, o->moments[0], r->offset));
}

static tac_status adamw_run(const tac_optimizer *o, const tac_kctx *kc,
                            const tac__run *r)
{
    const tac_optimizer_config *c = &o->config;
    const tac_adamw_args a = {
        .beta1 = (float)c->beta1,
        .beta2 = (float)c->beta2,
        .eps = (float)c->eps,
        .weight_decay = r->weight_decay,
    };

    return o->k->adamw(kc, r->count, &a, &o->part->scalars,
                       at(o, tac_params_values(o->params), r->offset),
                       at(o, tac_params_grads(o->params), r->offset),
                       at(o, o->moments[0], r->offset),
                       at(o, o->moments[1], r->offset));
}

/* The bias corrections belong to the betas that the kernel sees, which are
 * f32: 1 - 0.999F differs from 0.001 by 1e-5 of it. */
tac_status tac_optimizer_step(tac_optimizer *o, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(o->dev, queue);
    const int adamw = o->config.kind == TAC_OPTIMIZER_ADAMW;

    TAC_TRY(o->k->step_begin(&kc, (double)(float)o->config.beta1,
                             (double)(float)o->config.beta2,
                             &o->part->scalars));
    for (size_t i = 0; i < o->n_runs; ++i) {
        const tac__run *r = &o->runs[i];
        TAC_TRY(adamw ? adamw_run(o, &kc, r) : sgd_run(o, &kc, r));
    }
    return o->k->step_end(&kc, &o->part->scalars);
}

tac_step_scalars *tac_optimizer_scalars(const tac_optimizer *o)
{
    return &o->part->scalars;
}

double *tac_optimizer_norm(const tac_optimizer *o)
{
    return &o->part->norm;
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

size_t tac_optimizer_state_bytes(const tac_optimizer *o)
{
    return (size_t)o->n_moments * arena_bytes(o);
}

static tac_status visit_moment(tac_optimizer *o, int m, size_t i,
                               const tac_state_visitor *v)
{
    const tac_param *q = tac_params_get(o->params, i);
    char name[512];

    snprintf(name, sizeof name, "optimizer.%s.%s", o->moment_names[m], q->name);
    return tac_state_visit(v, name, tac_params_dtype(o->params), q->ndim,
                           q->shape, at(o, o->moments[m], q->offset));
}

tac_status tac_optimizer_walk(void *optimizer, const tac_state_visitor *v)
{
    tac_optimizer *o = optimizer;

    TAC_TRY(
        tac_state_visit_u64(v, "optimizer.applied", &o->part->scalars.applied));
    for (int m = 0; m < o->n_moments; ++m)
        for (size_t i = 0; i < tac_params_count(o->params); ++i)
            TAC_TRY(visit_moment(o, m, i, v));
    return TAC_OK;
}
