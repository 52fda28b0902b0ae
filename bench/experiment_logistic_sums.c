/* experiment_logistic_sums.c: losses, gradients, Hessians and the minimum of a
 * logistic regression. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment_logistic.h"

double logistic_margin(const logistic *p, const double *x, size_t i)
{
    const float *row = p->rows + i * p->d;
    double z = 0;
    for (size_t j = 0; j < p->d; j++) z += (double)row[j] * x[j];
    return z;
}

/* 1 / (1 + exp(z)). */
static double miss(double z)
{
    return 1 / (1 + exp(z));
}

double logistic_loss_sum(const logistic *p, const double *x, size_t from,
                         size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++) {
        const double z = logistic_margin(p, x, i);
        sum += z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
    }
    return sum;
}

void logistic_gradient_sum(const logistic *p, const double *x, size_t from,
                           size_t to, double *g)
{
    for (size_t i = from; i < to; i++) {
        const float *row = p->rows + i * p->d;
        const double w = miss(logistic_margin(p, x, i));
        for (size_t j = 0; j < p->d; j++) g[j] -= w * (double)row[j];
    }
}

static double square(const double *x, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += x[j] * x[j];
    return sum;
}

double logistic_value(const logistic *p, const double *x)
{
    return logistic_loss_sum(p, x, 0, p->n) / (double)p->n +
           p->lambda / 2 * square(x, p->d);
}

void logistic_hessian(const logistic *p, const double *x, size_t from,
                      size_t to, double *h)
{
    const size_t d = p->d;
    memset(h, 0, d * d * sizeof *h);
    for (size_t i = from; i < to; i++) {
        const float *row = p->rows + i * d;
        const double m = miss(logistic_margin(p, x, i));
        const double w = m * (1 - m) / (double)(to - from);
        for (size_t j = 0; j < d; j++) {
            const double wj = w * (double)row[j];
            for (size_t k = 0; k <= j; k++) h[j * d + k] += wj * (double)row[k];
        }
    }
    for (size_t j = 0; j < d; j++) {
        h[j * d + j] += p->lambda;
        for (size_t k = 0; k < j; k++) h[k * d + j] = h[j * d + k];
    }
}

/* ---- the minimum ---------------------------------------------------------
 */

/* Cholesky: h = l l', l in the lower half. */
static int factor(size_t d, double *h)
{
    for (size_t j = 0; j < d; j++) {
        for (size_t k = 0; k <= j; k++) {
            double sum = h[j * d + k];
            for (size_t i = 0; i < k; i++) sum -= h[j * d + i] * h[k * d + i];
            if (j == k && !(sum > 0)) return 0;
            h[j * d + k] = j == k ? sqrt(sum) : sum / h[k * d + k];
        }
    }
    return 1;
}

int logistic_solve(size_t d, double *h, const double *g, double *s)
{
    if (!factor(d, h)) return 0;
    for (size_t j = 0; j < d; j++) {
        double sum = g[j];
        for (size_t k = 0; k < j; k++) sum -= h[j * d + k] * s[k];
        s[j] = sum / h[j * d + j];
    }
    for (size_t j = d; j-- > 0;) {
        double sum = s[j];
        for (size_t k = j + 1; k < d; k++) sum -= h[k * d + j] * s[k];
        s[j] = sum / h[j * d + j];
    }
    return 1;
}

/* One Newton step from x, halved until f falls; |gradient| before it. */
static double newton_step(const logistic *p, double *x, double *h, double *g,
                          double *try)
{
    const size_t d = p->d;
    const double before = logistic_value(p, x);
    memset(g, 0, d * sizeof *g);
    logistic_gradient_sum(p, x, 0, p->n, g);
    for (size_t j = 0; j < d; j++)
        g[j] = g[j] / (double)p->n + p->lambda * x[j];
    const double norm = sqrt(square(g, d));
    logistic_hessian(p, x, 0, p->n, h);
    if (!logistic_solve(d, h, g, g)) return norm;
    for (double step = 1; step > 1e-3; step /= 2) {
        for (size_t j = 0; j < d; j++) try[j] = x[j] - step * g[j];
        if (logistic_value(p, try) <= before) break;
    }
    memcpy(x, try, d * sizeof *x);
    return norm;
}

tac_status logistic_minimise(logistic *p)
{
    double *work = calloc(p->d * (p->d + 3), sizeof *work);
    double *best = malloc(p->d * sizeof *best);
    if (!work || !best) {
        free(work);
        free(best);
        return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for Newton");
    }
    double *g = work + p->d * p->d;
    p->best = g + 2 * p->d;
    p->f_zero = logistic_value(p, p->best);
    for (int k = 0; k < 60; k++) {
        p->gradient = newton_step(p, p->best, work, g, g + p->d);
        if (p->gradient < 1e-13) break;
    }
    memcpy(best, p->best, p->d * sizeof *best);
    p->best = best;
    free(work);
    if (p->gradient > 1e-9)
        return tac_fail(p->ctx, TAC_ERR_INTERNAL,
                        "the minimum was not found: |gradient| is %g",
                        p->gradient);
    p->f_best = logistic_value(p, p->best);
    return TAC_OK;
}
