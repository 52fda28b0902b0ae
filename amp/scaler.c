/* The scaler: creation, a step, the update of the scale.
 *
 * Scale, growth tracker and counters are one structure in device memory, which
 * a kernel of one thread updates from the optimizers' found_inf; the optimizers
 * themselves leave all untouched where it is set. So a step costs the host the
 * same whether it is skipped or not: it doesn't know. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scaler_impl.h"

static tac_status make_part(tac_scaler *s)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);
    tac__scaler_part first;

    memset(&first, 0, sizeof first);
    first.view.state.scale =
        s->config.enabled ? (float)s->config.init_scale : 1.0F;
    first.view.state.first_bad = UINT64_MAX;
    for (size_t i = 0; i < TAC__SCALER_OPTIMIZERS; ++i)
        first.view.bad[i] = UINT64_MAX;
    first.one = 1.0F;
    TAC_TRY(ops->alloc(impl, sizeof first, (void **)&s->part));
    TAC_TRY(ops->copy(impl, s->part, &first, sizeof first,
                      TAC_COPY_HOST_TO_DEVICE, NULL));
    s->known.view = first.view;
    TAC_TRY(tac__scaler_mirrors_make(s));
    TAC_TRY(tac__scaler_mirror_now(s, NULL));
    return ops->queue_sync(impl, NULL);
}

static tac_status check_kernels(const tac_scaler *s)
{
    if (s->k != NULL && s->k->scaler_update != NULL) return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_UNSUPPORTED,
                    "loss scaling: device %s has no kernels for it",
                    tac_device_name(s->dev));
}

tac_status tac_scaler_create(tac_device *dev, const tac_scaler_config *config,
                             tac_scaler **out)
{
    static const tac_scaler_config defaults = TAC_SCALER_CONFIG_INIT;
    const tac_scaler_config *c = config != NULL ? config : &defaults;
    tac_context *ctx = tac_device_context(dev);

    if (c->struct_size != sizeof *c)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "loss scaling: start from TAC_SCALER_CONFIG_INIT");
    if (c->enabled) TAC_TRY(tac__scaler_check_config(ctx, c, TAC_ERR_ARG));
    tac_scaler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tac_fail(ctx, TAC_ERR_NOMEM, "loss scaling: no memory");
    s->dev = dev;
    s->ctx = ctx;
    s->k = tac_device_kernels(dev, TAC_F32);
    s->config = *c;
    tac_status r = check_kernels(s);
    if (r >= 0) r = make_part(s);
    if (r < 0) {
        tac_scaler_destroy(s);
        return r;
    }
    *out = s;
    return TAC_OK;
}

void tac_scaler_destroy(tac_scaler *s)
{
    if (s == NULL) return;
    tac__scaler_mirrors_drop(s);
    if (s->part != NULL)
        tac_device_ops_of(s->dev)->free(tac_device_impl(s->dev), s->part);
    free(s);
}

const float *tac_scaler_scale(const tac_scaler *s)
{
    return &s->part->view.state.scale;
}

tac_status tac_scaler_get_scale(tac_scaler *s, double *out, tac_queue *queue)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);
    float scale;

    TAC_TRY(ops->copy(impl, &scale, tac_scaler_scale(s), sizeof scale,
                      TAC_COPY_DEVICE_TO_HOST, queue));
    TAC_TRY(ops->queue_sync(impl, queue));
    *out = (double)scale;
    return TAC_OK;
}

void tac_scaler_set_agree(tac_scaler *s, tac_scaler_agree_fn *fn, void *arg)
{
    s->agree = fn;
    s->agree_arg = arg;
}

tac_status tac_scaler_step(tac_scaler *s, tac_optimizer *o, tac_queue *queue)
{
    if (!s->config.enabled) return tac_optimizer_step(o, queue);
    const tac__scaler_entry *before = tac__scaler_find(s, o);
    if (before != NULL && before->stage == TAC__STEPPED)
        return tac_fail(s->ctx, TAC_ERR_STATE,
                        "step() has already been called since the last "
                        "update(); call update() once an iteration");
    if (before == NULL) TAC_TRY(tac_scaler_check(s, o, queue));
    TAC_TRY(tac_optimizer_step(o, queue));
    tac__scaler_find(s, o)->stage = TAC__STEPPED;
    return TAC_OK;
}

/* What the mirror tells of each optimizer, copied before it is forgotten. */
static tac_status collect_bad(tac_scaler *s, tac_queue *queue)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);

    TAC_TRY(ops->fill(impl, s->part->view.bad, 0xff, sizeof s->part->view.bad,
                      queue)); /* UINT64_MAX */
    memset(&s->finders, 0, sizeof s->finders);
    for (size_t i = 0; i < s->n_entries; ++i) {
        const tac_optimizer *o = s->entries[i].optimizer;
        s->finders.params[i] = tac_optimizer_params(o);
        TAC_TRY(ops->copy(impl, &s->part->view.bad[i],
                          tac_optimizer_first_bad(o), sizeof(uint64_t),
                          TAC_COPY_DEVICE_TO_DEVICE, queue));
    }
    return TAC_OK;
}

