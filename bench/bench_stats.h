/* bench_stats.h: repeated timings and their medians. */
#ifndef TAC_BENCH_STATS_H
#define TAC_BENCH_STATS_H

#include <stddef.h>

#include "tacit/status.h"

/* Median of n > 0 values, which are sorted in place. */
double tac__median(double *x, size_t n);

/* Something to time. A failure ends the timing. */
typedef tac_status tac__timed_fn(void *arg);

/* Runs fn until `seconds` have passed, at least 3 and at most 1000 times after
 * one run that is not counted; *median in seconds. */
tac_status tac__time(tac__timed_fn *fn, void *arg, double seconds,
                     double *median);

#endif
