/* engine_bf16.c: products and convolutions of bf16 by oneDNN on random shapes,
 * against sums in f64 written out here.
 *
 * Operands are bf16 exactly, so what is left is the order of f32 sums and one
 * rounding of a 16-bit output. Also: the same bits in each run, no plan and no
 * scratch memory after the first call with a shape, ranks as threads at once,
 * NaN, and large shapes on which several threads share the work. Where the
 * processor has no bf16 the same tests run over what the table then has. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "kernel_check.h"
#include "tacit/pool.h"

#if defined(__has_include)
#if __has_include(<dnnl.h>)
#include "cpu/onednn/conv.h"
#include "cpu/onednn/matmul.h"
#define SEES_PLANS
#endif
#endif

/* 16 times the precision of f32, as in kernel_suite.h. */
static const double TOL = 16 * 0x1p-24;

typedef struct world {
    tac_context *ctx;
    tac_device *dev;
    const tac_kernels *k;
    tac_kctx kc;
} world;

static world open_world(int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    world w = {0};
    config.threads = threads;
    if (!CHECK_OK(tac_context_create(&config, &w.ctx)) ||
        !CHECK_OK(tac_device_open(w.ctx, "cpu", NULL, &w.dev)))
        exit(1);
    w.k = tac_device_kernels(w.dev, TAC_BF16);
    if (!CHECK(w.k != NULL)) exit(1);
    w.kc = tac_device_kctx(w.dev, NULL);
    return w;
}

static void close_world(world *w)
{
    tac_device_close(w->dev);
    tac_context_destroy(w->ctx);
}

#define RUN(w, entry, ...) CHECK_OK((w)->k->entry(&(w)->kc, __VA_ARGS__))

static uint64_t state;

/* 0 to below - 1. */
static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static triple random16(size_t n)
{
    return triple_random_as(TAC_BF16, n, below(1u << 20));
}

/* Something to add to, or poison. */
static triple output(tac_dtype t, size_t n, int accumulate)
{
    return accumulate ? triple_random_as(t, n, below(1u << 20))
                      : triple_poison_as(t, n);
}

/* ------------------------------------------------------------ products */

/* c (m,n) = op(a) op(b), added to c or not. */
typedef struct product {
    size_t m, n, k;
    int ta, tb, accumulate;
} product;

static void multiply(const product *p, const double *a, const double *b,
                     double *c)
{
    for (size_t i = 0; i < p->m; ++i)
        for (size_t j = 0; j < p->n; ++j) {
            double sum = p->accumulate ? c[i * p->n + j] : 0;
            for (size_t l = 0; l < p->k; ++l)
                sum += a[p->ta ? l * p->m + i : i * p->k + l] *
                       b[p->tb ? j * p->k + l : l * p->n + j];
            c[i * p->n + j] = sum;
        }
}

/* Both the values and the magnitudes. */
static void multiply_both(const product *p, const triple *a, const triple *b,
                          triple *c)
{
    multiply(p, a->d, b->d, c->d);
    multiply(p, a->mag, b->mag, c->mag);
}

typedef struct linear {
    size_t n, in, out;
    int bias, relu, accumulate;
    char what[128];
} linear;

static void check_forward(world *w, const linear *s)
{
    triple x = random16(s->n * s->in), m = random16(s->out * s->in);
    triple b = random16(s->out), y = output(TAC_BF16, s->n * s->out, 0);
    triple again = output(TAC_BF16, y.n, 0);
    const tac_act act = s->relu ? TAC_ACT_RELU : TAC_ACT_NONE;
    const void *bias = s->bias ? b.t : NULL;
    multiply_both(&(product){s->n, s->out, s->in, 0, 1, 0}, &x, &m, &y);
    for (size_t i = 0; i < y.n; ++i) {
        y.d[i] += s->bias ? b.d[i % s->out] : 0;
        y.mag[i] += s->bias ? b.mag[i % s->out] : 0;
        if (s->relu && y.d[i] < 0) y.d[i] = 0;
    }
    RUN(w, linear_forward, s->n, s->in, s->out, x.t, m.t, bias, act, y.t);
    triple_near(&y, TOL, s->what);
    RUN(w, linear_forward, s->n, s->in, s->out, x.t, m.t, bias, act, again.t);
    triple_same(&y, &again, s->what);
    triple_free_all((triple[]){x, m, b, y, again}, 5);
}

