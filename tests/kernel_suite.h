/* kernel_suite.h: every entry of a kernel table against the f64 reference.
 *
 * Odd shapes, sizes of 0 and 1, accumulation, arrays used in place, poisoned
 * outputs with guards around them, ties, masked labels. The error allowed is
 * relative to the sum of the magnitudes that were added, which the oracle
 * computes by the same kernel on absolute values; it is far below what TF32 or
 * BF16 products would give. A 16-bit output has to be one rounding of a number
 * that is as near to the oracle's on the widened inputs as f32 has to be. */
#ifndef TAC_KERNEL_SUITE_H
#define TAC_KERNEL_SUITE_H

#include "kernel_check.h"

#include <stdio.h>

/* 16 times the precision of f32. */
static const double TOL = 16 * 0x1p-24;

typedef struct rig {
    const char *set;
    tac_dtype type; /* of the table under test, T in kernels.h */
    int threads;
    tac_kctx kc, oracle_kc;
    tac_kernels k; /* the set's */
    tac_kernels o; /* f64, the reference */
    char what[256];
} rig;

#define SAY(r, ...)        snprintf((r)->what, sizeof(r)->what, __VA_ARGS__)
#define RUN(r, entry, ...) CHECK_OK((r)->k.entry(&(r)->kc, __VA_ARGS__))
#define ORACLE(r, entry, ...) \
    CHECK_OK((r)->o.entry(&(r)->oracle_kc, __VA_ARGS__))

/* Arrays of T. */
static triple random_of(const rig *r, size_t n, uint64_t stream)
{
    return triple_random_as(r->type, n, stream);
}

static triple coarse_of(const rig *r, size_t n, uint64_t stream)
{
    return triple_coarse_as(r->type, n, stream);
}

static triple poison_of(const rig *r, size_t n)
{
    return triple_poison_as(r->type, n);
}

/* ------------------------------------------------------------- linear */

typedef struct linear_shape {
    size_t n, in, out;
} linear_shape;

static const linear_shape linear_shapes[] = {
    {0, 3, 4},     {3, 0, 4},     {2, 3, 0},      {1, 1, 1},
    {3, 5, 7},     {17, 33, 10},  {65, 100, 130}, {300, 130, 10},
    {40, 200, 90}, {2, 3000, 70}, {700, 100, 10}, {300, 1800, 1},
};

static void linear_forward(rig *r, const linear_shape *s, int bias, tac_act act)
{
    triple x = random_of(r, s->n * s->in, 1);
    triple w = random_of(r, s->out * s->in, 2);
    triple b = random_of(r, s->out, 3), y = poison_of(r, s->n * s->out);
    SAY(r, "%s linear_forward %zu %zu %zu bias %d act %d", r->set, s->n, s->in,
        s->out, bias, (int)act);
    RUN(r, linear_forward, s->n, s->in, s->out, x.t, w.t, bias ? b.t : NULL,
        act, y.t);
    ORACLE(r, linear_forward, s->n, s->in, s->out, x.d, w.d, bias ? b.d : NULL,
           act, y.d);
    ORACLE(r, linear_forward, s->n, s->in, s->out, x.mag, w.mag,
           bias ? b.mag : NULL, TAC_ACT_NONE, y.mag);
    triple_near(&y, TOL, r->what);
    triple_free_all((triple[]){x, w, b, y}, 4);
}

