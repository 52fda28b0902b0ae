/* conv_entries.c: convolutions of few input channels in the table. Images are
 * shared among the pool; weight gradients are added part by part, in order. */
#include "cpu/avx512/conv_entries.h"

#include "cpu/ref/ref.h"
#include "cpu/small_conv.h"
#include "tacit/pool.h"

enum {
    MAX_PARTS = 16,
    MAX_SUMS = 27 * 128 + 128, /* of the shapes that fit */
    GRAIN = 2,                 /* images */
};

typedef struct conv_call {
    const tac__small_conv *small;
    const tac_conv2d *d;
    const float *x, *w, *b, *dy;
    float *y;
    tac_act act;
    float sums[MAX_PARTS][MAX_SUMS];
} conv_call;

static const tac__small_conv *find(const tac_conv2d *d)
{
    const tac__small_conv *small = tac__small_conv_find();
    return small && small->fits(d) ? small : NULL;
}

static tac_conv2d slice(const tac_conv2d *d, size_t begin, size_t end)
{
    tac_conv2d part = *d;
    part.n = end - begin;
    return part;
}

static void forward_images(void *arg, size_t begin, size_t end, int part)
{
    const conv_call *c = arg;
    const tac_conv2d d = slice(c->d, begin, end);
    (void)part;
    c->small->forward(&d, c->x + begin * d.h * d.w * d.ic, c->w, c->b, c->act,
                      c->y + begin * d.oh * d.ow * d.oc);
}

static tac_status forward(const tac_kctx *kc, const tac_conv2d *d,
                          const void *x, const void *w, const void *b,
                          tac_act act, void *y)
{
    conv_call c = {
        .small = find(d), .d = d, .x = x, .w = w, .b = b, .y = y, .act = act};
    if (!c.small) {
        tac_kernels ref;
        tac__ref_apply_f32(&ref);
        return ref.conv2d_forward(kc, d, x, w, b, act, y);
    }
    tac_pool_for(kc->pool, d->n, GRAIN, forward_images, &c);
    return TAC_OK;
}

static size_t weight_count(const tac_conv2d *d)
{
    return d->oc * d->ic * d->kh * d->kw;
}

static void weights_images(void *arg, size_t begin, size_t end, int part)
{
    conv_call *c = arg;
    const tac_conv2d d = slice(c->d, begin, end);
    float *sums = c->sums[part];
    c->small->backward_weights(&d, c->x + begin * d.h * d.w * d.ic,
                               c->dy + begin * d.oh * d.ow * d.oc, sums,
                               sums + weight_count(&d), 0);
}

static void add_parts(const conv_call *c, int parts, size_t from, float *to,
                      size_t n, int accumulate)
{
    for (size_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int part = 0; part < parts; ++part) sum += c->sums[part][from + i];
        to[i] = accumulate ? to[i] + sum : sum;
    }
}

static tac_status backward_weights(const tac_kctx *kc, const tac_conv2d *d,
                                   const void *x, const void *dy, void *dw,
                                   void *db, int accumulate)
{
    conv_call c;
    c.small = find(d);
    c.d = d;
    c.x = x;
    c.dy = dy;
    if (!c.small) {
        tac_kernels ref;
        tac__ref_apply_f32(&ref);
        return ref.conv2d_backward_weights(kc, d, x, dy, dw, db, accumulate);
    }
    const size_t least = d->n / MAX_PARTS + 1;
    const size_t grain = least > GRAIN ? least : GRAIN;
    const int parts = tac_pool_for(kc->pool, d->n, grain, weights_images, &c);
    const size_t count = weight_count(d);
    add_parts(&c, parts, 0, dw, count, accumulate);
    if (db) add_parts(&c, parts, count, db, d->oc, accumulate);
    return TAC_OK;
}

void tac__avx512_conv_apply(tac_kernels *table)
{
    table->conv2d_forward = forward;
    table->conv2d_backward_weights = backward_weights;
}