static void sum_rows(const triple *dy, size_t n, size_t out, int accumulate,
                     triple *db)
{
    for (size_t j = 0; j < out; ++j) {
        double sum = accumulate ? db->d[j] : 0,
               mag = accumulate ? db->mag[j] : 0;
        for (size_t i = 0; i < n; ++i) {
            sum += dy->d[i * out + j];
            mag += dy->mag[i * out + j];
        }
        db->d[j] = sum;
        db->mag[j] = mag;
    }
}

static void check_backward(world *w, const linear *s)
{
    const size_t n = s->n, in = s->in, out = s->out;
    const int acc = s->accumulate;
    triple x = random16(n * in), m = random16(out * in), dy = random16(n * out);
    triple dx = output(TAC_BF16, n * in, acc);
    triple dw = output(TAC_F32, out * in, acc), db = output(TAC_F32, out, acc);
    multiply_both(&(product){n, in, out, 0, 0, acc}, &dy, &m, &dx);
    multiply_both(&(product){out, in, n, 1, 0, acc}, &dy, &x, &dw);
    sum_rows(&dy, n, out, acc, &db);
    RUN(w, linear_backward_data, n, in, out, dy.t, m.t, dx.t, acc);
    RUN(w, linear_backward_weights, n, in, out, x.t, dy.t, dw.t,
        s->bias ? db.t : NULL, acc);
    triple_near(&dx, TOL, s->what);
    triple_near(&dw, TOL, s->what);
    if (s->bias) triple_near(&db, TOL, s->what);
    triple_free_all((triple[]){x, m, dy, dx, dw, db}, 6);
}

static void check_linear(world *w, linear *s)
{
    snprintf(s->what, sizeof s->what,
             "linear %zu %zu %zu bias %d relu %d accumulate %d, %d threads",
             s->n, s->in, s->out, s->bias, s->relu, s->accumulate,
             tac_pool_size(w->kc.pool));
    check_forward(w, s);
    check_backward(w, s);
}

/* Mostly small, now and then beyond a tile or 0. */
static size_t some_size(void)
{
    const size_t kind = below(16);
    if (kind == 0) return 0;
    if (kind < 3) return 1;
    return 1 + below(kind < 12 ? 40 : 160);
}

static void test_linear(world *w)
{
    for (int i = 0; i < 20; ++i) {
        linear s = {.n = some_size(),
                    .in = some_size(),
                    .out = some_size(),
                    .bias = (int)below(2),
                    .relu = (int)below(2),
                    .accumulate = (int)below(2)};
        check_linear(w, &s);
    }
    /* Cut by columns, by rows, with a remainder, over a long sum. */
    check_linear(w, &(linear){.n = 33, .in = 129, .out = 321, .bias = 1});
    check_linear(w, &(linear){.n = 515, .in = 67, .out = 35, .accumulate = 1});
    check_linear(w, &(linear){.n = 17, .in = 4099, .out = 18, .relu = 1});
}

/* -------------------------------------------------------- convolutions */

typedef struct conv {
    tac_conv2d d;
    int bias, relu, accumulate;
    char what[160];
} conv;

/* Calls term(x index, w index, y index) for each product of a convolution. */
#define EACH_TERM(d, xi, wi, yi, term)                                        \
    for (size_t n_ = 0; n_ < (d)->n; ++n_)                                    \
        for (size_t r_ = 0; r_ < (d)->oh; ++r_)                               \
            for (size_t s_ = 0; s_ < (d)->ow; ++s_)                           \
                for (size_t o_ = 0; o_ < (d)->oc; ++o_)                       \
                    for (size_t a_ = 0; a_ < (d)->kh; ++a_)                   \
                        for (size_t b_ = 0; b_ < (d)->kw; ++b_)               \
                            for (size_t i_ = 0; i_ < (d)->ic; ++i_) {         \
                                const size_t h_ = r_ * (d)->stride + a_;      \
                                const size_t v_ = s_ * (d)->stride + b_;      \
                                if (h_ < (d)->pad || h_ - (d)->pad >= (d)->h) \
                                    continue;                                 \
                                if (v_ < (d)->pad || v_ - (d)->pad >= (d)->w) \
                                    continue;                                 \
                                const size_t xi =                             \
                                    ((n_ * (d)->h + h_ - (d)->pad) * (d)->w + \
                                     v_ - (d)->pad) *                         \
                                        (d)->ic +                             \
                                    i_;                                       \
                                const size_t wi =                             \
                                    ((o_ * (d)->ic + i_) * (d)->kh + a_) *    \
                                        (d)->kw +                             \
                                    b_;                                       \
                                const size_t yi =                             \
                                    ((n_ * (d)->oh + r_) * (d)->ow + s_) *    \
                                        (d)->oc +                             \
                                    o_;                                       \
                                term;                                         \
                            }

