/* linear.c: the table's linear entries as matrix products. */
#include "cpu/onednn/matmul.h"
#include "tacit/half.h"
#include "tacit/pool.h"

static const tac_kernels *base(const tac_kctx *kc, tac_dtype t)
{
    const tac__onednn *o = tac__onednn_of(kc);
    return t == TAC_F32 ? &o->base : &o->base_bf16;
}

static tac_status forward(const tac_kctx *kc, tac_dtype t, size_t n, size_t in,
                          size_t out, const void *x, const void *w,
                          const void *b, tac_act act, void *y)
{
    const tac__matmul_spec spec = {
        .m = n,
        .n = out,
        .k = in,
        .lda = in,
        .ldb = in,
        .ldc = out,
        .in = t,
        .out = t,
        .tb = 1,
        .bias = b != NULL,
        .relu = act == TAC_ACT_RELU,
    };
    const tac__matmul_args args = {x, w, b, y};
    int done;
    TAC_TRY(tac__matmul(kc, &spec, &args, &done));
    if (done) return TAC_OK;
    return base(kc, t)->linear_forward(kc, n, in, out, x, w, b, act, y);
}

static tac_status backward_data(const tac_kctx *kc, tac_dtype t, size_t n,
                                size_t in, size_t out, const void *dy,
                                const void *w, void *dx, int accumulate)
{
    const tac__matmul_spec spec = {
        .m = n,
        .n = in,
        .k = out,
        .lda = out,
        .ldb = in,
        .ldc = in,
        .in = t,
        .out = t,
        .accumulate = accumulate != 0,
    };
    const tac__matmul_args args = {dy, w, NULL, dx};
    int done;
    TAC_TRY(tac__matmul(kc, &spec, &args, &done));
    if (done) return TAC_OK;
    return base(kc, t)->linear_backward_data(kc, n, in, out, dy, w, dx,
                                             accumulate);
}

typedef struct columns {
    tac_dtype type; /* of dy */
    size_t n, out;
    const void *dy;
    float *db;
    int accumulate;
} columns;

enum { STRIP = 64, BLOCK = 8 };

/* STRIP or fewer elements of a row, as f32: where they are, or in `wide`. */
static const float *row_at(const columns *c, size_t i, size_t begin,
                           size_t count, float *wide)
{
    const size_t at = i * c->out + begin;
    if (c->type == TAC_F32) return (const float *)c->dy + at;
    tac_bf16_to_f32_n(wide, (const uint16_t *)c->dy + at, count);
    return wide;
}

/* Sums of BLOCK rows in f32, of all in double, a strip of columns at a time, so
 * that dy is read in order. */
static void sum_strip(const columns *c, size_t begin, size_t count)
{
    double sums[STRIP] = {0};
    float wide[STRIP];
    for (size_t i = 0; i < c->n; i += BLOCK) {
        float block[STRIP] = {0};
        const size_t rows = c->n - i < BLOCK ? c->n - i : BLOCK;
        for (size_t r = 0; r < rows; ++r) {
            const float *row = row_at(c, i + r, begin, count, wide);
            for (size_t j = 0; j < count; ++j) block[j] += row[j];
        }
        for (size_t j = 0; j < count; ++j) sums[j] += (double)block[j];
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

static tac_status backward_weights(const tac_kctx *kc, tac_dtype t, size_t n,
                                   size_t in, size_t out, const void *x,
                                   const void *dy, void *dw, void *db,
                                   int accumulate)
{
    const tac__matmul_spec spec = {
        .m = out,
        .n = in,
        .k = n,
        .lda = out,
        .ldb = in,
        .ldc = in,
        .in = t,
        .out = TAC_F32,
        .ta = 1,
        .accumulate = accumulate != 0,
    };
    const tac__matmul_args args = {dy, x, NULL, dw};
    columns c = {t, n, out, dy, db, accumulate};
    int done;
    TAC_TRY(tac__matmul(kc, &spec, &args, &done));
    if (!done)
        return base(kc, t)->linear_backward_weights(kc, n, in, out, x, dy, dw,
                                                    db, accumulate);
    if (db) bias_gradient(kc, &c);
    return TAC_OK;
}

#define ENTRIES(name, type)                                                  \
    tac_status tac__onednn_linear_forward_##name(                            \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *x,  \
        const void *w, const void *b, tac_act act, void *y)                  \
    {                                                                        \
        return forward(kc, type, n, in, out, x, w, b, act, y);               \
    }                                                                        \
    tac_status tac__onednn_linear_backward_data_##name(                      \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *dy, \
        const void *w, void *dx, int accumulate)                             \
    {                                                                        \
        return backward_data(kc, type, n, in, out, dy, w, dx, accumulate);   \
    }                                                                        \
    tac_status tac__onednn_linear_backward_weights_##name(                   \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *x,  \
        const void *dy, void *dw, void *db, int accumulate)                  \
    {                                                                        \
        return backward_weights(kc, type, n, in, out, x, dy, dw, db,         \
                                accumulate);                                 \
    }

ENTRIES(f32, TAC_F32)
ENTRIES(bf16, TAC_BF16)
