/* powersgd_math.c: Gram-Schmidt, in f64.
 *
 * Every rank does it on its own with the same bits: sums have a fixed number of
 * partial sums. Vectors are projected twice, so that what remains of nearly
 * dependent ones is orthogonal all the same. One counts as vanished if less
 * than 1e-8 of it is left. Cost: 4 n^2 length operations. */
#include <math.h>

#include "codecs/codec_impl.h"

enum { SUMS = 8 };
#define EPS 1e-8

static double dot(const float *a, const float *b, size_t n)
{
    double s[SUMS] = {0}, t = 0;
    size_t i = 0;
    for (; n - i >= SUMS; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            s[k] += (double)a[i + k] * (double)b[i + k];
    for (size_t k = 0; i < n; i++, k++) s[k] += (double)a[i] * (double)b[i];
    for (size_t k = 0; k < SUMS; k++) t += s[k];
    return t;
}

/* v -= (v . u) u for the `n` unit vectors u before it */
static void project(float *v, const float *before, size_t n, size_t length)
{
    for (size_t j = 0; j < n; j++) {
        const float *u = before + j * length;
        const double by = dot(v, u, length);
        for (size_t i = 0; i < length; i++)
            v[i] = (float)((double)v[i] - by * (double)u[i]);
    }
}

/* 0 if it vanished. */
static int make_unit(float *v, const float *before, size_t n, size_t length)
{
    const double whole = sqrt(dot(v, v, length));
    double left = whole;
    for (int pass = 0; pass < 2 && n > 0; pass++) {
        project(v, before, n, length);
        left = sqrt(dot(v, v, length));
        if (left <= EPS * whole) return 0;
    }
    if (left == 0) return 0;
    for (size_t i = 0; i < length; i++) v[i] = (float)((double)v[i] / left);
    return 1;
}

void tac__orthonormalise(float *v, size_t n, size_t length,
                         tac__renew_fn *renew, void *arg)
{
    for (size_t j = 0; j < n; j++) {
        float *mine = v + j * length;
        int ok = make_unit(mine, v, j, length);
        if (!ok && renew) {
            renew(arg, j, mine, length);
            ok = make_unit(mine, v, j, length);
        }
        for (size_t i = 0; i < length && !ok; i++) mine[i] = 0;
    }
}
