/* reduce_f64.c: reductions of f64, accumulated in f64. */
#include "kernels/reduce.h"

#include <string.h>

static void combine(double *acc, const double *x, size_t n, tac_op op,
                    double scale)
{
    size_t i;
    switch (op) {
    case TAC_SUM:
    case TAC_AVG:
        for (i = 0; i < n; i++) acc[i] += x[i] * scale;
        return;
    case TAC_PROD:
        for (i = 0; i < n; i++) acc[i] *= x[i] * scale;
        return;
    case TAC_MIN:
        for (i = 0; i < n; i++) {
            const double v = x[i] * scale;
            acc[i] = v < acc[i] || v != v ? v : acc[i];
        }
        return;
    case TAC_MAX:
        for (i = 0; i < n; i++) {
            const double v = x[i] * scale;
            acc[i] = v > acc[i] || v != v ? v : acc[i];
        }
        return;
    case TAC_OP_COUNT: return;
    }
}

static void reduce_block(const tac__reduce_args *a, size_t at, size_t n)
{
    double acc[TAC__REDUCE_BLOCK];
    const double *x = (const double *)a->srcs[0] + at;
    for (size_t i = 0; i < n; i++) acc[i] = x[i] * a->prescale;
    for (int r = 1; r < a->p; r++)
        combine(acc, (const double *)a->srcs[r] + at, n, a->op, a->prescale);
    if (a->op == TAC_AVG)
        for (size_t i = 0; i < n; i++) acc[i] /= a->p;
    if (a->postscale != 1.0)
        for (size_t i = 0; i < n; i++) acc[i] *= a->postscale;
    memcpy((double *)a->dst + at, acc, n * sizeof *acc);
}

void tac__reduce_f64(const tac__reduce_args *a)
{
    tac__reduce_by_blocks(a, reduce_block);
}
