/* conv_pool.c: convolution, ReLU and max pooling as one block.
 *
 * A thread takes some images at a time, so few that the convolution's output
 * stays in its second-level cache between the two steps, forward and backward.
 * On the network of the benchmarks that saves four passes over its largest
 * arrays, a quarter of a training step. Scratch: half a MiB a thread beside
 * the convolutions' own. */
#include <stdatomic.h>

#include "cpu/onednn/conv.h"
#include "tacit/pool.h"

enum { CACHED_BYTES = 512 << 10, ALIGNMENT = 64 };

/* A workspace: the convolution's output (or its gradient), then what backward
 * weights (or forward) needs, then what backward data needs. */
typedef struct block_call {
    tac__onednn *o;
    const tac_kctx *kc;
    const tac_conv2d *d;
    const tac_pool2d *p;
    const tac__conv_plan *forward, *weights, *data; /* NULL: not used */
    const tac__small_conv *small; /* instead of forward and weights */
    size_t chunks, plan_at, data_at, bytes;
    const float *x, *w, *b, *dy, *y;
    const uint8_t *index;
    float *out, *dx;
    uint8_t *index_out;
    int want_weights;
    _Atomic int failed; /* a dnnl_status_t */
} block_call;

/* One chunk's images. */
typedef struct slice {
    size_t i, begin; /* chunk, first image */
    tac_conv2d d;
    tac_pool2d p;
    char *space;
    float *conv; /* the convolution's output or its gradient */
    int first;   /* of this thread */
} slice;

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t image_bytes(const tac_conv2d *d)
{
    return d->oh * d->ow * d->oc * sizeof(float);
}

static size_t chunks_for(const tac_kctx *kc, const tac_conv2d *d)
{
    const size_t threads = (size_t)tac_pool_size(kc->pool);
    const size_t fitting = CACHED_BYTES / image_bytes(d);
    const size_t images = fitting > 0 ? fitting : 1;
    const size_t each = (d->n + threads - 1) / threads;
    const size_t chunks = threads * ((each + images - 1) / images);
    return chunks < d->n ? chunks : d->n;
}

static size_t weight_bytes(const tac_conv2d *d)
{
    return (d->oc * d->ic * d->kh * d->kw + d->oc) * sizeof(float);
}

static int is_empty(const tac_conv2d *d, const tac_pool2d *p)
{
    return d->n * d->oh * d->ow * d->oc == 0 || d->h * d->w == 0 ||
           d->ic * d->kh * d->kw == 0 || p->oh * p->ow == 0;
}

/* Adds a plan to the workspace. *ok becomes 0 if oneDNN refuses. */
static tac_status add_plan(block_call *c, const tac__conv_spec *spec,
                           const tac__conv_plan **plan, int *ok)
{
    TAC_TRY(tac__conv_plan_get(c->o, spec, c->chunks, plan));
    c->bytes += round_up((*plan)->bytes);
    if ((*plan)->unsupported) *ok = 0;
    return TAC_OK;
}

/* 1 and the beginnings of a workspace, or 0 if the reference has to do it. */
static int begin_call(block_call *c)
{
    c->o = c->kc->cache;
    if (is_empty(c->d, c->p)) return 0;
    c->chunks = chunks_for(c->kc, c->d);
    c->bytes =
        round_up((c->d->n + c->chunks - 1) / c->chunks * image_bytes(c->d));
    c->plan_at = c->bytes;
    if (c->o->small && c->o->small->fits(c->d)) c->small = c->o->small;
    return 1;
}

static slice slice_of(const block_call *c, size_t i, int part, int first)
{
    slice s = {.i = i,
               .begin = c->d->n * i / c->chunks,
               .d = *c->d,
               .p = *c->p,
               .space = c->o->spaces[part].p,
               .first = first};
    s.d.n = s.p.n = c->d->n * (i + 1) / c->chunks - s.begin;
    s.conv = (float *)(void *)s.space;
    return s;
}

static const float *x_of(const block_call *c, const slice *s)
{
    return c->x + s->begin * s->d.h * s->d.w * s->d.ic;
}

/* Offset of a slice in the block's output. */
static size_t y_at(const slice *s)
{
    return s->begin * s->p.oh * s->p.ow * s->p.c;
}

static dnnl_status_t forward_slice(const block_call *c, const slice *s)
{
    const tac_kctx serial = {.ctx = c->kc->ctx};
    dnnl_status_t status = dnnl_success;
    if (c->small) {
        c->small->forward(&s->d, x_of(c, s), c->w, c->b, TAC_ACT_RELU, s->conv);
    } else {
        const tac__conv_args a = {.x = (float *)x_of(c, s),
                                  .w = c->w,
                                  .bias = c->b,
                                  .y = s->conv,
                                  .space = s->space + c->plan_at,
                                  .first = s->first};
        status = tac__conv_chunk_run(c->forward, s->i, &a);
    }
    c->o->base.maxpool2d_forward(&serial, &s->p, s->conv, c->out + y_at(s),
                                 c->index_out ? c->index_out + y_at(s) : NULL);
    return status;
}

static void fail(block_call *c, dnnl_status_t status)
{
    if (status != dnnl_success) atomic_store(&c->failed, (int)status);
}

static void forward_part(void *arg, size_t begin, size_t end, int part)
{
    block_call *c = arg;
    const int before = tac__omp_enter(&c->o->omp);
    for (size_t i = begin; i < end; ++i) {
        const slice s = slice_of(c, i, part, i == begin);
        fail(c, forward_slice(c, &s));
    }
    tac__omp_leave(&c->o->omp, before);
}

