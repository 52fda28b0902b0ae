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

/* The same numbers as float (what is tested) and double (the oracle's), and
 * their magnitudes, from which the oracle makes the error allowed. */
typedef struct triple {
    size_t n;
    float *f;
    double *d, *mag;
} triple;

static inline triple triple_make(size_t n)
{
    triple t = {n, guarded(n * sizeof(float)), guarded(n * sizeof(double)),
                guarded(n * sizeof(double))};
    return t;
}

static inline void triple_set(triple *t, size_t i, float x)
{
    t->f[i] = x;
    t->d[i] = (double)x;
    t->mag[i] = fabs((double)x);
}

static inline triple triple_poison(size_t n)
{
    triple t = triple_make(n);
    for (size_t i = 0; i < n; ++i) triple_set(&t, i, NAN);
    return t;
}

/* Splitmix64: cheap, as sanitizer builds fill many arrays. In [-1, 1). */
static inline float random_unit(uint64_t stream, uint64_t i)
{
    uint64_t z = (stream << 32 | i) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
}

static inline triple triple_random(size_t n, uint64_t stream)
{
    triple t = triple_make(n);
    for (size_t i = 0; i < n; ++i) triple_set(&t, i, random_unit(stream, i));
    return t;
}

/* -2 to 2 in steps of 1: full of ties and zeros. */
static inline triple triple_coarse(size_t n, uint64_t stream)
{
    triple t = triple_make(n);
    for (size_t i = 0; i < n; ++i)
        triple_set(&t, i, rintf(2 * random_unit(stream, i)));
    return t;
}

static inline void triple_free(triple *t)
{
    guarded_free(t->f);
    guarded_free(t->d);
    guarded_free(t->mag);
}

static inline void triple_free_all(triple *ts, size_t count)
{
    for (size_t i = 0; i < count; ++i) triple_free(&ts[i]);
}

/* |f - d| <= tol * mag everywhere, where d and mag are the oracle's; tol 0:
 * equal, whatever mag is. */
static inline int triple_near(const triple *t, double tol, const char *what)
{
    for (size_t i = 0; i < t->n; ++i) {
        const double got = (double)t->f[i], want = t->d[i];
        const double allowed = tol > 0 ? tol * t->mag[i] + 1e-37 : 0;
        if (fabs(got - want) <= allowed) continue;
        if (isnan(got) && isnan(want)) continue;
        return CHECK_MSG(0,
                         "%s: element %zu of %zu is %.9g, not %.9g (%.3g "
                         "allowed)",
                         what, i, t->n, got, want, allowed);
    }
    return CHECK(1);
}

static inline int same_bits(const float *a, const float *b, size_t n,
                            const char *what)
{
    const int same = n == 0 || memcmp(a, b, n * sizeof *a) == 0;
    return CHECK_MSG(same, "%s: two runs differ", what);
}

#endif
