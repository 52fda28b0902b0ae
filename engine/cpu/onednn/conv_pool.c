/* conv_pool.c: the table's entries of convolution, ReLU and max pooling as one
 * block.
 *
 * On the network of the benchmarks the block saves four passes over its largest
 * arrays, a quarter of a training step. Scratch: half a MiB a thread (in bf16,
 * one) beside the convolutions' own. */
#include "cpu/onednn/conv_pool.h"
#include "tacit/pool.h"

enum { CACHED_BYTES = 512 << 10, ALIGNMENT = 64 };

/* Adds an array to the workspace; returns its offset. */
static size_t add_bytes(tac__block *c, size_t bytes)
{
    const size_t at = c->bytes;
    c->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
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

/* What a slice needs in another type than it comes in. */
static void add_copies(tac__block *c, size_t images, int backward)
{
    const tac_conv2d *d = c->d;
    const tac_pool2d *p = c->p;
    const size_t pooled = images * p->oh * p->ow * p->c * sizeof(float);
    if (c->type == TAC_F32) return;
    c->at.pooled = add_bytes(c, pooled);
    if (c->small) {
        c->at.x = add_bytes(c, images * d->h * d->w * d->ic * sizeof(float));
        c->at.w = add_bytes(c, weight_bytes(d));
    }
    if (!backward) return;
    c->at.y = add_bytes(c, pooled);
    c->at.narrow = add_bytes(c, images * image_bytes(d) / 2);
}

/* 1 and the beginnings of a workspace, or 0 if the base table has to do it. */
static int begin_call(tac__block *c, int backward)
{
    c->o = tac__onednn_of(c->kc);
    if (is_empty(c->d, c->p)) return 0;
    c->chunks = chunks_for(c->kc, c->d);
    const size_t images = (c->d->n + c->chunks - 1) / c->chunks;
    if (c->o->small && c->o->small->fits(c->d)) c->small = c->o->small;
    add_bytes(c, images * image_bytes(c->d)); /* at 0 */
    add_copies(c, images, backward);
    return 1;
}

/* Adds a plan and its workspace, at *at. *ok becomes 0 if oneDNN refuses. */
static tac_status add_plan(tac__block *c, const tac__conv_spec *spec,
                           const tac__conv_plan **plan, size_t *at, int *ok)
{
    TAC_TRY(tac__conv_plan_get(c->o, spec, c->chunks, plan));
    *at = add_bytes(c, (*plan)->bytes);
    if ((*plan)->unsupported) *ok = 0;
    return TAC_OK;
}

static tac_status run(tac__block *c, tac_pool_fn *fn, int *parts)
{
    const size_t threads = (size_t)tac_pool_size(c->kc->pool);
    TAC_TRY(tac__onednn_reserve(c->o, threads, c->bytes));
    *parts = tac_pool_for(c->kc->pool, c->chunks, 1, fn, c);
    const int failed = atomic_load(&c->failed);
    if (failed == dnnl_success) return TAC_OK;
    return tac__onednn_fail(c->o, (dnnl_status_t)failed,
                            "a convolution with pooling");
}

static const tac_kernels *base(const tac__block *c)
{
    return c->type == TAC_F32 ? &c->o->base : &c->o->base_bf16;
}

static tac_status forward(tac__block *c)
{
    const tac__conv_spec spec = {.kind = TAC__CONV_FORWARD,
                                 .d = *c->d,
                                 .in = c->type,
                                 .out = TAC_F32,
                                 .bias = c->b != NULL,
                                 .relu = 1};
    int ok = begin_call(c, 0), parts;
    if (ok && !c->small)
        TAC_TRY(add_plan(c, &spec, &c->forward, &c->at.plan, &ok));
    if (!ok)
        return base(c)->conv2d_pool_forward(c->kc, c->d, c->p, c->x, c->w, c->b,
                                            c->out, c->index_out);
    return run(c, tac__block_forward_part, &parts);
}

/* Plans of the gradients that are wanted. */
static tac_status plan_backward(tac__block *c, int bias, int accumulate_data,
                                int *ok)
{
    const tac__conv_spec weights = {.kind = TAC__CONV_BACKWARD_WEIGHTS,
                                    .d = *c->d,
                                    .in = c->type,
                                    .out = TAC_F32,
                                    .bias = bias};
    const tac__conv_spec data = {.kind = TAC__CONV_BACKWARD_DATA,
                                 .d = *c->d,
                                 .in = c->type,
                                 .out = accumulate_data ? TAC_F32 : c->type,
                                 .accumulate = accumulate_data};
    if (c->want_weights && c->small)
        c->at.plan = add_bytes(c, weight_bytes(c->d));
    else if (c->want_weights)
        TAC_TRY(add_plan(c, &weights, &c->weights, &c->at.plan, ok));
    if (c->dx) TAC_TRY(add_plan(c, &data, &c->data, &c->at.data, ok));
    return TAC_OK;
}

/* The gradient that oneDNN multiplies is bf16. Where windows overlap it is a
 * sum, which would have to be rounded in between: not here. */
static int must_round(const tac__block *c)
{
    return c->type != TAC_F32 && c->p->k > c->p->stride;
}

static tac_status backward(tac__block *c, void *dw, void *db,
                           int accumulate_weights, int accumulate_data)
{
    int ok = begin_call(c, 1) && !must_round(c), parts = 0;
    if (ok) TAC_TRY(plan_backward(c, db != NULL, accumulate_data != 0, &ok));
    if (!ok)
        return base(c)->conv2d_pool_backward(
            c->kc, c->d, c->p, c->x, c->w, c->dy, c->index, c->y, dw, db,
            accumulate_weights, c->dx, accumulate_data);
    TAC_TRY(run(c, tac__block_backward_part, &parts));
    const size_t sums = c->weights ? tac__conv_sums(c->weights) : 0;
    if (dw)
        tac__conv_add_sums(c->kc, c->d, parts, c->at.plan + sums, dw, db,
                           accumulate_weights);
    return TAC_OK;
}

#define ENTRIES(name, dtype)                                                  \
    tac_status tac__onednn_conv_pool_forward_##name(                          \
        const tac_kctx *kc, const tac_conv2d *d, const tac_pool2d *p,         \
        const void *x, const void *w, const void *b, void *y, uint8_t *index) \
    {                                                                         \
        tac__block c = {.kc = kc,                                             \
                        .type = dtype,                                        \
                        .d = d,                                               \
                        .p = p,                                               \
                        .x = x,                                               \
                        .w = w,                                               \
                        .b = b,                                               \
                        .out = y,                                             \
                        .index_out = index};                                  \
        return forward(&c);                                                   \
    }                                                                         \
    tac_status tac__onednn_conv_pool_backward_##name(                         \
        const tac_kctx *kc, const tac_conv2d *d, const tac_pool2d *p,         \
        const void *x, const void *w, const void *dy, const uint8_t *index,   \
        const void *y, void *dw, void *db, int accumulate_weights, void *dx,  \
        int accumulate_data)                                                  \
    {                                                                         \
        tac__block c = {.kc = kc,                                             \
                        .type = dtype,                                        \
                        .d = d,                                               \
                        .p = p,                                               \
                        .x = x,                                               \
                        .w = w,                                               \
                        .dy = dy,                                             \
                        .index = index,                                       \
                        .y = y,                                               \
                        .dx = dx,                                             \
                        .want_weights = dw != NULL};                          \
        return backward(&c, dw, db, accumulate_weights, accumulate_data);     \
    }

ENTRIES(f32, TAC_F32)
ENTRIES(bf16, TAC_BF16)
