/* A tape's life: creation, the start of a step, inputs, accessors. */
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"
#include "tacit/trace.h"
#include "tape_impl.h"

/* One block of memory a kind, so that there is one place to fail. */
static tac_status alloc_params(tac_tape *t)
{
    const size_t n = t->n_params + 1;

    t->param_tensors = calloc(n, sizeof *t->param_tensors);
    t->casts_of = calloc(n, sizeof *t->casts_of);
    t->pending = calloc(n, sizeof *t->pending);
    t->final_order = calloc(n, sizeof *t->final_order);
    t->filled = calloc(n, 1);
    t->touched = calloc(n, 1);
    t->final = calloc(n, 1);
    if (t->param_tensors == NULL || t->casts_of == NULL || t->pending == NULL ||
        t->final_order == NULL || t->filled == NULL || t->touched == NULL ||
        t->final == NULL)
        return tac_fail(t->ctx, TAC_ERR_NOMEM,
                        "tape: no memory for %zu parameters", t->n_params);
    return TAC_OK;
}

static void init_param_tensor(tac_tape *t, size_t i)
{
    const tac_param *q = tac_params_get(t->params, i);
    tac_tensor *x = &t->param_tensors[i];

    memset(x, 0, sizeof *x);
    x->dtype = t->dtype;
    x->ndim = q->ndim;
    memcpy(x->shape, q->shape, sizeof x->shape);
    x->name = q->name;
    x->param = (ptrdiff_t)i;
}

static tac_status alloc_arenas(tac_tape *t, const tac_tape_config *config)
{
    const tac_allocator host = tac_host_allocator();
    const tac_allocator own = tac_device_allocator(t->dev);
    const tac_allocator *data = config->activations;

    TAC_TRY(tac_arena_create(t->ctx, &host, &t->meta));
    return tac_arena_create(t->ctx, data != NULL ? data : &own, &t->data);
}

tac_status tac_tape_create(tac_params *params, const tac_tape_config *config,
                           tac_tape **out)
{
    const tac_tape_config defaults = TAC_TAPE_CONFIG_INIT;
    tac_device *dev = tac_params_device(params);
    tac_context *ctx = tac_device_context(dev);
    tac_status s;

    if (config == NULL) config = &defaults;
    tac_tape *t = calloc(1, sizeof *t);
    if (t == NULL) return tac_fail(ctx, TAC_ERR_NOMEM, "tape: no memory");
    t->ctx = ctx;
    t->dev = dev;
    t->params = params;
    t->dtype = tac_params_dtype(params);
    t->kc = tac_device_kctx(dev, config->queue);
    t->seed = config->seed;
    t->recompute_next = config->recompute;
    t->n_params = tac_params_count(params);
    t->grad_dtype = tac_params_grad_dtype(params);
    for (int i = 0; i < TAC_DTYPE_COUNT; ++i)
        t->k[i] = tac_device_kernels(dev, (tac_dtype)i);
    if (t->k[t->dtype] == NULL) {
        s = tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                     "tape: device %s has no kernels for %s",
                     tac_device_name(dev), tac_dtype_name(t->dtype));
        goto fail;
    }
    s = alloc_params(t);
    if (s < 0) goto fail;
    for (size_t i = 0; i < t->n_params; ++i) init_param_tensor(t, i);
    s = alloc_arenas(t, config);
    if (s < 0) goto fail;
    *out = t;
    return TAC_OK;

fail:
    tac_tape_destroy(t);
    return s;
}

void tac_tape_destroy(tac_tape *t)
{
    if (t == NULL) return;
    tac_arena_destroy(t->data);
    tac_arena_destroy(t->meta);
    free(t->param_tensors);
    free(t->casts_of);
    free(t->pending);
    free(t->final_order);
    free(t->filled);
    free(t->touched);
    free(t->final);
    free(t);
}

static tac_status check_begin(const tac_tape *t, const tac_tape_step *step)
{
    if (tac_params_count(t->params) != t->n_params)
        return tac_fail(t->ctx, TAC_ERR_STATE,
                        "tape: %zu parameters, %zu when it was made: create it "
                        "after the model",
                        tac_params_count(t->params), t->n_params);
    if ((step->flags & TAC_TAPE_DRY) == 0 &&
        tac_params_order(t->params) == NULL)
        return tac_fail(t->ctx, TAC_ERR_STATE,
                        "tape: parameters have no memory: call "
                        "tac_params_layout, or make the step dry");
    if (step->step >> 32 != 0)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "tape: step %llu does not fit 32 bits",
                        (unsigned long long)step->step);
    return TAC_OK;
}