static void linear_backward(rig *r, const linear_shape *s, int accumulate)
{
    triple x = random_of(r, s->n * s->in, 1);
    triple w = random_of(r, s->out * s->in, 2);
    triple dy = random_of(r, s->n * s->out, 4);
    triple dx = accumulate ? random_of(r, x.n, 5) : poison_of(r, x.n);
    triple dw = accumulate ? triple_random(w.n, 6) : triple_poison(w.n);
    triple db = accumulate ? triple_random(s->out, 7) : triple_poison(s->out);
    const size_t n = s->n, in = s->in, out = s->out;
    SAY(r, "%s linear_backward %zu %zu %zu accumulate %d", r->set, n, in, out,
        accumulate);
    RUN(r, linear_backward_data, n, in, out, dy.t, w.t, dx.t, accumulate);
    ORACLE(r, linear_backward_data, n, in, out, dy.d, w.d, dx.d, accumulate);
    ORACLE(r, linear_backward_data, n, in, out, dy.mag, w.mag, dx.mag,
           accumulate);
    triple_near(&dx, TOL, r->what);
    RUN(r, linear_backward_weights, n, in, out, x.t, dy.t, dw.t, db.t,
        accumulate);
    ORACLE(r, linear_backward_weights, n, in, out, x.d, dy.d, dw.d, db.d,
           accumulate);
    ORACLE(r, linear_backward_weights, n, in, out, x.mag, dy.mag, dw.mag,
           db.mag, accumulate);
    triple_near(&dw, TOL, r->what);
    triple_near(&db, TOL, r->what);
    if (!accumulate) { /* again, without a bias: the same bits */
        float *again = guarded(dw.n * sizeof(float));
        RUN(r, linear_backward_weights, n, in, out, x.t, dy.t, again, NULL, 0);
        same_bits(again, dw.f, dw.n, r->what);
        guarded_free(again);
    }
    triple_free_all((triple[]){x, w, dy, dx, dw, db}, 6);
}

static void test_linear(rig *r)
{
    for (size_t i = 0; i < sizeof linear_shapes / sizeof *linear_shapes; ++i) {
        const linear_shape *s = &linear_shapes[i];
        linear_forward(r, s, 1, TAC_ACT_RELU);
        linear_forward(r, s, 0, TAC_ACT_NONE);
        linear_forward(r, s, 1, TAC_ACT_NONE);
        linear_backward(r, s, 0);
        linear_backward(r, s, 1);
    }
}

/* -------------------------------------------------------- convolution */

/* n, h, w, ic, oc, kh, kw, stride, pad; the output's size is computed. */
static const tac_conv2d conv_shapes[] = {
    {0, 5, 5, 2, 3, 3, 3, 1, 1, 0, 0},    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0},
    {1, 3, 3, 0, 2, 3, 3, 1, 1, 0, 0},    {2, 5, 7, 3, 5, 3, 3, 1, 1, 0, 0},
    {3, 8, 6, 4, 16, 3, 2, 2, 0, 0, 0},   {2, 9, 9, 2, 8, 5, 5, 3, 2, 0, 0},
    {2, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0}, {3, 6, 5, 32, 64, 3, 3, 1, 1, 0, 0},
    {2, 4, 4, 2, 3, 3, 3, 1, 3, 0, 0},    {5, 8, 8, 16, 24, 1, 1, 2, 0, 0, 0},
    {1, 11, 3, 1, 48, 3, 3, 1, 1, 0, 0},  {3, 6, 5, 1, 16, 5, 3, 2, 1, 0, 0},
    {2, 7, 7, 3, 32, 3, 3, 1, 1, 0, 0},   {7, 12, 12, 8, 8, 3, 3, 1, 0, 0, 0},
    {30, 48, 48, 1, 1, 1, 1, 1, 0, 0, 0},
};

static tac_conv2d conv_of(size_t i)
{
    tac_conv2d d = conv_shapes[i];
    d.oh = (d.h + 2 * d.pad - d.kh) / d.stride + 1;
    d.ow = (d.w + 2 * d.pad - d.kw) / d.stride + 1;
    return d;
}

static void say_conv(rig *r, const tac_conv2d *d, const char *name, int flag)
{
    SAY(r,
        "%s %s n %zu %zux%zux%zu to %zu kernel %zux%zu stride %zu pad %zu, "
        "%d, %d threads",
        r->set, name, d->n, d->h, d->w, d->ic, d->oc, d->kh, d->kw, d->stride,
        d->pad, flag, r->threads);
}

static void conv_forward(rig *r, const tac_conv2d *d, int bias, tac_act act)
{
    triple x = random_of(r, d->n * d->h * d->w * d->ic, 1);
    triple w = random_of(r, d->oc * d->ic * d->kh * d->kw, 2);
    triple b = random_of(r, d->oc, 3);
    triple y = poison_of(r, d->n * d->oh * d->ow * d->oc);
    say_conv(r, d, "conv2d_forward", bias);
    RUN(r, conv2d_forward, d, x.t, w.t, bias ? b.t : NULL, act, y.t);
    ORACLE(r, conv2d_forward, d, x.d, w.d, bias ? b.d : NULL, act, y.d);
    ORACLE(r, conv2d_forward, d, x.mag, w.mag, bias ? b.mag : NULL,
           TAC_ACT_NONE, y.mag);
    triple_near(&y, TOL, r->what);
    triple_free_all((triple[]){x, w, b, y}, 4);
}

