/* bench_stats.c: repeated timings and their medians. */
#include "bench_stats.h"

#include <stdlib.h>

#include "tacit/clock.h"

enum { MIN_RUNS = 3, MAX_RUNS = 1000 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tac__median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

tac_status tac__time(tac__timed_fn *fn, void *arg, double seconds,
                     double *median)
{
    double times[MAX_RUNS];
    size_t n = 0;
    TAC_TRY(fn(arg));
    const double start = tac_clock_s();
    for (double now = start; n < MAX_RUNS;) {
        TAC_TRY(fn(arg));
        const double end = tac_clock_s();
        times[n++] = end - now;
        now = end;
        if (n >= MIN_RUNS && now - start >= seconds) break;
    }
    *median = tac__median(times, n);
    return TAC_OK;
}
