/* linear.c: the table's linear entries as matrix products. */
#include "cpu/onednn/onednn.h"
#include "tacit/pool.h"

static const tac_kernels *base(const tac_kctx *kc)
{
    const tac__onednn *o = kc->cache;
    return &o->base;
}

tac_status tac__onednn_linear_forward(const tac_kctx *kc, size_t n, size_t in,
                                      size_t out, const void *x, const void *w,
                                      const void *b, tac_act act, void *y)
{
    const tac__gemm g = {
        .ta = 'N',
        .tb = 'T',
        .m = n,
        .n = out,
        .k = in,
        .a = x,
        .lda = in,
        .b = w,
        .ldb = in,
        .beta = 0,
        .c = y,
        .ldc = out,
        .bias = b,
        .act = act,
    };
    if (n * in * out == 0)
        return base(kc)->linear_forward(kc, n, in, out, x, w, b, act, y);
    return tac__onednn_gemm(kc, &g);
}

tac_status tac__onednn_linear_backward_data(const tac_kctx *kc, size_t n,
                                            size_t in, size_t out,
                                            const void *dy, const void *w,
                                            void *dx, int accumulate)
{
    const tac__gemm g = {
        .ta = 'N',
        .tb = 'N',
        .m = n,
        .n = in,
        .k = out,
        .a = dy,
        .lda = out,
        .b = w,
        .ldb = in,
        .beta = accumulate ? 1 : 0,
        .c = dx,
        .ldc = in,
    };
    if (n * in * out == 0)
        return base(kc)->linear_backward_data(kc, n, in, out, dy, w, dx,
                                              accumulate);
    return tac__onednn_gemm(kc, &g);
}

typedef struct columns {
    size_t n, out;
    const float *dy;
    float *db;
    int accumulate;
} columns;

enum { STRIP = 64 };

/* Sums in double, a strip of columns at a time, so that dy is read in order. */
static void sum_strip(const columns *c, size_t begin, size_t count)
{
    double sums[STRIP] = {0};
    for (size_t i = 0; i < c->n; ++i) {
        const float *row = c->dy + i * c->out + begin;
        for (size_t j = 0; j < count; ++j) sums[j] += (double)row[j];
    }
    for (size_t j = 0; j < count; ++j) {
        const double old = c->accumulate ? (double)c->db[begin + j] : 0;
        c->db[begin + j] = (float)(old + sums[j]);
    }
}

static void sum_columns(void *arg, size_t begin, size_t end, int part)
{
    (void)part;
    for (size_t at = begin; at < end; at += STRIP)
        sum_strip(arg, at, end - at < STRIP ? end - at : STRIP);
}

static void bias_gradient(const tac_kctx *kc, columns *c)
{
    const size_t grain = (65536 / (c->n + 1) / STRIP + 1) * STRIP;
    tac_pool_for(kc->pool, c->out, grain, sum_columns, c);
}

tac_status tac__onednn_linear_backward_weights(const tac_kctx *kc, size_t n,
                                               size_t in, size_t out,
                                               const void *x, const void *dy,
                                               void *dw, void *db,
                                               int accumulate)
{
    const tac__gemm g = {
        .ta = 'T',
        .tb = 'N',
        .m = out,
        .n = in,
        .k = n,
        .a = dy,
        .lda = out,
        .b = x,
        .ldb = in,
        .beta = accumulate ? 1 : 0,
        .c = dw,
        .ldc = in,
    };
    columns c = {n, out, dy, db, accumulate};
    if (n * in * out == 0)
        return base(kc)->linear_backward_weights(kc, n, in, out, x, dy, dw, db,
                                                 accumulate);
    TAC_TRY(tac__onednn_gemm(kc, &g));
    if (db) bias_gradient(kc, &c);
    return TAC_OK;
}