static size_t x_count(const tac_conv2d *d)
{
    return d->n * d->h * d->w * d->ic;
}

static size_t w_count(const tac_conv2d *d)
{
    return d->oc * d->ic * d->kh * d->kw;
}

static size_t y_count(const tac_conv2d *d)
{
    return d->n * d->oh * d->ow * d->oc;
}

static void clear(triple *t)
{
    for (size_t i = 0; i < t->n; ++i) t->d[i] = t->mag[i] = 0;
}

static void convolve(const conv *c, const triple *x, const triple *w,
                     const triple *b, triple *y)
{
    clear(y);
    EACH_TERM(&c->d, xi, wi, yi, {
        y->d[yi] += x->d[xi] * w->d[wi];
        y->mag[yi] += x->mag[xi] * w->mag[wi];
    })
    for (size_t i = 0; i < y->n; ++i) {
        y->d[i] += c->bias ? b->d[i % c->d.oc] : 0;
        y->mag[i] += c->bias ? b->mag[i % c->d.oc] : 0;
        if (c->relu && y->d[i] < 0) y->d[i] = 0;
    }
}

static void check_conv_forward(world *v, const conv *c)
{
    triple x = random16(x_count(&c->d)), w = random16(w_count(&c->d));
    triple b = random16(c->d.oc), y = output(TAC_BF16, y_count(&c->d), 0);
    convolve(c, &x, &w, &b, &y);
    RUN(v, conv2d_forward, &c->d, x.t, w.t, c->bias ? b.t : NULL,
        c->relu ? TAC_ACT_RELU : TAC_ACT_NONE, y.t);
    triple_near(&y, TOL, c->what);
    triple_free_all((triple[]){x, w, b, y}, 4);
}

static void check_conv_data(world *v, const conv *c)
{
    triple w = random16(w_count(&c->d)), dy = random16(y_count(&c->d));
    triple dx = output(TAC_BF16, x_count(&c->d), c->accumulate);
    if (!c->accumulate) clear(&dx);
    EACH_TERM(&c->d, xi, wi, yi, {
        dx.d[xi] += dy.d[yi] * w.d[wi];
        dx.mag[xi] += dy.mag[yi] * w.mag[wi];
    })
    RUN(v, conv2d_backward_data, &c->d, dy.t, w.t, dx.t, c->accumulate);
    triple_near(&dx, TOL, c->what);
    triple_free_all((triple[]){w, dy, dx}, 3);
}

static void check_conv_weights(world *v, const conv *c)
{
    triple x = random16(x_count(&c->d)), dy = random16(y_count(&c->d));
    triple dw = output(TAC_F32, w_count(&c->d), c->accumulate);
    triple db = output(TAC_F32, c->d.oc, c->accumulate);
    if (!c->accumulate) clear(&dw);
    EACH_TERM(&c->d, xi, wi, yi, {
        dw.d[wi] += dy.d[yi] * x.d[xi];
        dw.mag[wi] += dy.mag[yi] * x.mag[xi];
    })
    sum_rows(&dy, c->d.n * c->d.oh * c->d.ow, c->d.oc, c->accumulate, &db);
    RUN(v, conv2d_backward_weights, &c->d, x.t, dy.t, dw.t,
        c->bias ? db.t : NULL, c->accumulate);
    triple_near(&dw, TOL, c->what);
    if (c->bias) triple_near(&db, TOL, c->what);
    triple_free_all((triple[]){x, dy, dw, db}, 4);
}

static tac_conv2d some_geometry(void)
{
    tac_conv2d d = {.n = below(5),
                    .ic = 1 + below(20),
                    .oc = 1 + below(40),
                    .kh = 1 + below(3),
                    .kw = 1 + below(3),
                    .stride = 1 + below(2),
                    .pad = below(3)};
    d.h = d.kh + below(8);
    d.w = d.kw + below(8);
    d.oh = (d.h + 2 * d.pad - d.kh) / d.stride + 1;
    d.ow = (d.w + 2 * d.pad - d.kw) / d.stride + 1;
    return d;
}

