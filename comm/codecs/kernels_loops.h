/* kernels_loops.h: the loops over elements, for one instruction set each.
 *
 * The including file defines LANES, vec and, on one vector of LANES elements:
 *
 *     load, store                 floats
 *     splat, add, mul, divide     on vec
 *     half_in, half_out           f16, bytes of any alignment
 *     bf_in, bf_out               bf16, likewise
 *     byte_in, byte_out           int8; out rounds to nearest even and clamps
 *                                 to -127 .. 127
 *
 * A tail goes through a padded vector. What has no conversion in it is a plain
 * loop, which compilers vectorise. */
#include <string.h>

#include "codecs/kernels.h"

/* ---- plain loops ----------------------------------------------------------
 */

static uint32_t max_bits(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        u &= UINT32_C(0x7fffffff);
        most = u > most ? u : most;
    }
    return most;
}

static void prepare(float *restrict y, const float *restrict x, float by,
                    const float *restrict old, float scale, size_t n)
{
    if (!old)
        for (size_t i = 0; i < n; i++) y[i] = x[i] * by;
    else
        for (size_t i = 0; i < n; i++) y[i] = x[i] * by + old[i] * scale;
}

static void loss(float *next, const float *x, const float *sent, float scale,
                 size_t n)
{
    for (size_t i = 0; i < n; i++) next[i] = (x[i] - sent[i]) / scale;
}

static void axpy(float *restrict y, float by, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += by * x[i];
}

enum { SUMS = 16 };

static float dot(const float *x, const float *y, size_t n)
{
    float s[SUMS] = {0}, t = 0;
    size_t i = 0;
    for (; n - i >= SUMS; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) s[k] += x[i + k] * y[i + k];
    for (size_t k = 0; i < n; i++, k++) s[k] += x[i] * y[i];
    for (size_t k = 0; k < SUMS; k++) t += s[k];
    return t;
}

/* ---- one vector at a time -------------------------------------------------
 */

/* Runs `body` on whole vectors at x + i and h + i * width, and once more on a
 * padded copy of the tail. */
#define PUT(x, h, width, n, body)                          \
    do {                                                   \
        const float *v = (x);                              \
        char *out = (h);                                   \
        size_t left = (n);                                 \
        for (; left >= LANES; left -= LANES) {             \
            body;                                          \
            v += LANES;                                    \
            out += LANES * (width);                        \
        }                                                  \
        if (left > 0) {                                    \
            float padded[LANES] = {0};                     \
            char bytes[LANES * (width)], *const end = out; \
            memcpy(padded, v, left * sizeof *v);           \
            v = padded;                                    \
            out = bytes;                                   \
            body;                                          \
            memcpy(end, bytes, left *(width));             \
        }                                                  \
    } while (0)

#define GET(y, h, width, n, body)                      \
    do {                                               \
        float *v = (y);                                \
        const char *in = (h);                          \
        size_t left = (n);                             \
        for (; left >= LANES; left -= LANES) {         \
            body;                                      \
            v += LANES;                                \
            in += LANES * (width);                     \
        }                                              \
        if (left > 0) {                                \
            float padded[LANES] = {0}, *const end = v; \
            char bytes[LANES * (width)] = {0};         \
            memcpy(padded, v, left * sizeof *v);       \
            memcpy(bytes, in, left *(width));          \
            v = padded;                                \
            in = bytes;                                \
            body;                                      \
            memcpy(end, padded, left * sizeof *v);     \
        }                                              \
    } while (0)

static void f16_put(void *h, const float *x, float a, float b, size_t n)
{
    const vec va = splat(a), vb = splat(b);
    PUT(x, h, 2, n, half_out(out, mul(mul(load(v), va), vb)));
}

static void f16_get(float *y, const void *h, float a, float b, size_t n)
{
    const vec va = splat(a), vb = splat(b);
    GET(y, h, 2, n, store(v, mul(mul(half_in(in), va), vb)));
}