static void conv_data(rig *r, const tac_conv2d *d, int accumulate)
{
    const size_t nx = d->n * d->h * d->w * d->ic;
    triple w = random_of(r, d->oc * d->ic * d->kh * d->kw, 2);
    triple dy = random_of(r, d->n * d->oh * d->ow * d->oc, 4);
    triple dx = accumulate ? random_of(r, nx, 5) : poison_of(r, nx);
    say_conv(r, d, "conv2d_backward_data", accumulate);
    RUN(r, conv2d_backward_data, d, dy.t, w.t, dx.t, accumulate);
    ORACLE(r, conv2d_backward_data, d, dy.d, w.d, dx.d, accumulate);
    ORACLE(r, conv2d_backward_data, d, dy.mag, w.mag, dx.mag, accumulate);
    triple_near(&dx, TOL, r->what);
    triple_free_all((triple[]){w, dy, dx}, 3);
}

static void conv_weights(rig *r, const tac_conv2d *d, int accumulate)
{
    const size_t nw = d->oc * d->ic * d->kh * d->kw;
    triple x = random_of(r, d->n * d->h * d->w * d->ic, 1);
    triple dy = random_of(r, d->n * d->oh * d->ow * d->oc, 4);
    triple dw = accumulate ? triple_random(nw, 6) : triple_poison(nw);
    triple db = accumulate ? triple_random(d->oc, 7) : triple_poison(d->oc);
    say_conv(r, d, "conv2d_backward_weights", accumulate);
    RUN(r, conv2d_backward_weights, d, x.t, dy.t, dw.t, db.t, accumulate);
    ORACLE(r, conv2d_backward_weights, d, x.d, dy.d, dw.d, db.d, accumulate);
    ORACLE(r, conv2d_backward_weights, d, x.mag, dy.mag, dw.mag, db.mag,
           accumulate);
    triple_near(&dw, TOL, r->what);
    triple_near(&db, TOL, r->what);
    if (!accumulate) {
        float *again = guarded(nw * sizeof(float));
        RUN(r, conv2d_backward_weights, d, x.t, dy.t, again, NULL, 0);
        triple second = triple_make(nw);
        memcpy(second.f, again, nw * sizeof(float));
        memcpy(second.d, dw.d, nw * sizeof(double));
        memcpy(second.mag, dw.mag, nw * sizeof(double));
        triple_near(&second, TOL, r->what); /* without a bias */
        RUN(r, conv2d_backward_weights, d, x.t, dy.t, second.t, NULL, 0);
        same_bits(again, second.f, nw, r->what);
        triple_free(&second);
        guarded_free(again);
    }
    triple_free_all((triple[]){x, dy, dw, db}, 4);
}

static void test_conv2d(rig *r)
{
    for (size_t i = 0; i < sizeof conv_shapes / sizeof *conv_shapes; ++i) {
        const tac_conv2d d = conv_of(i);
        conv_forward(r, &d, 1, TAC_ACT_RELU);
        conv_forward(r, &d, 0, TAC_ACT_NONE);
        for (int accumulate = 0; accumulate < 2; ++accumulate) {
            conv_data(r, &d, accumulate);
            conv_weights(r, &d, accumulate);
        }
    }
}

/* ------------------------------------------------------------ pooling */

