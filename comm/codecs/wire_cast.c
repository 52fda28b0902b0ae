/* wire_cast.c: fp16 and bf16 on the wire.
 *
 * fp16: a block of 1024 shares a power-of-two exponent, so that neither large
 * nor small magnitudes need a lucky scale. Message: n halves, then the
 * exponents, one int16 a block. bf16: n halves. */
#include <math.h>
#include <string.h>

#include "tacit/half.h"
#include "wire.h"

#define BLOCK ((size_t)1024)

static size_t bytes_fp16(size_t n)
{
    return 2 * n + 2 * ((n + BLOCK - 1) / BLOCK);
}

/* The exponent e for which the largest finite |x| * 2^-e is in [2^14, 2^15). */
static int16_t exponent_of(const float *x, size_t n)
{
    float most = 0;
    int e = 0;
    for (size_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);
        if (a <= 3.402823466e38f && a > most) most = a;
    }
    if (most > 0) (void)frexpf(most, &e);
    return (int16_t)(most > 0 ? e - 15 : 0);
}

static void encode_fp16(void *msg, size_t total, size_t at, const float *x,
                        size_t n, const tac__dither *dither, uint64_t first)
{
    (void)dither, (void)first;
    float y[1024];
    char *exponents = (char *)msg + 2 * total;
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        const int16_t e = exponent_of(x + k, m);
        for (size_t i = 0; i < m; i++) y[i] = ldexpf(x[k + i], -e);
        tac_f32_to_f16_n((uint16_t *)msg + at + k, y, m);
        memcpy(exponents + (at + k) / BLOCK * 2, &e, sizeof e);
    }
}

static void decode_fp16(const void *msg, size_t total, size_t at, float *x,
                        size_t n)
{
    const char *exponents = (const char *)msg + 2 * total;
    tac_f16_to_f32_n(x, (const uint16_t *)msg + at, n);
    for (size_t k = 0; k < n; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        int16_t e;
        memcpy(&e, exponents + (at + k) / BLOCK * 2, sizeof e);
        if (e == 0) continue;
        for (size_t i = 0; i < m; i++) x[k + i] = ldexpf(x[k + i], e);
    }
}

const tac__wire tac__wire_fp16 = {"fp16", 1024, bytes_fp16, encode_fp16,
                                  decode_fp16};

static size_t bytes_bf16(size_t n)
{
    return 2 * n;
}

static void encode_bf16(void *msg, size_t total, size_t at, const float *x,
                        size_t n, const tac__dither *dither, uint64_t first)
{
    (void)total, (void)dither, (void)first;
    tac_f32_to_bf16_n((uint16_t *)msg + at, x, n);
}

static void decode_bf16(const void *msg, size_t total, size_t at, float *x,
                        size_t n)
{
    (void)total;
    tac_bf16_to_f32_n(x, (const uint16_t *)msg + at, n);
}

const tac__wire tac__wire_bf16 = {"bf16", 1, bytes_bf16, encode_bf16,
                                  decode_bf16};
