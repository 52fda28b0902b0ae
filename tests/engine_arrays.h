/* engine_arrays.h: guarded arrays of any float type, seen as doubles, for
 * kernel tests that run over all types of a device. */
#ifndef TAC_ENGINE_ARRAYS_H
#define TAC_ENGINE_ARRAYS_H

#include "comm_elements.h"
#include "kernel_check.h"

typedef struct array {
    tac_dtype t;
    size_t n;
    void *p;
} array;

static inline double at(const array *a, size_t i)
{
    return get(a->p, a->t, i);
}

/* Outputs start as not-a-numbers, in every type. */
static inline array array_poison(tac_dtype t, size_t n)
{
    array a = {t, n, guarded(n * tac_dtype_size(t))};
    for (size_t i = 0; i < n; ++i) put(a.p, t, i, (double)NAN);
    return a;
}

/* offset + scale * [-1, 1), rounded to the type. */
static inline array array_random(tac_dtype t, size_t n, uint64_t stream,
                                 double offset, double scale)
{
    array a = array_poison(t, n);
    for (size_t i = 0; i < n; ++i)
        put(a.p, t, i, offset + scale * (double)random_unit(stream, i));
    return a;
}

static inline array array_copy(const array *a)
{
    array b = array_poison(a->t, a->n);
    if (a->n > 0) memcpy(b.p, a->p, a->n * tac_dtype_size(a->t));
    return b;
}

static inline void arrays_free(array *const *list, size_t count)
{
    for (size_t i = 0; i < count; ++i) guarded_free(list[i]->p);
}

#define ARRAYS_FREE(...)                  \
    arrays_free((array *[]){__VA_ARGS__}, \
                sizeof((array *[]){__VA_ARGS__}) / sizeof(array *))

/* The type that t is accumulated in. */
static inline tac_dtype wide(tac_dtype t)
{
    return t == TAC_F64 ? TAC_F64 : TAC_F32;
}

/* Half a unit in the last place of t, relative; of f16's subnormals absolute.
 */
static inline double one_rounding(tac_dtype t, double v)
{
    switch (t) {
    case TAC_F64: return fabs(v) * 0x1p-53;
    case TAC_F16: return fabs(v) * 0x1p-11 + 0x1p-25;
    case TAC_BF16: return fabs(v) * 0x1p-8;
    default: return fabs(v) * 0x1p-24;
    }
}

/* 16 units of the precision that t is computed in; in f64 the oracle's own
 * errors are as large, which grow with the sizes. */
static inline double working(tac_dtype t)
{
    return t == TAC_F64 ? 0x1p-44 : 0x1p-20;
}

/* |a[i] - want| <= working precision of `mag`, plus one rounding to the
 * array's type. */
static inline int array_near(const array *a, size_t i, double want, double mag,
                             tac_dtype computed, const char *what)
{
    const double allowed =
        working(computed) * mag + 1.001 * one_rounding(a->t, want) + 1e-300;
    const double got = at(a, i);

    if (fabs(got - want) <= allowed) return CHECK(1);
    return CHECK_MSG(0, "%s [%zu]: %.9g, not %.9g (%.3g allowed)", what, i, got,
                     want, allowed);
}

static inline int array_same(const array *a, const array *b, const char *what)
{
    const size_t bytes = a->n * tac_dtype_size(a->t);
    const int same =
        a->n == b->n && (bytes == 0 || memcmp(a->p, b->p, bytes) == 0);
    return CHECK_MSG(same, "%s: bits differ", what);
}

#endif