static void check_conv(world *w, conv *c)
{
    const tac_conv2d *d = &c->d;
    snprintf(c->what, sizeof c->what,
             "conv n %zu %zux%zux%zu to %zu, %zux%zu stride %zu pad %zu, bias "
             "%d relu %d accumulate %d, %d threads",
             d->n, d->h, d->w, d->ic, d->oc, d->kh, d->kw, d->stride, d->pad,
             c->bias, c->relu, c->accumulate, tac_pool_size(w->kc.pool));
    check_conv_forward(w, c);
    check_conv_data(w, c);
    check_conv_weights(w, c);
}

static void test_conv(world *w)
{
    for (int i = 0; i < 15; ++i) {
        conv c = {.d = some_geometry(),
                  .bias = (int)below(2),
                  .relu = (int)below(2),
                  .accumulate = (int)below(2)};
        check_conv(w, &c);
    }
    check_conv(w, &(conv){.d = {3, 5, 6, 11, 25, 1, 1, 1, 0, 5, 6}});
    check_conv(w, &(conv){.d = {5, 14, 14, 32, 32, 3, 3, 1, 1, 14, 14},
                          .bias = 1,
                          .accumulate = 1});
}

/* ---------------------------------------------- convolution with pooling */

/* The block against its parts in the f64 oracle: pool the exact convolution;
 * the index must be one whose value is the maximum but for f32 error. */
static void check_pooled(world *v, conv *c, const tac_pool2d *p)
{
    const tac_conv2d *d = &c->d;
    triple x = random16(x_count(d)), w = random16(w_count(d));
    triple b = random16(d->oc), full = triple_poison(y_count(d));
    const size_t n = p->n * p->oh * p->ow * p->c;
    triple y = output(TAC_BF16, n, 0);
    uint8_t *index = guarded(n);
    convolve(c, &x, &w, &b, &full);
    RUN(v, conv2d_pool_forward, d, p, x.t, w.t, c->bias ? b.t : NULL, y.t,
        index);
    for (size_t i = 0; i < n; ++i) {
        const size_t ch = i % p->c, col = i / p->c % p->ow;
        const size_t row = i / p->c / p->ow % p->oh;
        const size_t image = i / p->c / p->ow / p->oh;
        double best = -1, mag = 0, chosen = -1;
        for (size_t at = 0; at < p->k * p->k; ++at) {
            const size_t h = row * p->stride + at / p->k;
            const size_t u = col * p->stride + at % p->k;
            const size_t from = ((image * p->h + h) * p->w + u) * p->c + ch;
            if (full.d[from] > best) best = full.d[from];
            if (full.mag[from] > mag) mag = full.mag[from];
            if (at == index[i]) chosen = full.d[from];
        }
        y.d[i] = best;
        y.mag[i] = mag;
        CHECK_MSG(chosen >= best - TOL * mag, "%s: index %d of element %zu",
                  c->what, index[i], i);
    }
    triple_near(&y, TOL, c->what);
    guarded_free(index);
    triple_free_all((triple[]){x, w, b, full, y}, 5);
}

/* With a given index the block's backward pass is linear: scatter, convolve. */
static void check_unpooled(world *v, conv *c, const tac_pool2d *p)
{
    const tac_conv2d *d = &c->d;
    const size_t n = p->n * p->oh * p->ow * p->c;
    triple x = random16(x_count(d)), w = random16(w_count(d));
    triple dy = random16(n), y = random16(n), full = triple_poison(y_count(d));
    triple dw = output(TAC_F32, w_count(d), c->accumulate);
    triple db = output(TAC_F32, d->oc, c->accumulate);
    triple dx = output(TAC_BF16, x_count(d), c->accumulate);
    uint8_t *index = guarded(n);
    clear(&full);
    for (size_t i = 0; i < n; ++i) {
        const size_t at = below(p->k * p->k), ch = i % p->c;
        const size_t h = i / p->c / p->ow % p->oh * p->stride + at / p->k;
        const size_t u = i / p->c % p->ow * p->stride + at % p->k;
        const size_t image = i / p->c / p->ow / p->oh;
        const size_t to = ((image * p->h + h) * p->w + u) * p->c + ch;
        index[i] = (uint8_t)at;
        full.d[to] += y.d[i] > 0 ? dy.d[i] : 0;
        full.mag[to] += y.d[i] > 0 ? dy.mag[i] : 0;
    }
    if (!c->accumulate) {
        clear(&dw);
        clear(&dx);
    }
    EACH_TERM(d, xi, wi, yi, {
        dw.d[wi] += full.d[yi] * x.d[xi];
        dw.mag[wi] += full.mag[yi] * x.mag[xi];
        dx.d[xi] += full.d[yi] * w.d[wi];
        dx.mag[xi] += full.mag[yi] * w.mag[wi];
    })
    sum_rows(&full, d->n * d->oh * d->ow, d->oc, c->accumulate, &db);
    RUN(v, conv2d_pool_backward, d, p, x.t, w.t, dy.t, index, y.t, dw.t,
        c->bias ? db.t : NULL, c->accumulate, dx.t, c->accumulate);
    triple_near(&dw, TOL, c->what);
    if (c->bias) triple_near(&db, TOL, c->what);
    triple_near(&dx, TOL, c->what);
    guarded_free(index);
    triple_free_all((triple[]){x, w, dy, y, full, dw, db, dx}, 8);
}

