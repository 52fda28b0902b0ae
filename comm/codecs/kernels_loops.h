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

/* ---- nibbles --------------------------------------------------------------
 */

/* Exponents of powers of two begin here: 2^-6 is code 1, 1 is code 7. */
#define F4_BIAS 120u

static inline uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* `carry` is added below the exponent: half an ulp of it for rounding. Below
 * 2^-6 the choice is between that and 0: `small` says whether it is reached. */
static inline uint8_t f4_code(float v, uint32_t carry, int small)
{
    const uint32_t u = bits_of(v), sign = u >> 31 << 3;
    const int32_t k =
        (int32_t)(((u & 0x7fffffffu) + carry) >> 23) - (int32_t)F4_BIAS;
    const int32_t least = small ? 1 : 0, code = k > least ? k : least;
    return (uint8_t)(code ? sign | (uint32_t)code : 0);
}

static inline float f4_value(uint32_t code)
{
    const uint32_t k = code & 7u;
    const uint32_t u = (k ? (k + F4_BIAS) << 23 : 0u) | (code & 8u) << 28;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float magnitude(float x)
{
    return x < 0 ? -x : x;
}

static void f4_pack(uint8_t *q, const uint8_t *code, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        q[i] = (uint8_t)(code[2 * i] | code[2 * i + 1] << 4);
    if (n % 2) q[n / 2] = code[n - 1];
}

enum { F4_PART = 256 };

static void f4_put(void *q, const float *x, float scale, size_t n)
{
    uint8_t code[F4_PART];
    for (size_t at = 0; at < n; at += F4_PART) {
        const size_t m = n - at < F4_PART ? n - at : F4_PART;
        for (size_t i = 0; i < m; i++) {
            const float v = x[at + i] / scale;
            code[i] = f4_code(v, 0x400000u, magnitude(v) >= 0x1p-7f);
        }
        f4_pack((uint8_t *)q + at / 2, code, m);
    }
}

/* Random bits below the exponent carry into it with the probability of the rest
 * behind it. */
static void f4_dither(void *q, const float *x, float scale, uint64_t key,
                      uint64_t first, size_t n)
{
    uint8_t code[F4_PART];
    const uint32_t low = (uint32_t)key, begin = (uint32_t)first;
    const uint32_t high = (uint32_t)(key >> 32) + (uint32_t)(first >> 32);
    for (size_t at = 0; at < n; at += F4_PART) {
        const size_t m = n - at < F4_PART ? n - at : F4_PART;
        for (size_t i = 0; i < m; i++) {
            const float v = x[at + i] / scale, a = magnitude(v);
            const float r = uniform(low, high, begin + (uint32_t)(at + i));
            const int small = a >= 0x1p-6f || r < a * 64.0f;
            const uint32_t carry = (uint32_t)(int32_t)(r * 0x1p23f);
            code[i] = f4_code(v, a >= 0x1p-6f ? carry : 0u, small);
        }
        f4_pack((uint8_t *)q + at / 2, code, m);
    }
}

static void f4_get(float *restrict y, const void *q, float scale, size_t n)
{
    const uint8_t *b = q;
    for (size_t i = 0; i < n / 2; i++) {
        y[2 * i] = f4_value(b[i]) * scale;
        y[2 * i + 1] = f4_value((uint32_t)b[i] >> 4) * scale;
    }
    if (n % 2) y[n - 1] = f4_value(b[n / 2]) * scale;
}

static void f4_add(float *restrict y, const void *q, float scale, size_t n)
{
    const uint8_t *b = q;
    for (size_t i = 0; i < n / 2; i++) {
        y[2 * i] += f4_value(b[i]) * scale;
        y[2 * i + 1] += f4_value((uint32_t)b[i] >> 4) * scale;
    }
    if (n % 2) y[n - 1] += f4_value(b[n / 2]) * scale;
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
        .f4_put = f4_put,                        \
        .f4_get = f4_get,                        \
        .f4_add = f4_add,                        \
        .f4_dither = f4_dither,                  \
    }
