/* wire_int8.c: int8 on the wire: blocks of 256 share a scale, max|x| / 127.
 *
 * Message: the scales (f32), then n bytes. A block whose largest magnitude is
 * below 127 * 2^-150 is sent as zeros. Stochastic rounding adds a uniform
 * number of [0, 1) keyed by (key, element) and rounds down. */
#include <math.h>
#include <string.h>

#include "wire.h"

#define BLOCK ((size_t)256)
#define MOST  3.402823466e38f

static size_t blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t bytes_int8(size_t n)
{
    return n + sizeof(float) * blocks(n);
}

static char *bytes_at(void *msg, size_t total, size_t at)
{
    return (char *)msg + sizeof(float) * blocks(total) + at;
}

/* NaN if the block has an infinity or a NaN. 127 times the scale is finite. */
static float scale_for(const tac__codec_kernels *k, const float *x, size_t n)
{
    const uint32_t bits = k->max_bits(x, n);
    float most;
    if (bits >= TAC__F32_INF) return NAN;
    memcpy(&most, &bits, sizeof most);
    const float scale = most / 127.0f;
    return 127.0f * scale <= MOST ? scale : nextafterf(scale, 0.0f);
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
        memset(q, 0, n);
    else if (key)
        k->i8_dither(q, x, scale, key, first, n);
    else
        k->i8_put(q, x, scale, n);
}

static void encode_int8(const tac__codec_kernels *k, void *msg, size_t total,
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

static void decode_int8(const tac__codec_kernels *k, const void *msg,
                        size_t total, size_t at, float *x, size_t n)
{
    const char *q = (const char *)msg + sizeof(float) * blocks(total);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        k->i8_get(x + i, q + at + i, read_scale(msg, at + i), m);
    }
}

static void add_int8(const tac__codec_kernels *k, const void *msg, size_t total,
                     size_t at, float *acc, size_t n)
{
    const char *q = (const char *)msg + sizeof(float) * blocks(total);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        k->i8_add(acc + i, q + at + i, read_scale(msg, at + i), m);
    }
}

const tac__wire tac__wire_int8 = {"int8",      256,         bytes_int8,
                                  encode_int8, decode_int8, add_int8};
