/* engine_half_cast.c: the cast kernel, all 65536 values of both 16-bit types,
 * every pair of types, ties, overflow, NaN; and refusals. */
#include "kernel_check.h"

#include <stdio.h>

#include "tacit/pool.h"

enum { ALL = 65536, TYPES = 4 };

static const tac_dtype types[TYPES] = {TAC_F32, TAC_F64, TAC_F16, TAC_BF16};
static const tac_dtype halves[2] = {TAC_F16, TAC_BF16};

typedef struct rig {
    tac_device *dev;
    const tac_kernels *k;
    tac_kctx kc;
} rig;

static void cast(const rig *r, size_t n, tac_dtype from, const void *x,
                 tac_dtype to, void *y)
{
    CHECK_OK(r->k->cast(&r->kc, n, from, x, to, y, 0));
}

static int is_nan(tac_dtype t, unsigned h)
{
    return (h & 0x7fff) > (t == TAC_F16 ? 0x7c00 : 0x7f80);
}

/* The same value, by the definition of the format. */
static double value_of(tac_dtype t, unsigned h)
{
    const int digits = t == TAC_F16 ? 10 : 7, bias = t == TAC_F16 ? 15 : 127;
    const int exponent = (int)(h & 0x7fff) >> digits;
    const double m = (double)(h & ((1u << digits) - 1));
    const double one = ldexp(1, digits);
    const double x = exponent ? ldexp(one + m, exponent - bias - digits)
                              : ldexp(m, 1 - bias - digits);
    if ((h & 0x7fff) == (t == TAC_F16 ? 0x7c00 : 0x7f80))
        return h & 0x8000 ? (double)-INFINITY : (double)INFINITY;
    return h & 0x8000 ? -x : x;
}

/* Up to f32 and f64 and back: the same bits; NaN stays one, with its payload,
 * and is quiet. */
static void all_values(const rig *r, tac_dtype t)
{
    uint16_t *h = guarded(ALL * sizeof *h), *back = guarded(ALL * sizeof *h);
    float *f = guarded(ALL * sizeof *f);
    double *d = guarded(ALL * sizeof *d);
    const unsigned quiet = t == TAC_F16 ? 0x200 : 0x40;
    for (unsigned i = 0; i < ALL; ++i) h[i] = (uint16_t)i;
    cast(r, ALL, t, h, TAC_F32, f);
    cast(r, ALL, t, h, TAC_F64, d);
    long wrong = 0;
    for (unsigned i = 0; i < ALL; ++i) {
        const double want = value_of(t, i);
        if (is_nan(t, i))
            wrong += !isnan(f[i]) || !isnan(d[i]);
        else
            wrong += (double)f[i] != want || d[i] != want ||
                     !signbit(f[i]) != !signbit(want);
    }
    CHECK_EQ(wrong, 0);
    for (int wide = 0; wide < 2; ++wide) {
        memset(back, 0xee, ALL * sizeof *back);
        cast(r, ALL, wide ? TAC_F64 : TAC_F32,
             wide ? (const void *)d : (const void *)f, t, back);
        for (unsigned i = 0; i < ALL; ++i)
            wrong += back[i] != (is_nan(t, i) ? i | quiet : i);
    }
    CHECK_EQ(wrong, 0);
    guarded_free(h);
    guarded_free(back);
    guarded_free(f);
    guarded_free(d);
}

/* Every tie between neighbours goes to the even one; a hair (in f64, below
 * what f32 can tell) to either side of it does not. */
static void ties(const rig *r, tac_dtype t)
{
    const unsigned top = t == TAC_F16 ? 0x7c00 : 0x7f80;
    double *x = guarded(3 * top * sizeof *x);
    uint16_t *h = guarded(3 * top * sizeof *h);
    long wrong = 0;
    for (unsigned i = 0; i < top; ++i) {
        const double low = value_of(t, i);
        const double step = i ? low - value_of(t, i - 1) : value_of(t, 1);
        const double high = i + 1 < top ? value_of(t, i + 1) : low + step;
        const double tie = (low + high) / 2;
        x[3 * i] = tie;
        x[3 * i + 1] = nextafter(tie, 0);
        x[3 * i + 2] = nextafter(tie, (double)INFINITY);
    }
    for (int sign = 0; sign < 2; ++sign) {
        cast(r, 3 * top, TAC_F64, x, t, h);
        for (unsigned i = 0; i < top; ++i) {
            const unsigned s = sign ? 0x8000 : 0;
            wrong += h[3 * i] != (s | (i + (i & 1)));
            wrong += h[3 * i + 1] != (s | i);
            wrong += h[3 * i + 2] != (s | (i + 1));
        }
        for (unsigned i = 0; i < 3 * top; ++i) x[i] = -x[i];
    }
    CHECK_MSG(wrong == 0, "%ld of %s's ties", wrong, tac_dtype_name(t));
    guarded_free(x);
    guarded_free(h);
}