static tac_status update_state(tac_scaler *s, tac_queue *queue)
{
    const tac_kctx kc = tac_device_kctx(s->dev, queue);
    const float *found[TAC__SCALER_OPTIMIZERS];
    const tac_scaler_args a = {
        .growth_factor = (float)s->config.growth_factor,
        .backoff_factor = (float)s->config.backoff_factor,
        .min_scale = (float)s->config.min_scale,
        .max_scale = (float)s->config.max_scale,
        .growth_interval = (int32_t)s->config.growth_interval,
    };

    for (size_t i = 0; i < s->n_entries; ++i)
        found[i] = &tac_optimizer_scalars(s->entries[i].optimizer)->found_inf;
    return s->k->scaler_update(&kc, &a, found, s->n_entries,
                               tac_optimizer_first_bad(s->entries[0].optimizer),
                               &s->part->view.state);
}

/* The optimizers as they were before: the next gradients are new, and between
 * iterations nothing divides them. */
static tac_status forget(tac_scaler *s, tac_queue *queue)
{
    for (size_t i = 0; i < s->n_entries; ++i) {
        tac_optimizer *o = s->entries[i].optimizer;
        TAC_TRY(tac_optimizer_clear_found_inf(o, queue));
        TAC_TRY(tac_optimizer_set_grad_scale(o, &s->part->one, queue));
    }
    return TAC_OK;
}

static tac_status finish(tac_scaler *s, tac_queue *queue)
{
    TAC_TRY(collect_bad(s, queue));
    TAC_TRY(update_state(s, queue));
    return forget(s, queue);
}

tac_status tac_scaler_update(tac_scaler *s, tac_queue *queue)
{
    if (!s->config.enabled) return TAC_OK;
    if (s->n_entries == 0)
        return tac_fail(s->ctx, TAC_ERR_STATE,
                        "No inf checks were recorded prior to update(): call "
                        "step() on each optimizer first");
    TAC_TRY(finish(s, queue));
    TAC_TRY(tac__scaler_mirror_now(s, queue));
    s->n_entries = 0;
    return TAC_OK;
}

static float clamped(const tac_scaler *s, double scale)
{
    const double v =
        fmin(fmax(scale, s->config.min_scale), s->config.max_scale);
    return (float)v;
}

tac_status tac_scaler_set_scale(tac_scaler *s, double new_scale,
                                tac_queue *queue)
{
    float *slot = &s->scale_slots[s->next_scale_slot % TAC__SCALE_SLOTS];

    if (!(new_scale > 0.0) || !isfinite((float)new_scale))
        return tac_fail(s->ctx, TAC_ERR_ARG,
                        "loss scaling: a scale of %g; it must be above 0 and "
                        "finite in f32",
                        new_scale);
    if (!s->config.enabled) return TAC_OK;
    if (s->n_entries > 0) TAC_TRY(finish(s, queue));
    s->next_scale_slot += 1;
    *slot = clamped(s, new_scale);
    TAC_TRY(tac_device_ops_of(s->dev)->copy(
        tac_device_impl(s->dev), &s->part->view.state.scale, slot, sizeof *slot,
        TAC_COPY_HOST_TO_DEVICE, queue));
    TAC_TRY(tac__scaler_mirror_now(s, queue));
    s->n_entries = 0;
    return TAC_OK;
}