static void begin_param(tac_tape *t, size_t i)
{
    tac_tensor *x = &t->param_tensors[i];

    x->data = tac_params_value(t->params, i);
    x->grad = tac_params_grad(t->params, i);
    x->requires_grad =
        (t->step.flags & TAC_TAPE_EVAL) == 0 &&
        (tac_params_get(t->params, i)->flags & TAC_PARAM_FROZEN) == 0;
    x->has_grad = 0;
    x->uses = 0;
    t->casts_of[i] = NULL;
    t->pending[i] = 0;
    t->touched[i] = 0;
    t->final[i] = 0;
    if ((t->step.flags & TAC_TAPE_ACCUMULATE) == 0) t->filled[i] = 0;
}

tac_status tac_tape_begin(tac_tape *t, const tac_tape_step *step)
{
    static const tac_tape_step zeros = {0, 0, 0, 0};

    if (step == NULL) step = &zeros;
    t->phase = TAC__IDLE;
    TAC_TRY(check_begin(t, step));
    t->step = *step;
    if (t->step.sample_stride == 0) t->step.sample_stride = 1;
    t->dry = (step->flags & TAC_TAPE_DRY) != 0;
    t->recording = t->counting = (step->flags & TAC_TAPE_EVAL) == 0;
    t->recompute = t->recompute_next;
    t->probing = 0;
    t->last = NULL;
    t->loss_scale = NULL;
    t->casts = NULL;
    t->ordinal = t->region = 0;
    t->dropouts = 0;
    t->free_list = NULL;
    t->redirects = NULL;
    t->n_redirects = 0;
    t->n_final = t->n_unused = 0;
    TAC_TRY(tac_arena_reset(t->meta, 0));
    TAC_TRY(tac_arena_reset(t->data, t->dry));
    for (size_t i = 0; i < t->n_params; ++i) begin_param(t, i);
    t->phase = TAC__FORWARD;
    return TAC_OK;
}

static tac_status check_new_input(const tac_tape *t, const char *name,
                                  tac_dtype dtype, int ndim,
                                  const size_t *shape, int requires_grad)
{
    size_t count = 0;

    TAC_TRY(tac__check_phase(t, "input"));
    if (name == NULL) name = "(unnamed)";
    if (ndim < 0 || ndim > TAC_MAX_DIMS)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "input %s: %d dimensions; 0 to %d are possible", name,
                        ndim, TAC_MAX_DIMS);
    if (tac_dtype_size(dtype) == 0 || !tac_shape_count(ndim, shape, &count))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "input %s: no dtype, or a size that overflows", name);
    if (requires_grad && (!tac_dtype_is_float(dtype) || t->k[dtype] == NULL))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "input %s: a gradient needs a floating-point type that "
                        "the device computes in, such as %s, not %s",
                        name, tac_dtype_name(t->dtype), tac_dtype_name(dtype));
    return TAC_OK;
}

tac_status tac_tape_input(tac_tape *t, const char *name, tac_dtype dtype,
                          int ndim, const size_t *shape, void *data,
                          int requires_grad, tac_tensor **out)
{
    tac_tensor *x = NULL;

    TAC_TRY(check_new_input(t, name, dtype, ndim, shape, requires_grad));
    TAC_TRY(tac__meta_alloc(t, sizeof *x, (void **)&x));
    x->dtype = dtype;
    x->ndim = ndim;
    for (int i = 0; i < ndim; ++i) x->shape[i] = shape[i];
    x->data = t->dry ? NULL : data;
    x->name = name;
    x->param = -1;
    x->ordinal = t->ordinal++;
    x->requires_grad = requires_grad && (t->step.flags & TAC_TAPE_EVAL) == 0;
    *out = x;
    return TAC_OK;
}

tac_tensor *tac_tape_param(tac_tape *t, size_t index)
{
    return index < t->n_params ? &t->param_tensors[index] : NULL;
}

void tac_tape_set_hooks(tac_tape *t, const tac_grad_hooks *hooks)
{
    const tac_grad_hooks none = {NULL, NULL, NULL};
    t->hooks = hooks != NULL ? *hooks : none;
}

void tac_tape_set_recompute(tac_tape *t, int on)
{
    t->recompute_next = on;
}

tac_params *tac_tape_params(const tac_tape *t)
{
    return t->params;
}

tac_device *tac_tape_device(const tac_tape *t)
{
    return t->dev;
}

tac_queue *tac_tape_queue(const tac_tape *t)
{
    return t->kc.queue;
}

tac_dtype tac_tape_dtype(const tac_tape *t)
{
    return t->dtype;
}

int tac_tape_is_dry(const tac_tape *t)
{
    return t->dry;
}

size_t tac_tape_high_water(const tac_tape *t)
{
    return tac_arena_high_water(t->data);
}

size_t tac_tape_widest(const tac_tape *t)
{
    return t->widest;
}

uint64_t tac__span_begin(const tac_tape *t)
{
    return t->dry || !tac_trace_enabled(t->ctx) ? 0 : tac_clock_ns();
}

void tac__span_end(const tac_tape *t, const char *name, uint64_t begin)
{
    if (begin == 0) return;
    tac_trace_span(t->ctx, TAC_LANE_COMPUTE, name, begin, tac_clock_ns(), -1);
}