static void specials(const rig *r)
{
    static const double x[] = {0.0,     -0.0,    65504, 65519.99,
                               65520,   -1e30,   1e300, -1e300,
                               0x1p-24, 0x1p-25, 1e-50, 0x1.8p-25};
    static const uint16_t f16[] = {
        0, 0x8000, 0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x7c00, 0xfc00, 1, 0, 0, 1};
    static const double huge[] = {3.4028234663852886e38, 3.39e38, 3.3963e38};
    uint16_t h[12];
    float f[12];
    cast(r, 12, TAC_F64, x, TAC_F16, h);
    CHECK_EQ_MEM(h, f16, sizeof h);
    cast(r, 12, TAC_F64, x, TAC_F32, f);
    CHECK(isinf(f[6]) && isinf(f[7]) && signbit(f[1]) && f[10] == 0);
    cast(r, 12, TAC_F32, f, TAC_F16, h);
    h[3] = 0x7bff; /* 65519.99 is 65520 in f32 already */
    CHECK_EQ_MEM(h, f16, sizeof h);
    cast(r, 3, TAC_F64, huge, TAC_BF16, h);
    CHECK_EQ_U64(h[0], 0x7f80);
    CHECK_EQ_U64(h[1], 0x7f7f);
    CHECK_EQ_U64(h[2], 0x7f80);
}

static double get(tac_dtype t, const void *x, size_t i)
{
    if (t == TAC_F32) return (double)((const float *)x)[i];
    if (t == TAC_F64) return ((const double *)x)[i];
    return (double)half_value(t, ((const uint16_t *)x)[i]);
}

/* Numbers that every type has, so that all casts are exact. */
static void *numbers(const rig *r, tac_dtype t, size_t n, uint64_t stream)
{
    double *d = guarded(n * sizeof *d);
    void *x = guarded(n * tac_dtype_size(t));
    for (size_t i = 0; i < n; ++i)
        d[i] = (double)rintf(64 * random_unit(stream, i)) / 8;
    cast(r, n, TAC_F64, d, t, x);
    long wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += get(t, x, i) != d[i];
    CHECK_EQ(wrong, 0);
    guarded_free(d);
    return x;
}

static void pair(const rig *r, tac_dtype from, tac_dtype to, size_t n)
{
    const int wide = to == TAC_F32 || to == TAC_F64;
    void *x = numbers(r, from, n, 1), *y = numbers(r, to, n, 2);
    void *old = numbers(r, to, n, 2);
    long wrong = 0;
    const tac_status s = r->k->cast(&r->kc, n, from, x, to, y, 1);
    CHECK_EQ(s, wide ? TAC_OK : TAC_ERR_ARG);
    for (size_t i = 0; i < n; ++i)
        wrong +=
            get(to, y, i) != get(to, old, i) + (wide ? get(from, x, i) : 0);
    cast(r, n, from, x, to, y);
    for (size_t i = 0; i < n; ++i) wrong += get(to, y, i) != get(from, x, i);
    CHECK_MSG(wrong == 0, "%zu %s to %s: %ld wrong", n, tac_dtype_name(from),
              tac_dtype_name(to), wrong);
    guarded_free(x);
    guarded_free(y);
    guarded_free(old);
}

static void pairs(const rig *r)
{
    static const size_t sizes[] = {0, 1, 17, 1023, 1025, 50001};
    for (size_t i = 0; i < TYPES; ++i)
        for (size_t j = 0; j < TYPES; ++j)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
                pair(r, types[i], types[j], sizes[k]);
}

static void refusals(const rig *r)
{
    int32_t x[2] = {1, 2}, y[2] = {3, 4};
    char message[512];
    CHECK_EQ(r->k->cast(&r->kc, 2, TAC_I32, x, TAC_F32, y, 0), TAC_ERR_ARG);
    CHECK_EQ(r->k->cast(&r->kc, 2, TAC_F32, x, TAC_U8, y, 0), TAC_ERR_ARG);
    tac_context_error(r->kc.ctx, message, sizeof message);
    CHECK_MSG(strstr(message, "f32 to u8"), "%s", message);
    CHECK_EQ(y[0], 3);
}

static void run(tac_context *ctx)
{
    rig r = {NULL, NULL, {NULL, NULL, NULL, NULL}};
    if (!CHECK_OK(tac_device_open(ctx, "cpu", NULL, &r.dev))) return;
    r.kc = tac_device_kctx(r.dev, NULL);
    r.k = tac_device_kernels(r.dev, TAC_F32);
    for (size_t i = 0; i < TYPES; ++i) /* one function for all tables */
        CHECK(tac_device_kernels(r.dev, types[i])->cast == r.k->cast);
    for (size_t i = 0; i < 2; ++i) {
        all_values(&r, halves[i]);
        ties(&r, halves[i]);
    }
    specials(&r);
    pairs(&r);
    refusals(&r);
    tac_device_close(r.dev);
}

static void no_log(void *arg, tac_log_level level, const char *text)
{
    (void)arg;
    (void)level;
    (void)text;
}

int main(void)
{
    for (int threads = 1; threads <= 3; ++threads) {
        tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
        tac_context *ctx;
        config.threads = threads;
        config.log = no_log;
        if (!CHECK_OK(tac_context_create(&config, &ctx))) break;
        run(ctx);
        tac_context_destroy(ctx);
    }
    return tac_check_summary();
}
