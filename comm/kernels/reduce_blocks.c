/* reduce_blocks.c: reductions that accumulate in f32, for any processor.
 *
 * A block of each rank's array is widened to f32 if need be, scaled, and
 * combined into an accumulator in the L1 cache; the result is divided (avg),
 * scaled and rounded once. This defines the bits of the vector kernels. */
#include <string.h>

#include "kernels/reduce.h"
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

static const float *load_scaled(const tac__reduce_args *a, int r, size_t at,
                                size_t n, float *tmp)
{
    const float *x = load(a, r, at, n, tmp);
    if (a->prescale == 1.0) return x;
    if (x != tmp) memcpy(tmp, x, n * sizeof *x);
    tac__reduce_ref.scale(tmp, (float)a->prescale, n);
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

static void reduce_block(const tac__reduce_args *a, size_t at, size_t n)
{
    const tac__reduce_table *t = &tac__reduce_ref;
    float acc[TAC__REDUCE_BLOCK], tmp[TAC__REDUCE_BLOCK];
    memcpy(acc, load_scaled(a, 0, at, n, tmp), n * sizeof *acc);
    for (int r = 1; r < a->p; r++)
        t->combine[a->op](acc, load_scaled(a, r, at, n, tmp), n);
    if (a->op == TAC_AVG) t->divide(acc, (float)a->p, n);
    if (a->postscale != 1.0) t->scale(acc, (float)a->postscale, n);
    store(a, at, n, acc);
}

void tac__reduce_blocks(const tac__reduce_args *a)
{
    tac__reduce_by_blocks(a, reduce_block);
}
