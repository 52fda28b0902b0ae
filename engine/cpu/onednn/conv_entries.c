/* conv_entries.c: the table's convolution entries over plans. */
#include <stdatomic.h>

#include "cpu/onednn/conv.h"
#include "tacit/pool.h"

typedef struct conv_call {
    tac__onednn *o;
    const tac__conv_plan *plan;
    char *x, *y;
    const void *w, *bias;
    _Atomic int failed; /* a dnnl_status_t */
} conv_call;

static dnnl_status_t run_chunks(const conv_call *c, size_t begin, size_t end,
                                int part)
{
    const tac_conv2d *d = &c->plan->key.spec.d;
    const size_t size = tac_dtype_size(c->plan->key.spec.in);
    tac__conv_args a = {
        .w = c->w, .bias = c->bias, .space = c->o->spaces[part].p};
    for (size_t i = begin; i < end; ++i) {
        const size_t n = c->plan->chunks[i].begin;
        a.x = c->x + n * d->h * d->w * d->ic * size;
        a.y = c->y + n * d->oh * d->ow * d->oc * size;
        a.first = i == begin;
        const dnnl_status_t s = tac__conv_chunk_run(c->plan, i, &a);
        if (s != dnnl_success) return s;
    }
    if (c->plan->key.spec.kind != TAC__CONV_BACKWARD_WEIGHTS)
        return dnnl_success;
    return tac__conv_finish(c->plan, end - 1);
}

static void run_part(void *arg, size_t begin, size_t end, int part)
{
    conv_call *c = arg;
    const int before = tac__omp_enter(&c->o->omp);
    const dnnl_status_t s = run_chunks(c, begin, end, part);
    tac__omp_leave(&c->o->omp, before);
    if (s != dnnl_success) atomic_store(&c->failed, (int)s);
}

static tac_status run(const tac_kctx *kc, conv_call *c, int *parts)
{
    const size_t threads = (size_t)tac_pool_size(kc->pool);
    TAC_TRY(tac__onednn_reserve(c->o, threads, c->plan->bytes));
    *parts = tac_pool_for(kc->pool, c->plan->count, 1, run_part, c);
    const int failed = atomic_load(&c->failed);
    if (failed == dnnl_success) return TAC_OK;
    return tac__onednn_fail(c->o, (dnnl_status_t)failed, "a convolution");
}

/* One chunk a thread, if that gives it some tens of microseconds to do. */
static size_t chunks_for(const tac_kctx *kc, const tac__conv_spec *spec)
{
    const tac_conv2d *d = &spec->d;
    const double work = 2.0 * (double)(d->n * d->oh * d->ow) *
                        (double)(d->oc * d->ic * d->kh * d->kw);
    const size_t threads = (size_t)tac_pool_size(kc->pool);
    const size_t most = threads < d->n ? threads : d->n;
    const double worth = work / (spec->in == TAC_F32 ? 1e6 : 4e6) + 1;
    return worth < (double)most ? (size_t)worth : most;
}

/* A plan, or none where the base table has to do it: empty shapes, what oneDNN
 * refuses, and (unless dx is wanted) what is better done directly. */
static tac_status find_plan(const tac_kctx *kc, const tac__conv_spec *spec,
                            conv_call *c)
{
    const tac_conv2d *d = &spec->d;
    c->o = tac__onednn_of(kc);
    if (d->n * d->oh * d->ow * d->oc == 0 || d->ic * d->kh * d->kw == 0 ||
        d->h * d->w == 0)
        return TAC_OK;
    if (spec->kind != TAC__CONV_BACKWARD_DATA && c->o->small &&
        c->o->small->fits(d))
        return TAC_OK;
    TAC_TRY(tac__conv_plan_get(c->o, spec, chunks_for(kc, spec), &c->plan));
    if (c->plan->unsupported) c->plan = NULL;
    return TAC_OK;
}

static const tac_kernels *base(const conv_call *c, tac_dtype t)
{
    return t == TAC_F32 ? &c->o->base : &c->o->base_bf16;
}

static tac_status forward(const tac_kctx *kc, tac_dtype t, const tac_conv2d *d,
                          const void *x, const void *w, const void *b,
                          tac_act act, void *y)
{
    const tac__conv_spec spec = {.kind = TAC__CONV_FORWARD,
                                 .d = *d,
                                 .in = t,
                                 .out = t,
                                 .bias = b != NULL,
                                 .relu = act == TAC_ACT_RELU};
    conv_call c = {.x = (char *)x, .w = w, .bias = b, .y = y};
    int parts;
    TAC_TRY(find_plan(kc, &spec, &c));
    if (!c.plan) return base(&c, t)->conv2d_forward(kc, d, x, w, b, act, y);
    return run(kc, &c, &parts);
}

static tac_status backward_data(const tac_kctx *kc, tac_dtype t,
                                const tac_conv2d *d, const void *dy,
                                const void *w, void *dx, int accumulate)
{
    const tac__conv_spec spec = {.kind = TAC__CONV_BACKWARD_DATA,
                                 .d = *d,
                                 .in = t,
                                 .out = accumulate ? TAC_F32 : t,
                                 .accumulate = accumulate != 0};
    conv_call c = {.x = dx, .w = w, .y = (char *)dy};
    int parts;
    TAC_TRY(find_plan(kc, &spec, &c));
    if (!c.plan)
        return base(&c, t)->conv2d_backward_data(kc, d, dy, w, dx, accumulate);
    return run(kc, &c, &parts);
}

static tac_status backward_weights(const tac_kctx *kc, tac_dtype t,
                                   const tac_conv2d *d, const void *x,
                                   const void *dy, void *dw, void *db,
                                   int accumulate)
{
    const tac__conv_spec spec = {.kind = TAC__CONV_BACKWARD_WEIGHTS,
                                 .d = *d,
                                 .in = t,
                                 .out = TAC_F32,
                                 .bias = db != NULL};
    conv_call c = {.x = (char *)x, .y = (char *)dy};
    int parts = 0;
    TAC_TRY(find_plan(kc, &spec, &c));
    if (!c.plan)
        return base(&c, t)->conv2d_backward_weights(kc, d, x, dy, dw, db,
                                                    accumulate);
    TAC_TRY(run(kc, &c, &parts));
    tac__conv_add_sums(kc, d, parts, tac__conv_sums(c.plan), dw, db,
                       accumulate);
    return TAC_OK;
}

#define ENTRIES(name, type)                                                    \
    tac_status tac__onednn_conv_forward_##name(                                \
        const tac_kctx *kc, const tac_conv2d *d, const void *x, const void *w, \
        const void *b, tac_act act, void *y)                                   \
    {                                                                          \
        return forward(kc, type, d, x, w, b, act, y);                          \
    }                                                                          \
    tac_status tac__onednn_conv_backward_data_##name(                          \
        const tac_kctx *kc, const tac_conv2d *d, const void *dy,               \
        const void *w, void *dx, int accumulate)                               \
    {                                                                          \
        return backward_data(kc, type, d, dy, w, dx, accumulate);              \
    }                                                                          \
    tac_status tac__onednn_conv_backward_weights_##name(                       \
        const tac_kctx *kc, const tac_conv2d *d, const void *x,                \
        const void *dy, void *dw, void *db, int accumulate)                    \
    {                                                                          \
        return backward_weights(kc, type, d, x, dy, dw, db, accumulate);       \
    }

ENTRIES(f32, TAC_F32)
ENTRIES(bf16, TAC_BF16)
