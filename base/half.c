/* half.c: the scalar conversions, which define the bits, and the bulk entry
 * points, which take the best implementation of this CPU.
 *
 * All in integers: no floating-point flag is raised and no rounding mode or
 * flush-to-zero setting of the caller changes a result. */
#include "half_impl.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

enum {
    F32_INF = 0x7f800000,
    F16_OVERFLOW = 0x477ff000,     /* 65520, halfway from 65504 to 65536 */
    F16_MIN_NORMAL = 0x38800000,   /* 2^-14 */
    F16_HALF_SMALLEST = 0x33000000 /* 2^-25: a tie that goes to zero */
};

/* The value is m * 2^(e-150), a subnormal f16 a multiple of 2^-24. */
static uint32_t to_subnormal(uint32_t a)
{
    const uint32_t shift = 126 - (a >> 23); /* 14 to 24 */
    const uint32_t m = (a & 0x7fffff) | 0x800000;
    const uint32_t q = m >> shift, rest = m & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    return q + (rest > half || (rest == half && (q & 1)));
}

uint16_t tac_f32_to_f16(float x)
{
    const uint32_t u = bits_of(x), a = u & 0x7fffffff;
    const uint32_t sign = u >> 16 & 0x8000;
    uint32_t h;
    if (a > F32_INF)
        h = 0x7e00 | (a >> 13 & 0x3ff);
    else if (a >= F16_OVERFLOW)
        h = 0x7c00;
    else if (a >= F16_MIN_NORMAL) /* rounding may carry into the exponent */
        h = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    else if (a > F16_HALF_SMALLEST)
        h = to_subnormal(a);
    else
        h = 0;
    return (uint16_t)(sign | h);
}

float tac_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 0x1f, m = h & 0x3ff;
    if (exponent == 31) {
        const uint32_t quiet = m ? 0x400000 : 0;
        return float_of(sign | F32_INF | quiet | m << 13);
    }
    if (exponent == 0) {
        if (m == 0) return float_of(sign);
        exponent = 1;
        while (!(m & 0x400)) { /* at most 10 times */
            m <<= 1;
            --exponent; /* wraps below 0, back above it when 112 is added */
        }
        m &= 0x3ff;
    }
    return float_of(sign | (exponent + 112) << 23 | m << 13);
}

uint16_t tac_f32_to_bf16(float x)
{
    const uint32_t u = bits_of(x);
    if ((u & 0x7fffffff) > F32_INF) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float tac_bf16_to_f32(uint16_t b)
{
    const uint32_t quiet = (b & 0x7fff) > 0x7f80 ? 0x40 : 0;
    return float_of((b | quiet) << 16);
}

static const tac_half_impl *best_impl(void)
{
    const tac_half_impl *impl = tac_half_impls();
    while (!impl->available()) ++impl; /* the last one always is */
    return impl;
}

void tac_f32_to_f16_n(uint16_t *dst, const float *src, size_t n)
{
    best_impl()->f32_to_f16(dst, src, n);
}

void tac_f16_to_f32_n(float *dst, const uint16_t *src, size_t n)
{
    best_impl()->f16_to_f32(dst, src, n);
}

void tac_f32_to_bf16_n(uint16_t *dst, const float *src, size_t n)
{
    best_impl()->f32_to_bf16(dst, src, n);
}

void tac_bf16_to_f32_n(float *dst, const uint16_t *src, size_t n)
{
    best_impl()->bf16_to_f32(dst, src, n);
}
