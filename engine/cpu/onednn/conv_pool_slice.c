/* conv_pool_slice.c: the work of one slice of images. */
#include "cpu/onednn/conv_pool.h"
#include "tacit/half.h"

/* One chunk's images. */
typedef struct slice {
    size_t i, begin; /* chunk, first image */
    tac_conv2d d;
    tac_pool2d p;
    char *space;
    float *conv; /* the convolution's output or its gradient */
    int first;   /* of this thread */
} slice;

static slice slice_of(const tac__block *c, size_t i, int part, int first)
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

static size_t x_count(const slice *s)
{
    return s->d.n * s->d.h * s->d.w * s->d.ic;
}

static size_t y_count(const slice *s)
{
    return s->p.n * s->p.oh * s->p.ow * s->p.c;
}

static size_t weight_count(const tac_conv2d *d)
{
    return d->oc * d->ic * d->kh * d->kw;
}

/* Offset in elements of a slice in the block's output, and in its input. */
static size_t y_at(const slice *s)
{
    return s->begin * s->p.oh * s->p.ow * s->p.c;
}

static size_t x_at(const slice *s)
{
    return s->begin * s->d.h * s->d.w * s->d.ic;
}

static size_t size_of(const tac__block *c)
{
    return tac_dtype_size(c->type);
}

/* n elements in f32: p itself, or a copy at `to`. */
static const float *wide(const tac__block *c, const char *p, size_t n, char *to)
{
    const void *from = p;
    float *copy = (float *)(void *)to;
    if (c->type == TAC_F32 || !p) return from;
    tac_bf16_to_f32_n(copy, from, n);
    return copy;
}

static float *f32_at(const slice *s, size_t offset)
{
    return (float *)(void *)(s->space + offset);
}

static void small_forward(const tac__block *c, const slice *s)
{
    const size_t count = weight_count(&s->d);
    char *const w_to = s->space + c->at.w;
    const float *x =
        wide(c, c->x + x_at(s) * size_of(c), x_count(s), s->space + c->at.x);
    const float *w = wide(c, c->w, count, w_to);
    const float *b = wide(c, c->b, s->d.oc, w_to + count * sizeof(float));
    c->small->forward(&s->d, x, w, b, TAC_ACT_RELU, s->conv);
}

static dnnl_status_t convolve(const tac__block *c, const slice *s)
{
    if (c->small) {
        small_forward(c, s);
        return dnnl_success;
    }
    const tac__conv_args a = {.x =
                                  (void *)(size_t)(c->x + x_at(s) * size_of(c)),
                              .w = c->w,
                              .bias = c->b,
                              .y = s->conv,
                              .space = s->space + c->at.plan,
                              .first = s->first};
    return tac__conv_chunk_run(c->forward, s->i, &a);
}

static void pool(const tac__block *c, const slice *s)
{
    const tac_kctx serial = {.ctx = c->kc->ctx};
    void *const out = c->out + y_at(s) * size_of(c);
    float *const y = c->type == TAC_F32 ? out : f32_at(s, c->at.pooled);
    c->o->base.maxpool2d_forward(&serial, &s->p, s->conv, y,
                                 c->index_out ? c->index_out + y_at(s) : NULL);
    if (c->type != TAC_F32) tac_f32_to_bf16_n(out, y, y_count(s));
}

static void fail(tac__block *c, dnnl_status_t status)
{
    if (status != dnnl_success) atomic_store(&c->failed, (int)status);
}

void tac__block_forward_part(void *arg, size_t begin, size_t end, int part)
{
    tac__block *c = arg;
    const int before = tac__omp_enter(&c->o->omp);
    for (size_t i = begin; i < end; ++i) {
        const slice s = slice_of(c, i, part, i == begin);
        fail(c, convolve(c, &s));
        pool(c, &s);
    }
    tac__omp_leave(&c->o->omp, before);
}

/* The gradient of the convolution's output, in f32. */
static void unpool(const tac__block *c, const slice *s)
{
    const tac_kctx serial = {.ctx = c->kc->ctx};
    const size_t offset = y_at(s) * size_of(c), n = y_count(s);
    const float *dy = wide(c, c->dy + offset, n, s->space + c->at.pooled);
    const float *y = wide(c, c->y + offset, n, s->space + c->at.y);
    c->o->base.maxpool2d_backward(&serial, &s->p, dy, c->index + y_at(s), y,
                                  s->conv);
}

/* The same as oneDNN wants it. */
static void *narrow(const tac__block *c, const slice *s)
{
    void *const copy = s->space + c->at.narrow;
    if (c->type == TAC_F32) return s->conv;
    tac_f32_to_bf16_n(copy, s->conv, s->d.n * s->d.oh * s->d.ow * s->d.oc);
    return copy;
}

static void small_weights(const tac__block *c, const slice *s)
{
    const float *x =
        wide(c, c->x + x_at(s) * size_of(c), x_count(s), s->space + c->at.x);
    float *dw = f32_at(s, c->at.plan);
    c->small->backward_weights(&s->d, x, s->conv, dw, dw + weight_count(&s->d),
                               !s->first);
}

static dnnl_status_t weights(const tac__block *c, const slice *s, void *dy)
{
    const tac__conv_args a = {.x =
                                  (void *)(size_t)(c->x + x_at(s) * size_of(c)),
                              .y = dy,
                              .space = s->space + c->at.plan,
                              .first = s->first};
    return tac__conv_chunk_run(c->weights, s->i, &a);
}

static dnnl_status_t data(const tac__block *c, const slice *s, void *dy)
{
    const tac__conv_args a = {.x = c->dx + x_at(s) * size_of(c),
                              .w = c->w,
                              .y = dy,
                              .space = s->space + c->at.data,
                              .first = s->first};
    return tac__conv_chunk_run(c->data, s->i, &a);
}

static void backward_slice(tac__block *c, const slice *s)
{
    unpool(c, s);
    if (c->want_weights && c->small) small_weights(c, s);
    if (!c->weights && !c->data) return;
    void *const dy = narrow(c, s);
    if (c->weights) fail(c, weights(c, s, dy));
    if (c->data) fail(c, data(c, s, dy));
}

void tac__block_backward_part(void *arg, size_t begin, size_t end, int part)
{
    tac__block *c = arg;
    const int before = tac__omp_enter(&c->o->omp);
    for (size_t i = begin; i < end; ++i) {
        const slice s = slice_of(c, i, part, i == begin);
        backward_slice(c, &s);
    }
    if (c->weights) fail(c, tac__conv_finish(c->weights, end - 1));
    tac__omp_leave(&c->o->omp, before);
}
