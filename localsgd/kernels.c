/* kernels.c: loops over elements, written so that compilers vectorise them. */
#include <string.h>

#include "impl.h"

void tac__copy_scaled(float *y, const float *x, float by, size_t n)
{
    if (by == 1.0f && n > 0)
        memmove(y, x, n * sizeof *y);
    else
        for (size_t i = 0; i < n; i++) y[i] = x[i] * by;
}

void tac__difference(float *restrict y, const float *restrict a,
                     const float *restrict x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = (a[i] - x[i]) * by;
}

void tac__mix(float *restrict x, const float *restrict a, float alpha, size_t n)
{
    const float rest = 1.0f - alpha;
    if (n == 0) return;
    if (alpha == 0)
        memcpy(x, a, n * sizeof *x);
    else
        for (size_t i = 0; i < n; i++) x[i] = alpha * x[i] + rest * a[i];
}

void tac__add_scaled(float *restrict y, const float *restrict x, float by,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += by * x[i];
}

/* ---- sums -----------------------------------------------------------------
 */

/* Lanes keep the order of additions fixed and let them be vectors; a block is
 * short enough for f32. */
enum { LANES = 16, BLOCK = 4096 };

#define SUM(term)                                                     \
    double sum = 0;                                                   \
    for (size_t b = 0; b < n; b += BLOCK) {                           \
        const size_t end = n - b < BLOCK ? n : b + BLOCK;             \
        float s[LANES] = {0}, t = 0;                                  \
        size_t i = b;                                                 \
        for (; end - i >= LANES; i += LANES)                          \
            for (size_t k = 0; k < LANES; k++) s[k] += (term(i + k)); \
        for (; i < end; i++) t += (term(i));                          \
        for (size_t k = 0; k < LANES; k++) sum += (double)s[k];       \
        sum += (double)t;                                             \
    }                                                                 \
    return sum

double tac__sum_squares(const float *x, size_t n)
{
#define TERM(j) x[j] * x[j]
    SUM(TERM);
#undef TERM
}

double tac__distance2(const float *x, const float *y, size_t n)
{
#define TERM(j) (x[j] - y[j]) * (x[j] - y[j])
    SUM(TERM);
#undef TERM
}

double tac__dot(const float *x, const float *y, size_t n)
{
#define TERM(j) x[j] * y[j]
    SUM(TERM);
#undef TERM
}
