/* experiment_logistic.h: logistic regression, solved exactly and by local SGD.
 *
 *   f(x) = 1/n sum_i log(1 + exp(-b_i a_i'x)) + lambda/2 |x|^2
 *
 * Images of two classes, averaged over blocks so that about 7 x 7 pixels are
 * left, each feature brought to mean 0 and variance 1/d, and a constant. So
 * |a_i|^2 is about 1 and f can be minimised to the last digit in f64: what
 * local SGD misses is then known, not estimated. */
#ifndef EXPERIMENT_LOGISTIC_H
#define EXPERIMENT_LOGISTIC_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"

typedef struct logistic {
    tac_context *ctx;
    size_t n, d;
    float *rows; /* (n, d): b_i a_i; the first half is the first class */
    double lambda;
    double *best;          /* (d) the minimiser */
    double f_zero, f_best; /* f(0), f(best) */
    double gradient;       /* |f'(best)|: how exact it is */
    double smooth;         /* largest curvature of a single sample, mean */
    double accuracy;       /* of the minimiser on its own data */
    int first, second;     /* labels */
} logistic;

/* Reads both classes' training samples: equally many of each, a multiple of
 * `multiple` (so that shards are equal), at most limit/2 (0: all). lambda <= 0:
 * 1/n. */
tac_status logistic_open(tac_context *ctx, const char *data, const char *dir,
                         size_t limit, size_t multiple, double lambda,
                         logistic *out);
void logistic_close(logistic *p);

/* b_i a_i'x: positive where sample i is told right. */
double logistic_margin(const logistic *p, const double *x, size_t i);
/* Sums over rows [from, to): of losses; of gradients, added to g (d). Without
 * lambda. */
double logistic_loss_sum(const logistic *p, const double *x, size_t from,
                         size_t to);
void logistic_gradient_sum(const logistic *p, const double *x, size_t from,
                           size_t to, double *g);
/* Finds best, f_best and f_zero from zeros. Errors: NOMEM, INTERNAL. */
tac_status logistic_minimise(logistic *p);
/* f(x) of all rows. */
double logistic_value(const logistic *p, const double *x);
/* Hessian of the mean over rows [from, to) with lambda into h (d, d). */
void logistic_hessian(const logistic *p, const double *x, size_t from,
                      size_t to, double *h);
/* Solves h s = g for a positive definite h (d, d), which is destroyed; s may be
 * g. 0: it is not positive definite. */
int logistic_solve(size_t d, double *h, const double *g, double *s);

/* ---- local SGD ----------------------------------------------------------- */

typedef struct logistic_look {
    int64_t step;
    double gap; /* f - f_best of the iterate looked at */
} logistic_look;

typedef struct logistic_run {
    const logistic *p;
    int workers;
    int64_t every, steps; /* H; steps at most */
    int64_t batch;        /* of a worker, drawn with replacement; 0: its whole
                             shard */
    int sorted;           /* shards by label; 0: each worker sees everything */
    double rate;          /* of step t: min(rate, decay / t) */
    double decay;         /* INFINITY: constant */
    int averaged;         /* looks are at sum t^2 x_t / sum t^2 of the workers'
                             mean x_t; 0: at the mean itself */
    int from_best;        /* starts at the minimiser; 0: at zero */
    int64_t look_every;   /* looks at its multiples; 0: 16, and each about 10 %
                             later than the one before */
    double target;        /* stops at a look with a gap of at most this */
    double settled;       /* stops when the mean moved between two looks by at
                             most this times its distance from best; 0: never */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
} logistic_run;

typedef struct logistic_outcome {
    logistic_look *looks;
    size_t n_looks;
    double *mean;         /* (d) what the last look saw */
    double reached;       /* step of the target, interpolated; INFINITY: not */
    int64_t steps, syncs; /* done */
    double bytes;         /* counted, of a worker */
    int settled;
} logistic_outcome;

/* Workers are threads with a communicator; localsgd averages. Errors: those of
 * comm and localsgd, NOMEM, INTERRUPTED. */
tac_status logistic_train(const logistic_run *r, logistic_outcome *out);
void logistic_outcome_free(logistic_outcome *o);

#endif
