/* engine_optim_oracle.h: the optimizers of one tensor in f64, straight from
 * their definitions (PyTorch's SGD and AdamW, Hugging Face's Adafactor), one
 * element or one formula at a time. Nothing of the library is used. */
#ifndef TAC_ENGINE_OPTIM_ORACLE_H
#define TAC_ENGINE_OPTIM_ORACLE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/optim.h"

typedef struct ora_tensor {
    int ndim;
    size_t shape[TAC_MAX_DIMS], n;
    double *p, *g;
    double *m, *v, *row, *col; /* n each, whatever is used */
    unsigned t;                /* applied steps */
} ora_tensor;

static inline double *ora_zeros(size_t n)
{
    double *x = calloc(n + 1, sizeof *x);
    if (!x) exit(2);
    return x;
}

static inline ora_tensor ora_make(int ndim, const size_t *shape)
{
    ora_tensor o = {.ndim = ndim, .n = 1};
    for (int i = 0; i < ndim; ++i) o.n *= o.shape[i] = shape[i];
    o.p = ora_zeros(o.n);
    o.g = ora_zeros(o.n);
    o.m = ora_zeros(o.n);
    o.v = ora_zeros(o.n);
    o.row = ora_zeros(o.n);
    o.col = ora_zeros(o.n);
    return o;
}

static inline void ora_free(ora_tensor *o)
{
    free(o->p);
    free(o->g);
    free(o->m);
    free(o->v);
    free(o->row);
    free(o->col);
}

/* Settings as the kernels see them: rounded once to the accumulating type. */
static inline double ora_as(tac_dtype dtype, double x)
{
    volatile float f = (float)x; /* gcc 12 may drop a plain round trip */
    return dtype == TAC_F64 ? x : (double)f;
}

static inline void ora_round(tac_optimizer_config *c, tac_dtype dtype)
{
    c->momentum = ora_as(dtype, c->momentum);
    c->dampening = ora_as(dtype, c->dampening);
    c->beta1 = ora_as(dtype, c->beta1);
    c->beta2 = ora_as(dtype, c->beta2);
    c->eps = ora_as(dtype, c->eps);
}

static inline void ora_sgd(ora_tensor *o, const tac_optimizer_config *c,
                           double lr, double decay)
{
    for (size_t i = 0; i < o->n; ++i) {
        double g = o->g[i] + decay * o->p[i];
        if (c->momentum > 0) {
            o->m[i] =
                o->t == 0 ? g : c->momentum * o->m[i] + (1 - c->dampening) * g;
            g = c->nesterov ? g + c->momentum * o->m[i] : o->m[i];
        }
        o->p[i] -= lr * g;
    }
}

/* bitsandbytes' definition decays last. */
static inline void ora_adamw(ora_tensor *o, const tac_optimizer_config *c,
                             double lr, double decay)
{
    const double t = o->t + 1.0;
    const int last = c->kind == TAC_OPTIMIZER_ADAMW8BIT;
    for (size_t i = 0; i < o->n; ++i) {
        if (!last) o->p[i] *= 1 - lr * decay;
        o->m[i] = c->beta1 * o->m[i] + (1 - c->beta1) * o->g[i];
        o->v[i] = c->beta2 * o->v[i] + (1 - c->beta2) * o->g[i] * o->g[i];
        const double m = o->m[i] / (1 - pow(c->beta1, t));
        const double v = o->v[i] / (1 - pow(c->beta2, t));
        o->p[i] -= lr * m / (sqrt(v) + c->eps);
        if (last) o->p[i] *= 1 - lr * decay;
    }
}

static inline double ora_rms(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

/* Step 5 of the definition for one matrix: u becomes the update. */
static inline void ora_factor(const tac_optimizer_config *c, size_t rows,
                              size_t cols, double beta, const double *g,
                              double *row, double *col, double *u)
{
    double mean = 0;
    for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t j = 0; j < cols; ++j)
            sum += g[r * cols + j] * g[r * cols + j] + c->eps1;
        row[r] = beta * row[r] + (1 - beta) * sum / (double)cols;
        mean += row[r] / (double)rows;
    }
    for (size_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (size_t r = 0; r < rows; ++r)
            sum += g[r * cols + j] * g[r * cols + j] + c->eps1;
        col[j] = beta * col[j] + (1 - beta) * sum / (double)rows;
    }
    for (size_t r = 0; r < rows; ++r)
        for (size_t j = 0; j < cols; ++j)
            u[r * cols + j] =
                g[r * cols + j] / sqrt(row[r] / mean) / sqrt(col[j]);
}

static inline void ora_second_moment(ora_tensor *o,
                                     const tac_optimizer_config *c, double *u)
{
    const double beta = 1 - pow(o->t + 1.0, c->decay_rate);
    if (o->ndim < 2) {
        for (size_t i = 0; i < o->n; ++i) {
            o->v[i] =
                beta * o->v[i] + (1 - beta) * (o->g[i] * o->g[i] + c->eps1);
            u[i] = o->g[i] / sqrt(o->v[i]);
        }
        return;
    }
    const size_t rows = o->shape[o->ndim - 2], cols = o->shape[o->ndim - 1];
    for (size_t b = 0; b < o->n / (rows * cols); ++b)
        ora_factor(c, rows, cols, beta, o->g + b * rows * cols,
                   o->row + b * rows, o->col + b * cols, u + b * rows * cols);
}

/* lr: the rate, or the factor of the relative step. */
static inline void ora_adafactor(ora_tensor *o, const tac_optimizer_config *c,
                                 double lr, double decay)
{
    const double t = o->t + 1.0;
    double rate = lr, *u = ora_zeros(o->n);
    if (o->n == 0) goto done;
    if (c->relative_step)
        rate *= fmin(c->warmup_init ? 1e-6 * t : 1e-2, 1 / sqrt(t));
    if (c->scale_parameter) rate *= fmax(c->eps2, ora_rms(o->p, o->n));
    ora_second_moment(o, c, u);
    const double big = fmax(1, ora_rms(u, o->n) / c->clip_threshold);
    for (size_t i = 0; i < o->n; ++i) {
        double change = rate * u[i] / big;
        if (!isnan(c->beta1))
            change = o->m[i] = c->beta1 * o->m[i] + (1 - c->beta1) * change;
        o->p[i] -= decay * rate * o->p[i];
        o->p[i] -= change;
    }
done:
    free(u);
}

static inline void ora_step(ora_tensor *o, const tac_optimizer_config *c,
                            double lr, double decay)
{
    if (c->kind == TAC_OPTIMIZER_SGD)
        ora_sgd(o, c, lr, decay);
    else if (c->kind == TAC_OPTIMIZER_ADAFACTOR)
        ora_adafactor(o, c, lr, decay);
    else
        ora_adamw(o, c, lr, decay);
    o->t += 1;
}

#endif
