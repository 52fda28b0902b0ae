/* cast.c: conversions between f32, f64, f16 and bf16, to nearest.
 *
 * Cost: one pass. The 16-bit types are reached through f32: what is added to,
 * and what comes from f64, passes piece by piece through a buffer that stays
 * in the first-level cache. From f64 the first of the two roundings is to odd,
 * so that the second gives what one rounding would. */
#include "cpu/cast.h"

#include <string.h>

#include "tacit/half.h"
#include "tacit/pool.h"

enum {
    GRAIN = 16384, /* elements a thread should get at least */
    PIECE = 1024,
};

typedef struct casting {
    tac_dtype from, to;
    const char *x;
    char *y;
    int accumulate;
} casting;

/* To a neighbour in f32, of which the odd one is taken unless x is in f32: no
 * tie of a shorter type is made or lost. */
static float to_odd(double x)
{
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((double)f == x || x != x || (u & 1)) return f;
    const double magnitude = x < 0 ? -x : x;
    const double rounded = f < 0 ? -(double)f : (double)f;
    u = rounded < magnitude ? u + 1 : u - 1;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* x as f32, n of them, in `to`; `to_16`: for rounding to a 16-bit type. */
static void load(const casting *c, size_t at, size_t n, int to_16, float *to)
{
    const void *x = c->x + at * tac_dtype_size(c->from);
    const double *wide = x;
    if (c->from == TAC_F16)
        tac_f16_to_f32_n(to, x, n);
    else if (c->from == TAC_BF16)
        tac_bf16_to_f32_n(to, x, n);
    else if (c->from == TAC_F32)
        memcpy(to, x, n * sizeof *to);
    else if (to_16)
        for (size_t i = 0; i < n; ++i) to[i] = to_odd(wide[i]);
    else
        for (size_t i = 0; i < n; ++i) to[i] = (float)wide[i];
}

static void store_f32(float *y, const float *x, size_t n, int accumulate)
{
    if (!accumulate)
        memcpy(y, x, n * sizeof *y);
    else
        for (size_t i = 0; i < n; ++i) y[i] += x[i];
}

static void store_f64(double *y, const float *x, size_t n, int accumulate)
{
    if (!accumulate)
        for (size_t i = 0; i < n; ++i) y[i] = (double)x[i];
    else
        for (size_t i = 0; i < n; ++i) y[i] += (double)x[i];
}

static void store(const casting *c, size_t at, size_t n, const float *x)
{
    void *y = c->y + at * tac_dtype_size(c->to);
    if (c->to == TAC_F16)
        tac_f32_to_f16_n(y, x, n);
    else if (c->to == TAC_BF16)
        tac_f32_to_bf16_n(y, x, n);
    else if (c->to == TAC_F32)
        store_f32(y, x, n, c->accumulate);
    else
        store_f64(y, x, n, c->accumulate);
}

static void cast_pieces(void *arg, size_t begin, size_t end, int part)
{
    const casting *c = arg;
    const int to_16 = c->to == TAC_F16 || c->to == TAC_BF16;
    float piece[PIECE];
    (void)part;
    for (size_t at = begin; at < end; at += PIECE) {
        const size_t n = end - at < PIECE ? end - at : PIECE;
        load(c, at, n, to_16, piece);
        store(c, at, n, piece);
    }
}

/* Without a buffer between: from or to f32, overwriting. */
static void cast_directly(void *arg, size_t begin, size_t end, int part)
{
    const casting *c = arg;
    const size_t n = end - begin;
    (void)part;
    if (c->from == TAC_F32)
        store(c, begin, n, (const float *)(const void *)c->x + begin);
    else
        load(c, begin, n, 0, (float *)(void *)c->y + begin);
}

static void copy_same(void *arg, size_t begin, size_t end, int part)
{
    const casting *c = arg;
    const size_t size = tac_dtype_size(c->from);
    (void)part;
    memcpy(c->y + begin * size, c->x + begin * size, (end - begin) * size);
}

static void add_f64(void *arg, size_t begin, size_t end, int part)
{
    const casting *c = arg;
    const double *x = (const double *)(const void *)c->x;
    double *y = (double *)(void *)c->y;
    float *narrow = (float *)(void *)c->y;
    (void)part;
    if (c->to == TAC_F64)
        for (size_t i = begin; i < end; ++i) y[i] += x[i];
    else
        for (size_t i = begin; i < end; ++i)
            narrow[i] = (float)((double)narrow[i] + x[i]);
}

static tac_pool_fn *choose(const casting *c)
{
    if (c->accumulate && c->from == TAC_F64) return add_f64;
    if (!c->accumulate && c->from == c->to) return copy_same;
    if (c->from == TAC_F32 || (c->to == TAC_F32 && !c->accumulate))
        return cast_directly;
    return cast_pieces;
}

tac_status tac__cast(const tac_kctx *kc, size_t n, tac_dtype from,
                     const void *x, tac_dtype to, void *y, int accumulate)
{
    casting c = {from, to, x, y, accumulate};
    if (!tac_dtype_is_float(from) || !tac_dtype_is_float(to))
        return tac_fail(kc->ctx, TAC_ERR_ARG,
                        "can't cast %s to %s; both must be f32, f64, f16 or "
                        "bf16",
                        tac_dtype_name(from), tac_dtype_name(to));
    if (accumulate && to != TAC_F32 && to != TAC_F64)
        return tac_fail(kc->ctx, TAC_ERR_ARG,
                        "a cast can't add to %s; add to f32 or f64, or "
                        "overwrite",
                        tac_dtype_name(to));
    tac_pool_for(kc->pool, n, GRAIN, choose(&c), &c);
    return TAC_OK;
}
