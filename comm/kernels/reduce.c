/* reduce.c: which kernel reduces what. */
#include "kernels/reduce.h"

#include <string.h>

static void copy_block(const tac__reduce_args *a, size_t at, size_t n)
{
    const size_t es = tac_dtype_size(a->dtype);
    for (int d = 0; d < a->n_also; d++)
        if (a->also[d] != a->dst)
            memcpy((char *)a->also[d] + at * es, (char *)a->dst + at * es,
                   n * es);
}

void tac__reduce_by_blocks(const tac__reduce_args *a, tac__block_fn *block)
{
    for (size_t at = 0; at < a->n; at += TAC__REDUCE_BLOCK) {
        const size_t left = a->n - at;
        const size_t n = left < TAC__REDUCE_BLOCK ? left : TAC__REDUCE_BLOCK;
        block(a, at, n);
        copy_block(a, at, n);
    }
}

static int is_native(const tac__reduce_table *t, const tac__reduce_args *a)
{
    return a->prescale == 1.0 && a->postscale == 1.0 && a->op != TAC_AVG &&
           t->native[a->dtype][a->op] != NULL;
}

void tac__reduce(const tac__reduce_table *t, const tac__reduce_args *a)
{
    if (is_native(t, a)) {
        tac__reduce_native(t, a);
        return;
    }
    switch (a->dtype) {
    case TAC_F32:
    case TAC_F16:
    case TAC_BF16: t->reduce(a); return;
    case TAC_F64: tac__reduce_f64(a); return;
    case TAC_I32: tac__reduce_i32(a); return;
    case TAC_I64: tac__reduce_i64(a); return;
    case TAC_U8: tac__reduce_u8(a); return;
    case TAC_DTYPE_COUNT: break;
    }
    TAC_ASSERT(a->dtype < TAC_DTYPE_COUNT);
}
