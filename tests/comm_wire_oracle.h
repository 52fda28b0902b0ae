/* comm_wire_oracle.h: what an element becomes on the wire, computed in f64 from
 * the definition of the format, without any of the library's code. */
#ifndef COMM_WIRE_ORACLE_H
#define COMM_WIRE_ORACLE_H

#include <math.h>
#include <string.h>

#include "tac_sanitized.h"
#include "wire.h"

#define WIRE_BIGGEST 3.402823466e38f

/* x rounded to `bits` significant bits, but to no finer steps than 2^least. */
static inline UNWATCHED double rounded(double x, int bits, int least)
{
    int e;
    if (x == 0 || !isfinite(x)) return x;
    (void)frexp(x, &e);
    const int step = e - bits > least ? e - bits : least;
    return ldexp(nearbyint(ldexp(x, -step)), step);
}

static inline UNWATCHED double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && fabs((double)x[i]) > most) most = fabs(x[i]);
    return most;
}

/* The scale of a block: a power of two, or a step. */
static inline UNWATCHED double scale_fp16(const float *block, size_t n)
{
    int e = 0;
    const double most = largest(block, n);
    if (most == 0) return 1;
    (void)frexp(most, &e);
    return ldexp(1, e - 15);
}

static inline UNWATCHED float scale_int8(const float *block, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(block[k])) return NAN;
    const float scale = (float)largest(block, n) / 127.0f;
    return scale * 127.0f > WIRE_BIGGEST ? nextafterf(scale, 0) : scale;
}

static inline UNWATCHED double oracle_int8(float x, float scale)
{
    if (!(scale > 0)) return scale;
    const double q = nearbyint((double)(x / scale));
    return (q > 127 ? 127 : q < -127 ? -127 : q) * (double)scale;
}

/* The nearest of 0 and the powers of two from 2^-6 to 1; ties go up. */
static inline UNWATCHED double oracle_fp4(float x, float scale)
{
    if (!(scale > 0)) return scale; /* 0, or NaN */
    const double v = fabs((double)(x / scale));
    double best = 0;
    for (int k = -6; k <= 0; k++)
        if (fabs(v - ldexp(1, k)) <= fabs(v - best)) best = ldexp(1, k);
    return (float)((x < 0 ? -best : best) * (double)scale);
}

static inline UNWATCHED float scale_fp4(const float *block, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(block[k])) return NAN;
    return (float)largest(block, n);
}

/* y[i]: what the receiver of x[0..n) gets. */
static inline UNWATCHED void wire_oracle(const tac__wire *w, const float *x,
                                         float *y, size_t n)
{
    for (size_t at = 0; at < n; at += w->block) {
        const size_t m = n - at < w->block ? n - at : w->block;
        const double s16 = w == &tac__wire_fp16 ? scale_fp16(x + at, m) : 1;
        const float s4 = w == &tac__wire_fp4 ? scale_fp4(x + at, m) : 1;
        const float s8 = w == &tac__wire_int8 ? scale_int8(x + at, m) : 1;
        for (size_t i = at; i < at + m; i++)
            if (w == &tac__wire_bf16)
                y[i] = (float)rounded(x[i], 8, -133);
            else if (w == &tac__wire_fp16)
                y[i] = (float)(rounded((double)x[i] / s16, 11, -24) * s16);
            else if (w == &tac__wire_fp4)
                y[i] = (float)oracle_fp4(x[i], s4);
            else
                y[i] = (float)oracle_int8(x[i], s8);
    }
}

static inline UNWATCHED int same(float a, float b)
{
    return a != a ? b != b
                  : memcmp(&a, &b, sizeof a) == 0 || (a == 0 && b == 0);
}

#endif