static void check_block(world *w, conv *c, size_t k, size_t stride)
{
    const tac_conv2d *d = &c->d;
    const tac_pool2d p = {d->n,
                          d->oh,
                          d->ow,
                          d->oc,
                          k,
                          stride,
                          d->oh < k ? 0 : (d->oh - k) / stride + 1,
                          d->ow < k ? 0 : (d->ow - k) / stride + 1};
    c->relu = 1;
    snprintf(c->what, sizeof c->what,
             "block n %zu %zux%zux%zu to %zu, %zux%zu stride %zu pad %zu, pool "
             "%zu, %zu, bias %d accumulate %d, %d threads",
             d->n, d->h, d->w, d->ic, d->oc, d->kh, d->kw, d->stride, d->pad, k,
             stride, c->bias, c->accumulate, tac_pool_size(w->kc.pool));
    if (p.oh * p.ow == 0) return;
    check_pooled(w, c, &p);
    check_unpooled(w, c, &p);
}

static void test_block(world *w)
{
    for (int i = 0; i < 15; ++i) {
        conv c = {.d = some_geometry(),
                  .bias = (int)below(2),
                  .accumulate = (int)below(2)};
        check_block(w, &c, 1 + below(3), 1 + below(3));
    }
    check_block(w,
                &(conv){.d = {9, 28, 28, 1, 32, 3, 3, 1, 1, 28, 28}, .bias = 1},
                2, 2);
    check_block(
        w, &(conv){.d = {11, 28, 28, 4, 32, 3, 3, 1, 1, 28, 28}, .bias = 1}, 2,
        2);
}

/* ------------------------------------------------------- special values */

/* A NaN passes through a product and becomes 0 in a ReLU, fused or not. */
static void test_nan(world *w)
{
    enum { N = 70, IN = 50, OUT = 40 };
    triple x = random16((size_t)N * IN), m = random16((size_t)OUT * IN);
    triple y = output(TAC_BF16, (size_t)N * OUT, 0);
    triple z = output(TAC_BF16, y.n, 0);
    triple_set(&x, 7 * IN + 3, NAN);
    triple_set(&x, 8 * IN, INFINITY);
    RUN(w, linear_forward, N, IN, OUT, x.t, m.t, NULL, TAC_ACT_NONE, y.t);
    RUN(w, linear_forward, N, IN, OUT, x.t, m.t, NULL, TAC_ACT_RELU, z.t);
    for (size_t i = 0; i < y.n; ++i) {
        const float got = triple_get(&y, i);
        CHECK_EQ(!!isnan(got), i / OUT == 7);
        CHECK_EQ(!!isinf(got), i / OUT == 8);
        CHECK_EQ_F64((double)triple_get(&z, i), got > 0 ? (double)got : 0);
    }
    triple_free_all((triple[]){x, m, y, z}, 4);
}

/* --------------------------------------------------------- steady state */

/* Plans and bytes of scratch that the set holds; 0 without oneDNN. */
typedef struct holdings {
    size_t plans, bytes;
} holdings;