static tac_status run(block_call *c, tac_pool_fn *fn, int *parts)
{
    const size_t threads = (size_t)tac_pool_size(c->kc->pool);
    TAC_TRY(tac__onednn_reserve(c->o, threads, c->bytes));
    *parts = tac_pool_for(c->kc->pool, c->chunks, 1, fn, c);
    const int failed = atomic_load(&c->failed);
    if (failed == dnnl_success) return TAC_OK;
    return tac__onednn_fail(c->o, (dnnl_status_t)failed,
                            "a convolution with pooling");
}

tac_status tac__onednn_conv_pool_forward(const tac_kctx *kc,
                                         const tac_conv2d *d,
                                         const tac_pool2d *p, const void *x,
                                         const void *w, const void *b, void *y,
                                         uint8_t *index)
{
    const tac__conv_spec spec = {
        .kind = TAC__CONV_FORWARD, .d = *d, .bias = b != NULL, .relu = 1};
    block_call c = {.kc = kc,
                    .d = d,
                    .p = p,
                    .x = x,
                    .w = w,
                    .b = b,
                    .out = y,
                    .index_out = index};
    int ok = begin_call(&c), parts;
    if (ok && !c.small) TAC_TRY(add_plan(&c, &spec, &c.forward, &ok));
    if (!ok) return c.o->base.conv2d_pool_forward(kc, d, p, x, w, b, y, index);
    return run(&c, forward_part, &parts);
}

static dnnl_status_t weights_slice(const block_call *c, const slice *s)
{
    const tac_conv2d *d = &s->d;
    if (c->small) {
        float *dw = (float *)(void *)(s->space + c->plan_at);
        c->small->backward_weights(d, x_of(c, s), s->conv, dw,
                                   dw + d->oc * d->ic * d->kh * d->kw,
                                   !s->first);
        return dnnl_success;
    }
    const tac__conv_args a = {.x = (float *)x_of(c, s),
                              .y = s->conv,
                              .space = s->space + c->plan_at,
                              .first = s->first};
    return tac__conv_chunk_run(c->weights, s->i, &a);
}

static dnnl_status_t data_slice(const block_call *c, const slice *s)
{
    const tac__conv_args a = {.x = c->dx + s->begin * s->d.h * s->d.w * s->d.ic,
                              .w = c->w,
                              .y = s->conv,
                              .space = s->space + c->data_at,
                              .first = s->first};
    return tac__conv_chunk_run(c->data, s->i, &a);
}

static void backward_part(void *arg, size_t begin, size_t end, int part)
{
    block_call *c = arg;
    const tac_kctx serial = {.ctx = c->kc->ctx};
    const int before = tac__omp_enter(&c->o->omp);
    for (size_t i = begin; i < end; ++i) {
        const slice s = slice_of(c, i, part, i == begin);
        c->o->base.maxpool2d_backward(&serial, &s.p, c->dy + y_at(&s),
                                      c->index + y_at(&s), c->y + y_at(&s),
                                      s.conv);
        if (c->want_weights) fail(c, weights_slice(c, &s));
        if (c->dx) fail(c, data_slice(c, &s));
    }
    if (c->weights) fail(c, tac__conv_finish(c->weights, end - 1));
    tac__omp_leave(&c->o->omp, before);
}

/* Plans of the gradients that are wanted. */
static tac_status plan_backward(block_call *c, int bias, int accumulate_data,
                                int *ok)
{
    const tac__conv_spec weights = {
        .kind = TAC__CONV_BACKWARD_WEIGHTS, .d = *c->d, .bias = bias};
    const tac__conv_spec data = {.kind = TAC__CONV_BACKWARD_DATA,
                                 .d = *c->d,
                                 .accumulate = accumulate_data};
    if (c->want_weights && c->small)
        c->bytes += round_up(weight_bytes(c->d));
    else if (c->want_weights)
        TAC_TRY(add_plan(c, &weights, &c->weights, ok));
    c->data_at = c->bytes;
    if (c->dx) TAC_TRY(add_plan(c, &data, &c->data, ok));
    return TAC_OK;
}

tac_status tac__onednn_conv_pool_backward(
    const tac_kctx *kc, const tac_conv2d *d, const tac_pool2d *p, const void *x,
    const void *w, const void *dy, const uint8_t *index, const void *y,
    void *dw, void *db, int accumulate_weights, void *dx, int accumulate_data)
{
    block_call c = {.kc = kc,
                    .d = d,
                    .p = p,
                    .x = x,
                    .w = w,
                    .dy = dy,
                    .index = index,
                    .y = y,
                    .dx = dx,
                    .want_weights = !!dw};
    int ok = begin_call(&c), parts = 0;
    if (ok) TAC_TRY(plan_backward(&c, db != NULL, accumulate_data != 0, &ok));
    if (!ok)
        return c.o->base.conv2d_pool_backward(kc, d, p, x, w, dy, index, y, dw,
                                              db, accumulate_weights, dx,
                                              accumulate_data);
    TAC_TRY(run(&c, backward_part, &parts));
    const size_t sums = c.weights ? tac__conv_sums(c.weights) : 0;
    if (dw)
        tac__conv_add_sums(kc, d, parts, c.plan_at + sums, dw, db,
                           accumulate_weights);
    return TAC_OK;
}