/* n, h, w, c, k, stride. */
static const tac_pool2d pool_shapes[] = {
    {0, 4, 4, 3, 2, 2, 0, 0},    {1, 2, 2, 1, 2, 2, 0, 0},
    {2, 5, 7, 3, 2, 2, 0, 0},    {2, 6, 6, 17, 3, 3, 0, 0},
    {2, 7, 7, 5, 3, 2, 0, 0},    {2, 9, 8, 33, 2, 3, 0, 0},
    {3, 28, 28, 32, 2, 2, 0, 0}, {1, 4, 4, 16, 4, 4, 0, 0},
    {1, 3, 3, 2, 1, 1, 0, 0},    {2, 5, 5, 8, 3, 1, 0, 0},
    {1, 17, 16, 9, 16, 1, 0, 0}, {5, 8, 8, 24, 2, 2, 0, 0},
    {1, 61, 60, 10, 2, 2, 0, 0}, {1, 80, 60, 8, 3, 2, 0, 0},
};

static tac_pool2d pool_of(size_t i)
{
    tac_pool2d d = pool_shapes[i];
    d.oh = (d.h - d.k) / d.stride + 1;
    d.ow = (d.w - d.k) / d.stride + 1;
    return d;
}

static void pool_forward(rig *r, const tac_pool2d *d, triple *x)
{
    const size_t outs = d->n * d->oh * d->ow * d->c;
    triple y = poison_of(r, outs), y2 = poison_of(r, outs);
    uint8_t *index = guarded(outs), *want = guarded(outs);
    memset(index, 0xee, outs);
    RUN(r, maxpool2d_forward, d, x->t, y.t, index);
    ORACLE(r, maxpool2d_forward, d, x->d, y.d, want);
    triple_near(&y, 0, r->what);
    CHECK_EQ_MEM(index, want, outs);
    RUN(r, maxpool2d_forward, d, x->t, y2.t, NULL);
    triple_same(&y, &y2, r->what);
    guarded_free(index);
    guarded_free(want);
    triple_free_all((triple[]){y, y2}, 2);
}

static void pool_backward(rig *r, const tac_pool2d *d, triple *x, int fused)
{
    const size_t ins = d->n * d->h * d->w * d->c;
    const size_t outs = d->n * d->oh * d->ow * d->c;
    triple y = poison_of(r, outs), dy = random_of(r, outs, 9);
    triple dx = poison_of(r, ins);
    uint8_t *index = guarded(outs);
    ORACLE(r, maxpool2d_forward, d, x->d, y.d, index);
    for (size_t i = 0; i < outs; ++i) triple_set(&y, i, (float)y.d[i]);
    RUN(r, maxpool2d_backward, d, dy.t, index, fused ? y.t : NULL, dx.t);
    ORACLE(r, maxpool2d_backward, d, dy.d, index, fused ? y.d : NULL, dx.d);
    ORACLE(r, maxpool2d_backward, d, dy.mag, index, NULL, dx.mag);
    triple_near(&dx, TOL, r->what);
    guarded_free(index);
    triple_free_all((triple[]){y, dy, dx}, 3);
}

static void test_maxpool2d(rig *r)
{
    for (size_t i = 0; i < sizeof pool_shapes / sizeof *pool_shapes; ++i) {
        const tac_pool2d d = pool_of(i);
        const size_t ins = d.n * d.h * d.w * d.c;
        triple ties = coarse_of(r, ins, 8), x = random_of(r, ins, 8);
        SAY(r, "%s maxpool2d n %zu %zux%zux%zu window %zu stride %zu", r->set,
            d.n, d.h, d.w, d.c, d.k, d.stride);
        pool_forward(r, &d, &ties);
        pool_forward(r, &d, &x);
        pool_backward(r, &d, &ties, 1);
        pool_backward(r, &d, &x, 0);
        for (size_t j = 0; j < ins; j += 5) triple_set(&x, j, NAN);
        pool_forward(r, &d, &x); /* NaN is not lost */
        triple_free_all((triple[]){ties, x}, 2);
    }
}

/* --------------------------------------- convolution, ReLU and pooling */

