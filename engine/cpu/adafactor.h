/* adafactor.h: Adafactor's passes over one tensor, for every CPU kernel set.
 *
 * The passes, their scratch and their sharing among threads are the same for
 * all sets and types; a set brings the loops over one row. Private to cpu/. */
#ifndef TAC_CPU_ADAFACTOR_H
#define TAC_CPU_ADAFACTOR_H

#include "tacit/kernels.h"

/* How a value is updated from u: m = beta1 m + (1-beta1) u, u = m if there is
 * an m; p = p * keep - u. */
typedef struct tac__adafactor_step {
    double factor; /* u = g * factor * (1/sqrt(v) or col factor) */
    double keep, beta1;
} tac__adafactor_step;

/* Loops over n neighbours; g, v, col_factor, m of A, sums in f64. The value p
 * is of A too: 16-bit values are converted around the loops. */
typedef struct tac__adafactor_loops {
    tac_dtype a;
    /* col[j] += u, returned: their sum; u = (factor g)^2 + eps1. */
    double (*row_stats)(size_t n, const void *g, double factor, double eps1,
                        double *col);
    double (*sum_squares)(size_t n, const void *p);
    /* The sum of (g * factor * col_factor)^2. */
    double (*row_norm)(size_t n, const void *g, double factor,
                       const void *col_factor);
    void (*row_update)(size_t n, const tac__adafactor_step *s, void *p,
                       const void *g, const void *col_factor, void *m);
    /* v = beta v + (1-beta) u; returned: the sum of (factor g)^2 / v. */
    double (*vector_stats)(size_t n, const void *g, double factor, double eps1,
                           double beta, void *v);
    void (*vector_update)(size_t n, const tac__adafactor_step *s, void *p,
                          const void *g, const void *v, void *m);
} tac__adafactor_loops;

/* The entry `adafactor` of a table whose T and A are loops->a. */
tac_status tac__adafactor(const tac_kctx *kc, const tac__adafactor_loops *loops,
                          const tac_adafactor_shape *d,
                          const tac_adafactor_args *a,
                          const tac_step_scalars *s, void *p, const void *g,
                          void *row, void *col, void *exp_avg, void *work);

#endif