static holdings holdings_of(const world *w)
{
    holdings h = {0, 0};
#ifdef SEES_PLANS
    const tac_cpu_cache *cache = w->kc.cache;
    const tac__onednn *o = cache->slots[TAC_CPU_SLOT_ONEDNN];
    for (size_t i = 0; o && i < TAC__PLAN_BUCKETS; ++i) {
        for (const tac__conv_plan *p = o->plans[i]; p; p = p->next) h.plans++;
        for (const tac__matmul_plan *p = o->products[i]; p; p = p->next)
            h.plans++;
    }
    for (size_t i = 0; o && i < o->space_count; ++i)
        h.bytes += o->spaces[i].bytes;
#else
    (void)w;
#endif
    return h;
}

/* One call of each entry. */
static void step(world *w, const triple *a, const triple *b, triple *out,
                 triple *f, uint8_t *index)
{
    const tac_conv2d d = {6, 8, 8, 16, 32, 3, 3, 1, 1, 8, 8};
    const tac_pool2d p = {6, 8, 8, 32, 2, 2, 4, 4};
    RUN(w, linear_forward, 64, 96, 64, a->t, b->t, b->t, TAC_ACT_RELU, out->t);
    RUN(w, linear_backward_data, 64, 96, 64, a->t, b->t, out->t, 1);
    RUN(w, linear_backward_weights, 64, 96, 64, a->t, b->t, f->t, f->t, 0);
    RUN(w, conv2d_forward, &d, a->t, b->t, b->t, TAC_ACT_RELU, out->t);
    RUN(w, conv2d_backward_data, &d, a->t, b->t, out->t, 1);
    RUN(w, conv2d_backward_weights, &d, a->t, b->t, f->t, NULL, 1);
    RUN(w, conv2d_pool_forward, &d, &p, a->t, b->t, b->t, out->t, index);
    RUN(w, conv2d_pool_backward, &d, &p, a->t, b->t, a->t, index, a->t, f->t,
        NULL, 0, out->t, 0);
}

static void test_steady(world *w)
{
    const size_t n = 16384;
    triple a = random16(n), b = random16(n), out = output(TAC_BF16, n, 0);
    triple f = output(TAC_F32, n, 0);
    uint8_t *index = guarded(n);
    for (int i = 0; i < 3; ++i) step(w, &a, &b, &out, &f, index);
    const holdings before = holdings_of(w);
    for (int i = 0; i < 5; ++i) step(w, &a, &b, &out, &f, index);
    const holdings after = holdings_of(w);
    CHECK_EQ((long long)after.plans, (long long)before.plans);
    CHECK_EQ((long long)after.bytes, (long long)before.bytes);
    guarded_free(index);
    triple_free_all((triple[]){a, b, out, f}, 4);
}

/* ----------------------------------------------- ranks as threads at once */

enum { RANKS = 3, RANK_FLOATS = 96 * 130 };

static void *rank_main(void *out)
{
    world w = open_world(2);
    triple x = triple_random_as(TAC_BF16, 70 * 130, 1);
    triple dy = triple_random_as(TAC_BF16, 70 * 96, 2);
    for (int i = 0; i < 5; ++i)
        RUN(&w, linear_backward_weights, 70, 130, 96, x.t, dy.t, out, NULL, 0);
    triple_free_all((triple[]){x, dy}, 2);
    close_world(&w);
    return NULL;
}

static void test_ranks_at_once(void)
{
    float *dw[RANKS + 1];
    pthread_t threads[RANKS];
    for (size_t i = 0; i <= RANKS; ++i)
        dw[i] = guarded(RANK_FLOATS * sizeof(float));
    rank_main(dw[RANKS]); /* alone */
    for (size_t i = 0; i < RANKS; ++i)
        CHECK_EQ(pthread_create(&threads[i], NULL, rank_main, dw[i]), 0);
    for (size_t i = 0; i < RANKS; ++i) pthread_join(threads[i], NULL);
    for (size_t i = 0; i <= RANKS; ++i)
        same_bits(dw[i], dw[RANKS], RANK_FLOATS, "ranks at once");
    for (size_t i = 0; i <= RANKS; ++i) guarded_free(dw[i]);
}

static void run(int threads)
{
    world w = open_world(threads);
    printf("%s, %d threads\n", w.k->names, threads);
    test_linear(&w);
    test_conv(&w);
    test_block(&w);
    test_nan(&w);
    test_steady(&w);
    close_world(&w);
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu (give it as the argument to repeat)\n",
           (unsigned long long)state);
    for (int threads = 1; threads <= 3; ++threads) run(threads);
    test_ranks_at_once();
    return tac_check_summary();
}