static void f16_add(float *y, const void *h, float a, float b, size_t n)
{
    const vec va = splat(a), vb = splat(b);
    GET(y, h, 2, n, store(v, add(load(v), mul(mul(half_in(in), va), vb))));
}

static void bf16_put(void *h, const float *x, size_t n)
{
    PUT(x, h, 2, n, bf_out(out, load(v)));
}

static void bf16_get(float *y, const void *h, size_t n)
{
    GET(y, h, 2, n, store(v, bf_in(in)));
}

static void bf16_add(float *y, const void *h, size_t n)
{
    GET(y, h, 2, n, store(v, add(load(v), bf_in(in))));
}

static void i8_put(void *q, const float *x, float scale, size_t n)
{
    const vec s = splat(scale);
    PUT(x, q, 1, n, byte_out(out, divide(load(v), s)));
}

static void i8_get(float *y, const void *q, float scale, size_t n)
{
    const vec s = splat(scale);
    GET(y, q, 1, n, store(v, mul(byte_in(in), s)));
}

static void i8_add(float *y, const void *q, float scale, size_t n)
{
    const vec s = splat(scale);
    GET(y, q, 1, n, store(v, add(load(v), mul(byte_in(in), s))));
}

/* ---- stochastic rounding --------------------------------------------------
 */

/* MurmurHash3's finaliser, with the key's halves before and within it; 24 bits
 * of it. 32-bit arithmetic, which every instruction set has. */
static inline float uniform(uint32_t low, uint32_t high, uint32_t element)
{
    uint32_t z = element * UINT32_C(0x9e3779b1) ^ low;
    z = (z ^ (z >> 16)) * UINT32_C(0x85ebca6b) + high;
    z = (z ^ (z >> 13)) * UINT32_C(0xc2b2ae35);
    return (float)(int32_t)((z ^ (z >> 16)) >> 8) * 0x1p-24f;
}

/* floor(v), and one more if the rest of v and u reach one: so a v near 127 is
 * not pushed up by the rounding of v + u. (v >= -128. Written so that compilers
 * vectorise it, which they don't with floorf.) */
static inline float dithered(float v, float u)
{
    const float low = (float)(int32_t)(v + 256.0f) - 256.0f;
    return low + (float)(int32_t)(v - low + u);
}

/* A block does not reach over a multiple of 2^32. */
static void dither(float *restrict y, const float *restrict x, float scale,
                   uint64_t key, uint64_t first, size_t n)
{
    const uint32_t low = (uint32_t)key, begin = (uint32_t)first;
    const uint32_t high = (uint32_t)(key >> 32) + (uint32_t)(first >> 32);
    for (size_t i = 0; i < n; i++)
        y[i] = dithered(x[i] / scale, uniform(low, high, begin + (uint32_t)i));
}

static void i8_dither(void *q, const float *x, float scale, uint64_t key,
                      uint64_t first, size_t n)
{
    enum { PART = 256 };
    float y[PART];
    for (size_t i = 0; i < n; i += PART) {
        const size_t m = n - i < PART ? n - i : PART;
        dither(y, x + i, scale, key, first + i, m);
        PUT(y, (char *)q + i, 1, m, byte_out(out, load(v)));
    }
}

#define TABLE(id)                                \
    const tac__codec_kernels tac__codec_##id = { \
        .name = #id,                             \
        .available = available,                  \
        .max_bits = max_bits,                    \
        .prepare = prepare,                      \
        .loss = loss,                            \
        .axpy = axpy,                            \
        .dot = dot,                              \
        .f16_put = f16_put,                      \
        .f16_get = f16_get,                      \
        .f16_add = f16_add,                      \
        .bf16_put = bf16_put,                    \
        .bf16_get = bf16_get,                    \
        .bf16_add = bf16_add,                    \
        .i8_put = i8_put,                        \
        .i8_get = i8_get,                        \
        .i8_add = i8_add,                        \
        .i8_dither = i8_dither,                  \
    }
