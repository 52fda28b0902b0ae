/* wire_cast.c: fp16 and bf16 on the wire.
 *
 * fp16: a block of 1024 shares a power-of-two exponent e, so that neither large
 * nor small magnitudes need a lucky scale: x * 2^-e is rounded to a half, and a
 * half times 2^e is exact in f32. Values within 2^-39 of the block's largest
 * survive, those within 2^-29 with all 11 bits. Message: n halves, then the
 * exponents, one int16 a block. Magnitudes from 2^128 (1 - 2^-12) up round to
 * infinity, as they do in bf16 (from 2^128 (1 - 2^-9)). bf16: n halves. */
#include <string.h>

#include "wire.h"

#define BLOCK ((size_t)1024)

static size_t blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t bytes_fp16(size_t n)
{
    return 2 * n + 2 * blocks(n);
}

/* ---- powers of two --------------------------------------------------------
 */

/* 2^e, -126 <= e <= 127 */
static float power(int e)
{
    const uint32_t u = (uint32_t)(e + 127) << 23;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* 2^e as a product of two floats, -190 <= e <= 191: multiplying by one after
 * the other is exact wherever the result is a float. */
typedef struct factors {
    float a, b;
} factors;

static factors split(int e)
{
    if (e > 127) return (factors){power(64), power(e - 64)};
    if (e < -126) return (factors){power(-64), power(e + 64)};
    return (factors){power(e), 1.0f};
}

/* The bits of the largest finite magnitude. */
static uint32_t most_finite(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        u &= UINT32_C(0x7fffffff);
        if (u < TAC__F32_INF && u > most) most = u;
    }
    return most;
}

/* The e for which a magnitude times 2^-e lies in [2^14, 2^15); 0 for 0. */
static int exponent_of(uint32_t bits)
{
    int e = (int)(bits >> 23) - 127 - 14;
    if (bits == 0) return 0;
    if (bits >= UINT32_C(1) << 23) return e;
    e = -126 - 14;
    for (; bits < UINT32_C(1) << 23; bits <<= 1) e--; /* a subnormal */
    return e;
}

/* ---- fp16 -----------------------------------------------------------------
 */

static int exponent_for(const tac__codec_kernels *k, const float *x, size_t n)
{
    uint32_t most = k->max_bits(x, n);
    if (most >= TAC__F32_INF) most = most_finite(x, n);
    return exponent_of(most);
}

static char *exponent_at(void *msg, size_t total, size_t at)
{
    return (char *)msg + 2 * total + at / BLOCK * sizeof(int16_t);
}

static factors read_scale(const void *msg, size_t total, size_t at)
{
    int16_t e;
    memcpy(&e, (const char *)msg + 2 * total + at / BLOCK * sizeof e, sizeof e);
    /* Only a damaged message has others. */
    return split(e < -190 ? -190 : e > 127 ? 127 : e);
}

static void encode_fp16(const tac__codec_kernels *k, void *msg, size_t total,
                        size_t at, const float *x, size_t n, uint64_t key,
                        uint64_t first)
{
    (void)key, (void)first;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const int e = exponent_for(k, x + i, m);
        const factors f = split(-e);
        const int16_t kept = (int16_t)e;
        k->f16_put((char *)msg + 2 * (at + i), x + i, f.a, f.b, m);
        memcpy(exponent_at(msg, total, at + i), &kept, sizeof kept);
    }
}

static void decode_fp16(const tac__codec_kernels *k, const void *msg,
                        size_t total, size_t at, float *x, size_t n)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const factors f = read_scale(msg, total, at + i);
        k->f16_get(x + i, (const char *)msg + 2 * (at + i), f.a, f.b, m);
    }
}

static void add_fp16(const tac__codec_kernels *k, const void *msg, size_t total,
                     size_t at, float *acc, size_t n)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const factors f = read_scale(msg, total, at + i);
        k->f16_add(acc + i, (const char *)msg + 2 * (at + i), f.a, f.b, m);
    }
}

const tac__wire tac__wire_fp16 = {"fp16",      1024,        bytes_fp16,
                                  encode_fp16, decode_fp16, add_fp16};

/* ---- bf16 -----------------------------------------------------------------
 */

static size_t bytes_bf16(size_t n)
{
    return 2 * n;
}

static void encode_bf16(const tac__codec_kernels *k, void *msg, size_t total,
                        size_t at, const float *x, size_t n, uint64_t key,
                        uint64_t first)
{
    (void)total, (void)key, (void)first;
    k->bf16_put((char *)msg + 2 * at, x, n);
}

static void decode_bf16(const tac__codec_kernels *k, const void *msg,
                        size_t total, size_t at, float *x, size_t n)
{
    (void)total;
    k->bf16_get(x, (const char *)msg + 2 * at, n);
}

static void add_bf16(const tac__codec_kernels *k, const void *msg, size_t total,
                     size_t at, float *acc, size_t n)
{
    (void)total;
    k->bf16_add(acc, (const char *)msg + 2 * at, n);
}

const tac__wire tac__wire_bf16 = {"bf16",      1,           bytes_bf16,
                                  encode_bf16, decode_bf16, add_bf16};
