/* topk_levels.c: values in 2, 4 or 8 bits: a sign, and one of L = 2^(bits-1)
 * magnitudes that lie evenly between two levels of the block:
 *
 *     low + m (high - low) / (L - 1),  m = 0 .. L - 1
 *
 * The largest elements have no small magnitudes among them, so nothing is spent
 * on zero and no sign is ever wrong. With 4 and 8 bits the levels are the
 * block's smallest and largest magnitude. With 2 bits they are the pair that
 * loses the least in the sense of squares: magnitudes are sorted, and of all
 * places to cut them in two the best is taken; each part's level is its mean.
 * Either way the error of a block is smaller than the block, which is what
 * error feedback needs. A block with an infinity or a NaN has levels NaN. */
#include <math.h>

#include "codecs/topk.h"

/* 0 if an element is not finite. */
static int extremes(const float *x, size_t n, float *low, float *high)
{
    int finite = 1;
    *low = INFINITY;
    *high = 0;
    for (size_t i = 0; i < n; i++) {
        const float m = fabsf(x[i]);
        finite &= isfinite(m) != 0;
        *low = m < *low ? m : *low;
        *high = m > *high ? m : *high;
    }
    return finite;
}

/* Shell's: of at most a block, no memory. */
static void sort(double *x, size_t n)
{
    static const size_t gaps[] = {57, 23, 10, 4, 1};
    for (int g = 0; g < 5; g++)
        for (size_t i = gaps[g], k; i < n; i++) {
            const double y = x[i];
            for (k = i; k >= gaps[g] && x[k - gaps[g]] > y; k -= gaps[g])
                x[k] = x[k - gaps[g]];
            x[k] = y;
        }
}

/* Squares lost are those of the block less n mean^2 of each part. Of cuts that
 * are equal but for rounding the first is taken. */
static void best_pair(const float *x, size_t n, float *levels)
{
    double m[TAC__TOPK_BLOCK], total = 0, sum = 0, most;
    for (size_t i = 0; i < n; i++) m[i] = fabs((double)x[i]);
    sort(m, n);
    for (size_t i = 0; i < n; i++) total += m[i];
    levels[0] = levels[1] = (float)(total / (double)n);
    most = total * total / (double)n;
    for (size_t i = 1; i < n; i++) {
        sum += m[i - 1];
        const double low = sum / (double)i;
        const double high = (total - sum) / (double)(n - i);
        const double kept =
            low * low * (double)i + high * high * (double)(n - i);
        if (!(kept > most * (1 + 1e-12))) continue;
        most = kept;
        levels[0] = (float)low;
        levels[1] = (float)high;
    }
}

void tac__levels_of(const float *x, size_t n, unsigned bits, float *levels)
{
    if (!extremes(x, n, &levels[0], &levels[1]))
        levels[0] = levels[1] = NAN;
    else if (bits == 2)
        best_pair(x, n, levels);
}

static float step_of(const float *levels, unsigned bits)
{
    const uint32_t last = (UINT32_C(1) << (bits - 1)) - 1;
    return (levels[1] - levels[0]) / (float)last;
}

void tac__levels_encode(const float *levels, unsigned bits, const float *x,
                        size_t n, uint32_t *code)
{
    const float low = levels[0], step = step_of(levels, bits);
    const float last = (float)((UINT32_C(1) << (bits - 1)) - 1);
    for (size_t i = 0; i < n; i++) {
        float m = 0;
        if (step > 0) m = (fabsf(x[i]) - low) / step + 0.5f;
        m = m > 0 ? m : 0; /* NaN, too */
        m = m < last ? m : last;
        code[i] = (uint32_t)m | (uint32_t)(x[i] < 0) << (bits - 1);
    }
}

void tac__levels_decode(const float *levels, unsigned bits,
                        const uint32_t *code, size_t n, float *x)
{
    const float step = step_of(levels, bits);
    const uint32_t sign = UINT32_C(1) << (bits - 1);
    for (size_t i = 0; i < n; i++) {
        const float m = levels[0] + (float)(code[i] & (sign - 1)) * step;
        x[i] = code[i] & sign ? -m : m;
    }
}
