/* wire_fp4.c: four bits on the wire: a sign and three bits of exponent, no
 * mantissa (E3M0, as in Streaming DiLoCo, arXiv:2501.18512). Blocks of 256
 * share a scale, max|x|; in units of it an element is 0 or +-2^-6, 2^-5, ... 1.
 *
 * Message: the scales (f32), then (n + 1) / 2 bytes, even elements in the low
 * half. Rounding is to the nearest of these values, ties away from zero;
 * stochastic rounding, keyed by (key, element), goes to one of the two
 * neighbours so that the mean is exact. */
#include <math.h>
#include <string.h>

#include "wire.h"

#define BLOCK ((size_t)256)

static size_t blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t bytes_fp4(size_t n)
{
    return (n + 1) / 2 + sizeof(float) * blocks(n);
}

static char *bytes_at(void *msg, size_t total, size_t at)
{
    return (char *)msg + sizeof(float) * blocks(total) + at / 2;
}

/* NaN if the block has an infinity or a NaN. */
static float scale_for(const tac__codec_kernels *k, const float *x, size_t n)
{
    const uint32_t bits = k->max_bits(x, n);
    float most;
    if (bits >= TAC__F32_INF) return NAN;
    memcpy(&most, &bits, sizeof most);
    return most;
}

static float read_scale(const void *msg, size_t at)
{
    float scale;
    memcpy(&scale, (const char *)msg + at / BLOCK * sizeof scale, sizeof scale);
    return scale;
}

static void encode_block(const tac__codec_kernels *k, char *q, const float *x,
                         size_t n, float scale, uint64_t key, uint64_t first)
{
    if (!(scale > 0))
        memset(q, 0, (n + 1) / 2);
    else if (key)
        k->f4_dither(q, x, scale, key, first, n);
    else
        k->f4_put(q, x, scale, n);
}

static void encode_fp4(const tac__codec_kernels *k, void *msg, size_t total,
                       size_t at, const float *x, size_t n, uint64_t key,
                       uint64_t first)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const float s = scale_for(k, x + i, m);
        memcpy((char *)msg + (at + i) / BLOCK * sizeof s, &s, sizeof s);
        encode_block(k, bytes_at(msg, total, at + i), x + i, m, s, key,
                     first + at + i);
    }
}

static void decode_fp4(const tac__codec_kernels *k, const void *msg,
                       size_t total, size_t at, float *x, size_t n)
{
    const char *q = (const char *)msg + sizeof(float) * blocks(total);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        k->f4_get(x + i, q + (at + i) / 2, read_scale(msg, at + i), m);
    }
}

static void add_fp4(const tac__codec_kernels *k, const void *msg, size_t total,
                    size_t at, float *acc, size_t n)
{
    const char *q = (const char *)msg + sizeof(float) * blocks(total);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        k->f4_add(acc + i, q + (at + i) / 2, read_scale(msg, at + i), m);
    }
}

const tac__wire tac__wire_fp4 = {"fp4",      256,        bytes_fp4,
                                 encode_fp4, decode_fp4, add_fp4};
