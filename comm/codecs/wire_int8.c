/* wire_int8.c: int8 on the wire: blocks of 256 share a scale, max|x| / 127.
 *
 * Message: the scales (f32), then n bytes. Stochastic rounding adds a uniform
 * number of [0, 1) keyed by (seed, step, element) and rounds down. */
#include <math.h>
#include <string.h>

#include "wire.h"

#define BLOCK ((size_t)256)

static size_t blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t bytes_int8(size_t n)
{
    return n + sizeof(float) * blocks(n);
}

/* splitmix64's finaliser over the key; 24 bits of it. */
static float uniform(const tac__dither *d, uint64_t element)
{
    uint64_t z = d->seed * UINT64_C(0x9e3779b97f4a7c15) ^
                 d->step * UINT64_C(0xd1b54a32d192ed03) ^
                 element * UINT64_C(0x8cb92ba72f3d8dd7);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (float)((z ^ (z >> 31)) >> 40) * 0x1p-24f;
}

/* NaN if the block has an infinity or a NaN. */
static float scale_of(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);
        if (!(a <= 3.402823466e38f)) return NAN;
        if (a > most) most = a;
    }
    return most / 127.0f;
}

static void encode_block(signed char *q, const float *x, size_t n, float scale,
                         const tac__dither *d, uint64_t first)
{
    const int dithered = d && d->seed != 0;
    for (size_t i = 0; i < n; i++) {
        float v = scale > 0 ? x[i] / scale : 0.0f;
        v = dithered ? floorf(v + uniform(d, first + i)) : nearbyintf(v);
        q[i] = (signed char)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
    }
}

static void encode_int8(void *msg, size_t total, size_t at, const float *x,
                        size_t n, const tac__dither *dither, uint64_t first)
{
    char *scales = msg;
    signed char *q = (signed char *)msg + sizeof(float) * blocks(total);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        const float s = scale_of(x + k, m);
        memcpy(scales + (at + k) / BLOCK * sizeof s, &s, sizeof s);
        encode_block(q + at + k, x + k, m, s, dither, first + at + k);
    }
}

static void decode_int8(const void *msg, size_t total, size_t at, float *x,
                        size_t n)
{
    const char *scales = msg;
    const signed char *q =
        (const signed char *)msg + sizeof(float) * blocks(total);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        float s;
        memcpy(&s, scales + (at + k) / BLOCK * sizeof s, sizeof s);
        for (size_t i = 0; i < m; i++) x[k + i] = (float)q[at + k + i] * s;
    }
}

const tac__wire tac__wire_int8 = {"int8", 256, bytes_int8, encode_int8,
                                  decode_int8};
