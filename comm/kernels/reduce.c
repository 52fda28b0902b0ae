/* reduce.c: reductions that accumulate in f32, and the choice by dtype.
 *
 * A block of each rank's array is widened to f32 if need be, scaled, and
 * combined into an accumulator in the L1 cache; the result is divided (avg),
 * scaled and rounded once. */
#include "kernels/reduce.h"

#include <string.h>

#include "tacit/half.h"

/* n elements of rank r's array, from element `at`, as f32: where they are, or
 * in tmp. */
static const float *load(const tac__reduce_args *a, int r, size_t at, size_t n,
                         float *tmp)
{
    if (a->dtype == TAC_F32) return (const float *)a->srcs[r] + at;
    const uint16_t *x = (const uint16_t *)a->srcs[r] + at;
    if (a->dtype == TAC_F16)
        tac_f16_to_f32_n(tmp, x, n);
    else
        tac_bf16_to_f32_n(tmp, x, n);
    return tmp;
}

static const float *load_scaled(const tac__reduce_table *t,
                                const tac__reduce_args *a, int r, size_t at,
                                size_t n, float *tmp)
{
    const float *x = load(a, r, at, n, tmp);
    if (a->prescale == 1.0) return x;
    if (x != tmp) memcpy(tmp, x, n * sizeof *x);
    t->scale(tmp, (float)a->prescale, n);
    return tmp;
}

static void store(const tac__reduce_args *a, size_t at, size_t n,
                  const float *acc)
{
    if (a->dtype == TAC_F32)
        memcpy((float *)a->dst + at, acc, n * sizeof *acc);
    else if (a->dtype == TAC_F16)
        tac_f32_to_f16_n((uint16_t *)a->dst + at, acc, n);
    else
        tac_f32_to_bf16_n((uint16_t *)a->dst + at, acc, n);
}

static void reduce_block(const tac__reduce_table *t, const tac__reduce_args *a,
                         size_t at, size_t n)
{
    float acc[TAC__REDUCE_BLOCK], tmp[TAC__REDUCE_BLOCK];
    memcpy(acc, load_scaled(t, a, 0, at, n, tmp), n * sizeof *acc);
    for (int r = 1; r < a->p; r++)
        t->combine[a->op](acc, load_scaled(t, a, r, at, n, tmp), n);
    if (a->op == TAC_AVG) t->divide(acc, (float)a->p, n);
    if (a->postscale != 1.0) t->scale(acc, (float)a->postscale, n);
    store(a, at, n, acc);
}

static void reduce_f32(const tac__reduce_table *t, const tac__reduce_args *a)
{
    for (size_t at = 0; at < a->n; at += TAC__REDUCE_BLOCK) {
        const size_t left = a->n - at;
        reduce_block(t, a, at,
                     left < TAC__REDUCE_BLOCK ? left : TAC__REDUCE_BLOCK);
    }
}

void tac__reduce(const tac__reduce_table *t, const tac__reduce_args *a)
{
    switch (a->dtype) {
    case TAC_F32:
    case TAC_F16:
    case TAC_BF16: reduce_f32(t, a); return;
    case TAC_F64: tac__reduce_f64(a); return;
    case TAC_I32: tac__reduce_i32(a); return;
    case TAC_I64: tac__reduce_i64(a); return;
    case TAC_U8: tac__reduce_u8(a); return;
    case TAC_DTYPE_COUNT: break;
    }
    TAC_ASSERT(a->dtype < TAC_DTYPE_COUNT);
}