/* A convolution of conv_shapes' form and the window and stride of its pool. */
static const struct {
    tac_conv2d d;
    size_t k, stride;
} block_shapes[] = {
    {{0, 6, 6, 2, 3, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{1, 3, 3, 0, 2, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, 1, 1},
    {{2, 7, 9, 3, 5, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{6, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{3, 6, 5, 32, 64, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{11, 40, 40, 2, 8, 3, 3, 1, 1, 0, 0}, 2, 2},
    {{5, 12, 12, 3, 16, 3, 3, 1, 1, 0, 0}, 3, 2},
    {{3, 35, 34, 3, 16, 5, 5, 2, 2, 0, 0}, 2, 3},
    {{2, 3, 3, 2, 4, 3, 3, 1, 2, 0, 0}, 2, 1},
    {{30, 48, 48, 1, 2, 1, 1, 1, 0, 0, 0}, 2, 2},
};

typedef struct block {
    tac_conv2d d;
    tac_pool2d p;
    triple x, w, b, y, dy, dx, dw, db;
    uint8_t *index, *want;
    size_t outs;
} block;

/* Small integers, so that f32 is exact and ties are the same as in f64. */
static block block_make(const rig *r, size_t i, int accumulate)
{
    block b = {.d = block_shapes[i].d};
    tac_conv2d *d = &b.d;
    const size_t k = block_shapes[i].k, stride = block_shapes[i].stride;
    d->oh = (d->h + 2 * d->pad - d->kh) / d->stride + 1;
    d->ow = (d->w + 2 * d->pad - d->kw) / d->stride + 1;
    b.p = (tac_pool2d){d->n,
                       d->oh,
                       d->ow,
                       d->oc,
                       k,
                       stride,
                       (d->oh - k) / stride + 1,
                       (d->ow - k) / stride + 1};
    const size_t nx = d->n * d->h * d->w * d->ic;
    const size_t nw = d->oc * d->ic * d->kh * d->kw;
    b.outs = d->n * b.p.oh * b.p.ow * d->oc;
    b.x = coarse_of(r, nx, 1);
    b.w = coarse_of(r, nw, 2);
    b.b = coarse_of(r, d->oc, 3);
    b.y = poison_of(r, b.outs);
    b.dy = random_of(r, b.outs, 4);
    b.dx = accumulate ? random_of(r, nx, 5) : poison_of(r, nx);
    b.dw = accumulate ? triple_random(nw, 6) : triple_poison(nw);
    b.db = accumulate ? triple_random(d->oc, 7) : triple_poison(d->oc);
    b.index = guarded(b.outs);
    b.want = guarded(b.outs);
    return b;
}

static void block_free(block *b)
{
    guarded_free(b->index);
    guarded_free(b->want);
    triple_free_all(
        (triple[]){b->x, b->w, b->b, b->y, b->dy, b->dx, b->dw, b->db}, 8);
}

static void block_forward(rig *r, block *b, int bias)
{
    memset(b->index, 0xee, b->outs);
    RUN(r, conv2d_pool_forward, &b->d, &b->p, b->x.t, b->w.t,
        bias ? b->b.t : NULL, b->y.t, b->index);
    ORACLE(r, conv2d_pool_forward, &b->d, &b->p, b->x.d, b->w.d,
           bias ? b->b.d : NULL, b->y.d, b->want);
    triple_near(&b->y, 0, r->what);
    CHECK_EQ_MEM(b->index, b->want, b->outs);
    triple again = poison_of(r, b->outs);
    RUN(r, conv2d_pool_forward, &b->d, &b->p, b->x.t, b->w.t,
        bias ? b->b.t : NULL, again.t, NULL);
    triple_same(&again, &b->y, r->what);
    triple_free(&again);
}

static void block_backward(rig *r, block *b, int accumulate)
{
    uint8_t *index = b->want;
    RUN(r, conv2d_pool_backward, &b->d, &b->p, b->x.t, b->w.t, b->dy.t, index,
        b->y.t, b->dw.t, b->db.t, accumulate, b->dx.t, accumulate);
    ORACLE(r, conv2d_pool_backward, &b->d, &b->p, b->x.d, b->w.d, b->dy.d,
           index, b->y.d, b->dw.d, b->db.d, accumulate, b->dx.d, accumulate);
    ORACLE(r, conv2d_pool_backward, &b->d, &b->p, b->x.mag, b->w.mag, b->dy.mag,
           index, b->y.d, b->dw.mag, b->db.mag, accumulate, b->dx.mag,
           accumulate);
    triple_near(&b->dx, TOL, r->what);
    triple_near(&b->dw, TOL, r->what);
    triple_near(&b->db, TOL, r->what);
}

/* What is not wanted is not touched; what is, is the same up to the order of
 * additions, and twice the same bits. */
static void block_parts(rig *r, block *b)
{
    float *dw = guarded(b->dw.n * sizeof(float)), *dw2 = guarded(b->dw.n * 4);
    triple dx = poison_of(r, b->dx.n);
    RUN(r, conv2d_pool_backward, &b->d, &b->p, b->x.t, b->w.t, b->dy.t, b->want,
        b->y.t, NULL, NULL, 0, dx.t, 0);
    RUN(r, conv2d_pool_backward, &b->d, &b->p, b->x.t, b->w.t, b->dy.t, b->want,
        b->y.t, dw, NULL, 0, NULL, 0);
    RUN(r, conv2d_pool_backward, &b->d, &b->p, b->x.t, b->w.t, b->dy.t, b->want,
        b->y.t, dw2, NULL, 0, NULL, 0);
    triple_same(&dx, &b->dx, r->what);
    same_bits(dw, dw2, b->dw.n, r->what);
    memcpy(b->dw.f, dw, b->dw.n * sizeof(float));
    triple_near(&b->dw, TOL, r->what);
    guarded_free(dw);
    guarded_free(dw2);
    triple_free(&dx);
}

static void test_conv2d_pool(rig *r)
{
    for (size_t i = 0; i < sizeof block_shapes / sizeof *block_shapes; ++i)
        for (int accumulate = 0; accumulate < 2; ++accumulate) {
            block b = block_make(r, i, accumulate);
            say_conv(r, &b.d, "conv2d_pool", accumulate);
            block_forward(r, &b, !accumulate);
            block_backward(r, &b, accumulate);
            if (!accumulate) block_parts(r, &b);
            block_free(&b);
        }
}

/* -------------------------------------------------------- elementwise */

enum { MANY = 40001 }; /* enough for three parts; tried in fewer ways */
static const size_t lengths[] = {0, 1, 7, 8, 15, 16, 17, 63, 100, 1000, MANY};

static void relu(rig *r, size_t n)
{
    triple x = coarse_of(r, n, 10), y = poison_of(r, n);
    triple dy = random_of(r, n, 11), dx = poison_of(r, n);
    SAY(r, "%s relu %zu", r->set, n);
    RUN(r, relu_forward, n, x.t, y.t);
    ORACLE(r, relu_forward, n, x.d, y.d);
    triple_near(&y, 0, r->what);
    RUN(r, relu_backward, n, y.t, dy.t, dx.t);
    ORACLE(r, relu_backward, n, y.d, dy.d, dx.d);
    triple_near(&dx, 0, r->what);
    RUN(r, relu_backward, n, y.t, dy.t, dy.t); /* in place */
    triple_same(&dx, &dy, r->what);
    triple_free_all((triple[]){x, y, dy, dx}, 4);
}

static void axpy_and_scale(rig *r, size_t n)
{
    triple x = random_of(r, n, 12), y = random_of(r, n, 13);
    SAY(r, "%s axpy %zu", r->set, n);
    RUN(r, axpy, n, -0.75, x.t, y.t);
    ORACLE(r, axpy, n, -0.75, x.d, y.d);
    ORACLE(r, axpy, n, 0.75, x.mag, y.mag);
    triple_near(&y, TOL, r->what);
    SAY(r, "%s scale %zu", r->set, n);
    RUN(r, scale, n, 0.3, x.t);
    ORACLE(r, scale, n, 0.3, x.d);
    triple_near(&x, TOL, r->what);
    triple_free_all((triple[]){x, y}, 2);
}

static void sums(rig *r, size_t n)
{
    triple x = random_of(r, n, 14);
    double got = NAN, again = NAN, want = 0, mag = 0;
    SAY(r, "%s sum %zu", r->set, n);
    ORACLE(r, sum, n, x.mag, &mag);
    RUN(r, sum, n, x.t, &got);
    RUN(r, sum, n, x.t, &again);
    ORACLE(r, sum, n, x.d, &want);
    CHECK_NEAR(got, want, 1e-12 * mag);
    CHECK_EQ_F64(got, again);
    RUN(r, sum_squares, n, x.t, &got);
    ORACLE(r, sum_squares, n, x.d, &want);
    CHECK_NEAR(got, want, 1e-12 * mag);
    triple_free(&x);
}

static void dropout(rig *r, size_t n, float p, uint64_t first)
{
    const tac_rng_key key = {UINT64_C(0x123456789abcdef0), TAC_STREAM_DROPOUT,
                             UINT64_C(0xfedcba987654)};
    triple x = random_of(r, n, 15), y = poison_of(r, n);
    SAY(r, "%s dropout %zu p %g first %llu", r->set, n, (double)p,
        (unsigned long long)first);
    RUN(r, dropout, n, x.t, p, &key, first, y.t);
    for (size_t i = 0; i < n; ++i) {
        const double u = tac_rng_u32(&key, first + i) * 0x1p-32;
        y.d[i] = u >= (double)p ? x.d[i] / (1 - (double)p) : 0;
        y.mag[i] = fabs(y.d[i]);
    }
    triple_near(&y, TOL, r->what);
    RUN(r, dropout, n, x.t, p, &key, first, x.t); /* in place */
    triple_same(&x, &y, r->what);
    triple_free_all((triple[]){x, y}, 2);
}

static void test_elementwise(rig *r)
{
    static const float ps[] = {0, 0.1f, 0.5f, 0.999f};
    static const uint64_t firsts[] = {(UINT64_C(4) << 32) - 77, 0, 1, 5};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        relu(r, lengths[i]);
        axpy_and_scale(r, lengths[i]);
        sums(r, lengths[i]);
        for (size_t j = 0; j < (lengths[i] < MANY ? 4 : 1); ++j)
            dropout(r, lengths[i], ps[(i + j) % 4], firsts[j]);
    }
}

/* --------------------------------------------------------------- loss */

static void xent(rig *r, size_t n, size_t c, float spread)
{
    triple logits = random_of(r, n * c, 16), loss = triple_poison(n);
    triple probs = triple_poison(n * c), dl = poison_of(r, n * c);
    int32_t *labels = guarded(n * sizeof *labels);
    uint8_t *correct = guarded(n), *want = guarded(n);
    SAY(r, "%s softmax_xent %zu %zu spread %g", r->set, n, c, (double)spread);
    for (size_t i = 0; i < n * c; ++i)
        triple_set(&logits, i, rintf(triple_get(&logits, i) * 8) * spread);
    for (size_t i = 0; i < n; ++i)
        labels[i] = i % 4 == 3 ? -1 - (int32_t)i : (int32_t)(i * 7 % c);
    RUN(r, softmax_xent_forward, n, c, logits.t, labels, loss.t, probs.t,
        correct);
    ORACLE(r, softmax_xent_forward, n, c, logits.d, labels, loss.d, probs.d,
           want);
    for (size_t i = 0; i < n; ++i)
        loss.mag[i] = fabs(loss.d[i]) + 20 * (double)spread;
    for (size_t i = 0; i < n * c; ++i) probs.mag[i] = dl.mag[i] = 1;
    triple_near(&loss, TOL, r->what);
    triple_near(&probs, TOL, r->what);
    CHECK_EQ_MEM(correct, want, n);
    RUN(r, softmax_xent_backward, n, c, probs.t, labels, 0.25, NULL, dl.t);
    ORACLE(r, softmax_xent_backward, n, c, probs.d, labels, 0.25, NULL, dl.d);
    triple_near(&dl, TOL, r->what);
    RUN(r, softmax_xent_forward, n, c, logits.t, labels, loss.t, NULL, NULL);
    triple_near(&loss, TOL, r->what);
    guarded_free(labels);
    guarded_free(correct);
    guarded_free(want);
    triple_free_all((triple[]){logits, loss, probs, dl}, 4);
}

static void test_softmax_xent(rig *r)
{
    static const size_t ns[] = {0, 1, 5, 33}, cs[] = {1, 2, 10, 17, 300};
    for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < 5; ++j) {
            xent(r, ns[i], cs[j], 0.5f);
            xent(r, ns[i], cs[j], 1000); /* exp would overflow */
        }
}

/* ---------------------------------------------------------- optimizers */

/* Values after an update, and nothing at all if found_inf is set. */
static void sgd(rig *r, size_t n, const tac_sgd_args *a,
                const tac_step_scalars *s, int momentum)
{
    triple p = random_of(r, n, 17), g = triple_random(n, 18);
    triple m = a->first ? triple_poison(n) : triple_random(n, 19);
    triple p0 = random_of(r, n, 17);
    SAY(r, "%s sgd %zu momentum %g nesterov %d first %d scale %g inf %g",
        r->set, n, (double)a->momentum, a->nesterov, a->first,
        (double)s->grad_scale, (double)s->found_inf);
    for (size_t i = 0; i < n; ++i) p.mag[i] = m.mag[i] = 4;
    RUN(r, sgd, n, a, s, p.t, g.t, momentum ? m.t : NULL);
    ORACLE(r, sgd, n, a, s, p.d, g.d, momentum ? m.d : NULL);
    triple_near(&p, TOL, r->what);
    triple_near(&m, TOL, r->what);
    if (s->found_inf != 0) triple_same(&p0, &p, r->what);
    triple_free(&p0);
    triple_free_all((triple[]){p, g, m}, 3);
}

static void adamw(rig *r, size_t n, const tac_adamw_args *a,
                  const tac_step_scalars *s)
{
    triple p = random_of(r, n, 20), g = triple_random(n, 21);
    triple m = triple_random(n, 22), v = triple_random(n, 23);
    triple p0 = random_of(r, n, 20);
    SAY(r, "%s adamw %zu inf %g", r->set, n, (double)s->found_inf);
    for (size_t i = 0; i < n; ++i) {
        triple_set(&v, i, fabsf(v.f[i]) + 1e-3f);
        p.mag[i] = m.mag[i] = v.mag[i] = 4;
    }
    RUN(r, adamw, n, a, s, p.t, g.t, m.t, v.t);
    ORACLE(r, adamw, n, a, s, p.d, g.d, m.d, v.d);
    triple_near(&p, TOL, r->what);
    triple_near(&m, TOL, r->what);
    triple_near(&v, TOL, r->what);
    if (s->found_inf != 0) triple_same(&p0, &p, r->what);
    triple_free(&p0);
    triple_free_all((triple[]){p, g, m, v}, 4);
}

static void test_optimizers(rig *r)
{
    static const tac_step_scalars scalars[] = {
        {0.01f, 1024, 0.37f, 0, 0.5f, 0.05f, 6},
        {0.1f, 1, 1, 0, 0.1f, 0.001f, 0},
        {0.1f, 1, 1, 1, 0.1f, 0.001f, 0},
    };
    static const tac_sgd_args sgds[] = {
        {.lr_scale = 1},
        {.lr_scale = 1, .momentum = 0.9f, .first = 1},
        {.lr_scale = 1, .momentum = 0.9f, .weight_decay = 0.1f, .nesterov = 1},
        {.lr_scale = 1, .momentum = 0.9f, .dampening = 0.2f},
        {.lr_scale = 1,
         .momentum = 0.5f,
         .dampening = 0.5f,
         .weight_decay = 0.01f,
         .first = 1},
    };
    const tac_adamw_args a = {1, 0.9f, 0.999f, 1e-8f,  0.01f,
                              0, NULL, NULL,   TAC_F16};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
        for (size_t j = 0; j < (lengths[i] < MANY ? 3 : 1); ++j) {
            for (size_t k = 0; k < 5; ++k)
                sgd(r, lengths[i], &sgds[k], &scalars[j], k > 0);
            adamw(r, lengths[i], &a, &scalars[j]);
        }
}

/* -------------------------------------------------------------- driver */

static const struct {
    const char *name;
    void (*run)(rig *r);
} tests[] = {
    {"linear", test_linear},           {"conv2d", test_conv2d},
    {"maxpool2d", test_maxpool2d},     {"conv2d_pool", test_conv2d_pool},
    {"elementwise", test_elementwise}, {"softmax_xent", test_softmax_xent},
    {"optimizers", test_optimizers},
};

static void run_tests(rig *r)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        const long before = tac_check_failed();
        tests[i].run(r);
        if (tac_check_failed() > before)
            printf("%s, %d threads: %s failed\n", r->set, r->threads,
                   tests[i].name);
    }
}

#endif
