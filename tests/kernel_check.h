/* kernel_check.h: arrays with guards, random contents and comparisons for the
 * kernel batteries.
 *
 * An array lies between two guard zones whose bytes are checked when it is
 * freed, so a write past either end is found. Outputs start as NaN. */
#ifndef TAC_KERNEL_CHECK_H
#define TAC_KERNEL_CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tac_check.h"
#include "tacit/half.h"
#include "tacit/kernels.h"

enum { GUARD = 64 };

/* Another byte for each array, so that guards copied from one to another show.
 */
static inline unsigned char guard_byte(const unsigned char *p)
{
    return (unsigned char)((uintptr_t)p / GUARD % 251 + 1);
}

static inline void *guarded(size_t bytes)
{
    const size_t whole = (bytes + 3 * GUARD + GUARD - 1) / GUARD * GUARD;
    unsigned char *p = aligned_alloc(GUARD, whole);
    if (!p) exit(2);
    memset(p, guard_byte(p), whole);
    memcpy(p, &bytes, sizeof bytes);
    return p + GUARD;
}

static inline void guarded_free(void *array)
{
    unsigned char *p = (unsigned char *)array - GUARD;
    size_t bytes, bad = 0;
    memcpy(&bytes, p, sizeof bytes);
    for (size_t i = sizeof bytes; i < GUARD; ++i) bad += p[i] != guard_byte(p);
    for (size_t i = 0; i < GUARD; ++i)
        bad += p[GUARD + bytes + i] != guard_byte(p);
    CHECK_MSG(bad == 0, "%zu bytes written outside an array of %zu", bad,
              bytes);
    free(p);
}

/* The same numbers as f32, f16 or bf16 (what is tested) and double (the
 * oracle's), and their magnitudes, from which the oracle makes the error
 * allowed. f is the tested array if that is f32, else NULL. */
typedef struct triple {
    tac_dtype type;
    size_t n;
    void *t;
    float *f;
    double *d, *mag;
} triple;

static inline triple triple_make_as(tac_dtype type, size_t n)
{
    triple t = {.type = type,
                .n = n,
                .t = guarded(n * tac_dtype_size(type)),
                .d = guarded(n * sizeof(double)),
                .mag = guarded(n * sizeof(double))};
    if (type == TAC_F32) t.f = t.t;
    return t;
}

static inline triple triple_make(size_t n)
{
    return triple_make_as(TAC_F32, n);
}

static inline float half_value(tac_dtype type, uint16_t bits)
{
    return type == TAC_F16 ? tac_f16_to_f32(bits) : tac_bf16_to_f32(bits);
}

/* The tested value. */
static inline float triple_get(const triple *t, size_t i)
{
    return t->f ? t->f[i] : half_value(t->type, ((const uint16_t *)t->t)[i]);
}

/* Rounded to the tested type, for the oracle too. */
static inline void triple_set(triple *t, size_t i, float x)
{
    if (t->f)
        t->f[i] = x;
    else
        ((uint16_t *)t->t)[i] =
            t->type == TAC_F16 ? tac_f32_to_f16(x) : tac_f32_to_bf16(x);
    t->d[i] = (double)triple_get(t, i);
    t->mag[i] = fabs(t->d[i]);
}

static inline triple triple_poison_as(tac_dtype type, size_t n)
{
    triple t = triple_make_as(type, n);
    for (size_t i = 0; i < n; ++i) triple_set(&t, i, NAN);
    return t;
}

static inline triple triple_poison(size_t n)
{
    return triple_poison_as(TAC_F32, n);
}

/* Splitmix64: cheap, as sanitizer builds fill many arrays. In [-1, 1). */
static inline float random_unit(uint64_t stream, uint64_t i)
{
    uint64_t z = (stream << 32 | i) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
}

static inline triple triple_random_as(tac_dtype type, size_t n, uint64_t stream)
{
    triple t = triple_make_as(type, n);
    for (size_t i = 0; i < n; ++i) triple_set(&t, i, random_unit(stream, i));
    return t;
}

static inline triple triple_random(size_t n, uint64_t stream)
{
    return triple_random_as(TAC_F32, n, stream);
}

/* -2 to 2 in steps of 1: full of ties and zeros. */
static inline triple triple_coarse_as(tac_dtype type, size_t n, uint64_t stream)
{
    triple t = triple_make_as(type, n);
    for (size_t i = 0; i < n; ++i)
        triple_set(&t, i, rintf(2 * random_unit(stream, i)));
    return t;
}

static inline void triple_free(triple *t)
{
    guarded_free(t->t);
    guarded_free(t->d);
    guarded_free(t->mag);
}

static inline void triple_free_all(triple *ts, size_t count)
{
    for (size_t i = 0; i < count; ++i) triple_free(&ts[i]);
}

/* Is `bits` what some value from low to high becomes, rounded to nearest, ties
 * to even? By the definition: the values that become `bits` reach to halfway to
 * both neighbours. */
static inline int half_rounds_to(tac_dtype type, uint16_t bits, double low,
                                 double high)
{
    const uint16_t a = bits & 0x7fff, top = type == TAC_F16 ? 0x7c00 : 0x7f80;
    const double x = (double)half_value(type, a);
    const double below = a ? (double)half_value(type, (uint16_t)(a - 1)) : 0;
    const double before =
        a > 1 ? (double)half_value(type, (uint16_t)(a - 2)) : 0;
    if (bits & 0x8000) { /* mirrored */
        const double swap = -low;
        low = -high;
        high = swap;
    }
    if (a > top) return 0;
    if (a == top) return high >= below + (below - before) / 2;
    const double above = a + 1 < top
                             ? (double)half_value(type, (uint16_t)(a + 1))
                             : x + (x - below);
    const double least = a ? (x + below) / 2 : -(above / 2);
    const double most = (x + above) / 2;
    const int even = (a & 1) == 0;
    return even ? high >= least && low <= most : high > least && low < most;
}

static inline int triple_is_near(const triple *t, size_t i, double tol)
{
    const double got = (double)triple_get(t, i), want = t->d[i];
    const double allowed = tol > 0 ? tol * t->mag[i] + 1e-37 : 0;
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (t->f) return fabs(got - want) <= allowed || got == want;
    return half_rounds_to(t->type, ((const uint16_t *)t->t)[i], want - allowed,
                          want + allowed);
}

/* |f - d| <= tol * mag everywhere, where d and mag are the oracle's; tol 0:
 * equal, whatever mag is. In 16 bits: one rounding of a number as near as that;
 * tol 0: the rounded d. */
static inline int triple_near(const triple *t, double tol, const char *what)
{
    for (size_t i = 0; i < t->n; ++i) {
        if (triple_is_near(t, i, tol)) continue;
        return CHECK_MSG(0,
                         "%s: element %zu of %zu is %.9g, not %.9g (%s, %.3g "
                         "allowed)",
                         what, i, t->n, (double)triple_get(t, i), t->d[i],
                         tac_dtype_name(t->type), tol * t->mag[i]);
    }
    return CHECK(1);
}

static inline int triple_same(const triple *a, const triple *b,
                              const char *what)
{
    const size_t bytes = a->n * tac_dtype_size(a->type);
    const int same = bytes == 0 || memcmp(a->t, b->t, bytes) == 0;
    return CHECK_MSG(same, "%s: two runs differ", what);
}

static inline int same_bits(const float *a, const float *b, size_t n,
                            const char *what)
{
    const int same = n == 0 || memcmp(a, b, n * sizeof *a) == 0;
    return CHECK_MSG(same, "%s: two runs differ", what);
}

#endif
