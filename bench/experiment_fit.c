/* experiment_fit.c: means, spreads, a line by least squares. */
#include <math.h>

#include "experiment.h"

double exp_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return n ? sum / (double)n : NAN;
}

double exp_deviation(const double *x, size_t n)
{
    const double mean = exp_mean(x, n);
    double squares = 0;
    if (n < 2) return 0;
    for (size_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1));
}

/* About the means, so that nothing cancels. */
exp_line exp_fit(const double *x, const double *y, size_t n)
{
    const double mx = exp_mean(x, n), my = exp_mean(y, n);
    double xx = 0, xy = 0, yy = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
        yy += (y[i] - my) * (y[i] - my);
    }
    const double b = xy / xx, a = my - b * mx;
    for (size_t i = 0; i < n; i++) {
        const double off = y[i] - a - b * x[i];
        rest += off * off;
    }
    return (exp_line){a, b, yy > 0 ? 1 - rest / yy : NAN};
}
