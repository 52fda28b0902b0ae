/* reduce_int.c: reductions of integers, accumulated in 64 bits.
 *
 * Sums and products wrap: they are formed unsigned, where wrapping is defined.
 * Scales work in f64, truncate toward zero and clamp to 64 bits (NaN: 0). The
 * result's low bits are stored. */
#include <string.h>

#include "kernels/reduce.h"

static int64_t scaled(int64_t v, double by)
{
    const double x = (double)v * by;
    if (x >= 0x1p63) return INT64_MAX;
    if (x <= -0x1p63) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

static int64_t combine(int64_t a, int64_t x, tac_op op)
{
    switch (op) {
    case TAC_SUM:
    case TAC_AVG: return (int64_t)((uint64_t)a + (uint64_t)x);
    case TAC_PROD: return (int64_t)((uint64_t)a * (uint64_t)x);
    case TAC_MIN: return x < a ? x : a;
    case TAC_MAX: return x > a ? x : a;
    case TAC_OP_COUNT: break;
    }
    return a;
}

static int64_t finished(const tac__reduce_args *a, int64_t v)
{
    if (a->op == TAC_AVG) v /= a->p;
    return a->postscale == 1.0 ? v : scaled(v, a->postscale);
}

#define REDUCE_BLOCK(type)                                                    \
    static void add_##type(int64_t *acc, const type *x, size_t n,             \
                           const tac__reduce_args *a)                         \
    {                                                                         \
        if (a->prescale != 1.0)                                               \
            for (size_t i = 0; i < n; i++)                                    \
                acc[i] = combine(acc[i], scaled((int64_t)x[i], a->prescale),  \
                                 a->op);                                      \
        else                                                                  \
            for (size_t i = 0; i < n; i++)                                    \
                acc[i] = combine(acc[i], (int64_t)x[i], a->op);               \
    }                                                                         \
                                                                              \
    static void block_##type(const tac__reduce_args *a, size_t at, size_t n)  \
    {                                                                         \
        int64_t acc[TAC__REDUCE_BLOCK];                                       \
        type *dst = (type *)a->dst + at;                                      \
        const type *x = (const type *)a->srcs[0] + at;                        \
        for (size_t i = 0; i < n; i++)                                        \
            acc[i] = a->prescale == 1.0 ? (int64_t)x[i]                       \
                                        : scaled((int64_t)x[i], a->prescale); \
        for (int r = 1; r < a->p; r++)                                        \
            add_##type(acc, (const type *)a->srcs[r] + at, n, a);             \
        for (size_t i = 0; i < n; i++)                                        \
            dst[i] = (type)(uint64_t)finished(a, acc[i]);                     \
    }

REDUCE_BLOCK(int32_t)
REDUCE_BLOCK(int64_t)
REDUCE_BLOCK(uint8_t)

void tac__reduce_i32(const tac__reduce_args *a)
{
    tac__reduce_by_blocks(a, block_int32_t);
}

void tac__reduce_i64(const tac__reduce_args *a)
{
    tac__reduce_by_blocks(a, block_int64_t);
}

void tac__reduce_u8(const tac__reduce_args *a)
{
    tac__reduce_by_blocks(a, block_uint8_t);
}
