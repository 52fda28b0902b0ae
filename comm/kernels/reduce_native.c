/* reduce_native.c: reductions in the elements' own type, where that gives what
 * the wide accumulator would: integers wrap alike in 32 and 64 bits, and f64 is
 * accumulated in f64. */
#include <string.h>

#include "kernels/reduce.h"

/* Bytes that are reduced at a time. */
#define BLOCK ((size_t)8192)

static void reduce_block(const tac__reduce_args *a, tac__combine_fn *combine,
                         size_t at, size_t bytes, size_t n)
{
    _Alignas(64) char acc[BLOCK];
    memcpy(acc, (const char *)a->srcs[0] + at, bytes);
    for (int r = 1; r < a->p; r++)
        combine(acc, (const char *)a->srcs[r] + at, n);
    memcpy((char *)a->dst + at, acc, bytes);
    for (int d = 0; d < a->n_also; d++)
        memcpy((char *)a->also[d] + at, acc, bytes);
}

void tac__reduce_native(const tac__reduce_table *t, const tac__reduce_args *a)
{
    const size_t es = tac_dtype_size(a->dtype), all = a->n * es;
    for (size_t at = 0; at < all; at += BLOCK) {
        const size_t bytes = all - at < BLOCK ? all - at : BLOCK;
        reduce_block(a, t->native[a->dtype][a->op], at, bytes, bytes / es);
    }
}
