/* amp_underflow.c: histograms and shares against each value converted. */
#include <criterion/criterion.h>
#include <float.h>

#include "amp_test.h"

enum { BIG = 70001 }; /* more than one piece */

static double random_gradient(uint64_t seed, uint64_t id, uint64_t i)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, id};
    const double u = tac_rng_uniform(&key, 3 * i);
    const double e = -60.0 + 85.0 * tac_rng_uniform(&key, 3 * i + 1);

    if (u < 0.02) return 0.0;
    if (u < 0.025) return INFINITY;
    if (u < 0.03) return -INFINITY;
    if (u < 0.04) return NAN;
    return (u < 0.5 ? -1.0 : 1.0) * exp2(e);
}

static eng_world model(tac_dtype dtype, int threads)
{
    eng_world w = eng_open(NULL, dtype, threads);
    const size_t order[4] = {2, 0, 3, 1};

    amp_add(&w, "w", 2, 37, 11, 0);
    amp_add(&w, "b", 1, 1, 0, 0);
    amp_add(&w, "big", 1, BIG, 0, 0);
    amp_add(&w, "frozen", 1, 5, 0, TAC_PARAM_FROZEN);
    cr_assert_eq(tac_params_layout(w.params, order, NULL, NULL), TAC_OK);
    return w;
}

static void fill(const eng_world *w, uint64_t seed, double factor)
{
    for (size_t i = 0; i < tac_params_count(w->params); ++i)
        for (size_t e = 0; e < tac_params_get(w->params, i)->count; ++e)
            eng_set(tac_params_grad_dtype(w->params),
                    tac_params_grad(w->params, i), e,
                    factor * (double)(float)random_gradient(seed, i, e));
}

typedef struct brute {
    uint64_t zero, subnormal, overflow, all;
} brute;

/* What conversion makes of one value, but for the borders that a histogram
 * can't see (underflow.h). */
static void convert(brute *b, double x)
{
    const double m = fabs(x);
    const unsigned h = tac_f32_to_f16((float)m);

    b->all += 1;
    if (m == 0x1p-25 || (m >= 0x1p-14 - 0x1p-25 && m < 0x1p-14))
        b->subnormal += 1;
    else if (h == 0)
        b->zero += 1;
    else if (h < 0x400)
        b->subnormal += 1;
    else if (h == 0x7c00 && m >= 0x1p16)
        b->overflow += 1;
}

static brute convert_all(const eng_world *w, size_t param, uint64_t seed,
                         double scale)
{
    brute b = {0, 0, 0, 0};

    for (size_t e = 0; e < tac_params_get(w->params, param)->count; ++e) {
        const double g = (double)(float)random_gradient(seed, param, e);
        if (isfinite(g) && g != 0.0) convert(&b, g * scale);
    }
    return b;
}

static void expect_shares(const eng_world *w, const tac_underflow *u, size_t i,
                          uint64_t seed, double scale)
{
    const brute b = convert_all(w, i, seed, scale);
    const tac_underflow_shares s =
        tac_underflow_at(tac_underflow_get(u, i), scale);
    const double n = b.all > 0 ? (double)b.all : 1.0;

    cr_assert_eq(s.zero, (double)b.zero / n, "%zu at %g: zero", i, scale);
    cr_assert_eq(s.subnormal, (double)b.subnormal / n, "%zu at %g: subnormal",
                 i, scale);
    cr_assert_eq(s.overflow, (double)b.overflow / n, "%zu at %g: overflow", i,
                 scale);
}

Test(amp_underflow, shares_are_those_of_conversion)
{
    const int exponents[] = {0, 1, 3, 10, 16, 24, -5};

    for (uint64_t seed = 1; seed <= 3; ++seed) {
        eng_world w = model(TAC_F32, 3);
        tac_underflow *u = NULL;
        fill(&w, seed, 1.0);
        cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
        cr_assert_eq(tac_underflow_observe(u, 1.0, NULL), TAC_OK);
        for (size_t k = 0; k < sizeof exponents / sizeof *exponents; ++k)
            for (size_t i = 0; i < 3; ++i)
                expect_shares(&w, u, i, seed, ldexp(1.0, exponents[k]));
        tac_underflow_destroy(u);
        eng_close(&w);
    }
}

Test(amp_underflow, counts_are_those_of_the_values)
{
    eng_world w = model(TAC_F32, 2);
    tac_underflow *u = NULL;

    fill(&w, 7, 1.0);
    cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
    cr_assert_eq(tac_underflow_rows(u), 4);
    cr_assert_eq(tac_underflow_observe(u, 1.0, NULL), TAC_OK);
    for (size_t i = 0; i < 3; ++i) {
        const tac_underflow_row *r = tac_underflow_get(u, i);
        uint64_t zeros = 0, bad = 0, bins = 0;
        for (size_t e = 0; e < tac_params_get(w.params, i)->count; ++e) {
            const double g = random_gradient(7, i, e);
            zeros += g == 0.0;
            bad += !isfinite(g);
        }
        for (int b = 0; b < TAC_UNDERFLOW_BINS; ++b) bins += r->bins[b];
        cr_assert_str_eq(r->name, tac_params_get(w.params, i)->name);
        cr_assert_eq(r->count, tac_params_get(w.params, i)->count);
        cr_assert_eq(r->zeros, zeros);
        cr_assert_eq(r->nonfinite, bad);
        cr_assert_eq(bins + zeros + bad, r->count);
    }
    cr_assert_eq(tac_underflow_get(u, 3)->count, 0, "frozen: no gradient");
    cr_assert_null(tac_underflow_get(u, 4));
    tac_underflow_destroy(u);
    eng_close(&w);
}

/* The bins of gradients that are `factor` times too large, told so. */
static void bins_of(tac_dtype dtype, int threads, double factor,
                    tac_underflow_row out[3])
{
    eng_world w = model(dtype, threads);
    tac_underflow *u = NULL;

    fill(&w, 11, factor);
    cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
    cr_assert_eq(tac_underflow_observe(u, factor, NULL), TAC_OK);
    for (size_t i = 0; i < 3; ++i) out[i] = *tac_underflow_get(u, i);
    for (size_t i = 0; i < 3; ++i) out[i].name = NULL;
    tac_underflow_destroy(u);
    eng_close(&w);
}

Test(amp_underflow, same_for_any_scale_threads_and_type)
{
    tac_underflow_row want[3], got[3];

    bins_of(TAC_F32, 1, 1.0, want);
    bins_of(TAC_F32, 3, 65536.0, got);
    cr_assert_eq(memcmp(want, got, sizeof want), 0, "scale 65536");
    bins_of(TAC_F64, 2, 3.0, got);
    cr_assert_eq(memcmp(want, got, sizeof want), 0, "f64, scale 3");
    bins_of(TAC_F16, 2, 0.25, got);
    cr_assert_eq(memcmp(want, got, sizeof want), 0, "f16, scale 1/4");
}

static void observe_value(tac_dtype dtype, double g, double scale,
                          tac_underflow_row *out)
{
    eng_world w = eng_open(NULL, dtype, 1);
    tac_underflow *u = NULL;

    amp_add(&w, "x", 1, 1, 0, 0);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    eng_set(dtype, tac_params_grads(w.params), 0, g);
    cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
    cr_assert_eq(tac_underflow_observe(u, scale, NULL), TAC_OK);
    *out = *tac_underflow_get(u, 0);
    tac_underflow_destroy(u);
    eng_close(&w);
}

Test(amp_underflow, bins_and_borders)
{
    static const struct {
        tac_dtype dtype;
        double g, scale;
        int exponent;
    } table[] = {
        {TAC_F32, 1.0, 1.0, 0},
        {TAC_F32, -1.999, 1.0, 0},
        {TAC_F32, 2.0, 1.0, 1},
        {TAC_F32, 1e-8, 1.0, -27},
        {TAC_F32, 0x1p-149, 1.0, -149},
        {TAC_F32, 0x1p-149, 1024.0, TAC_UNDERFLOW_MIN},
        {TAC_F32, (double)FLT_MAX, 1.0, 127},
        {TAC_F32, (double)FLT_MAX, 0.5, 128},
        {TAC_F64, 1e300, 1.0, 128},
        {TAC_F64, 1e-300, 1.0, TAC_UNDERFLOW_MIN},
    };
    tac_underflow_row r;

    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        observe_value(table[i].dtype, table[i].g, table[i].scale, &r);
        cr_assert_eq(r.bins[table[i].exponent - TAC_UNDERFLOW_MIN], 1,
                     "%g at %g", table[i].g, table[i].scale);
    }
}

/* The documented side of each border, at scale 1 and through the scale. */
Test(amp_underflow, borders_of_f16)
{
    static const struct {
        double g;
        tac_underflow_shares want;
    } table[] = {
        {0x1.fffp-26, {1, 0, 0}}, {0x1p-25, {0, 1, 0}}, {0x1p-24, {0, 1, 0}},
        {0x1.ffcp-15, {0, 1, 0}}, {0x1p-14, {0, 0, 0}}, {1.0, {0, 0, 0}},
        {65504.0, {0, 0, 0}},     {65536.0, {0, 0, 1}},
    };
    tac_underflow_row r;

    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        for (int k = -4; k <= 20; k += 6) {
            observe_value(TAC_F32, ldexp(table[i].g, -k), 1.0, &r);
            const tac_underflow_shares s = tac_underflow_at(&r, ldexp(1.0, k));
            cr_assert_eq(s.zero, table[i].want.zero, "%a", table[i].g);
            cr_assert_eq(s.subnormal, table[i].want.subnormal, "%a",
                         table[i].g);
            cr_assert_eq(s.overflow, table[i].want.overflow, "%a", table[i].g);
        }
    }
}

Test(amp_underflow, sums_until_reset)
{
    eng_world w = model(TAC_F32, 2);
    tac_underflow *u = NULL;

    fill(&w, 5, 1.0);
    cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
    cr_assert_eq(tac_underflow_observe(u, 1.0, NULL), TAC_OK);
    const tac_underflow_row once = *tac_underflow_get(u, 2);
    cr_assert_eq(tac_underflow_observe(u, 1.0, NULL), TAC_OK);
    for (int b = 0; b < TAC_UNDERFLOW_BINS; ++b)
        cr_assert_eq(tac_underflow_get(u, 2)->bins[b], 2 * once.bins[b]);
    cr_assert_eq(tac_underflow_get(u, 2)->count, 2 * (uint64_t)BIG);
    tac_underflow_reset(u);
    cr_assert_eq(tac_underflow_get(u, 2)->count, 0);
    const tac_underflow_shares s =
        tac_underflow_at(tac_underflow_get(u, 2), 1.0);
    cr_assert_eq(s.zero + s.subnormal + s.overflow, 0.0, "nothing seen");
    tac_underflow_destroy(u);
    tac_underflow_destroy(NULL);
    eng_close(&w);
}

Test(amp_underflow, errors)
{
    const double bad[] = {0.0, -1.0, NAN, INFINITY};
    eng_world w = eng_open(NULL, TAC_F32, 1);
    tac_underflow *u = NULL;
    char text[256];

    amp_add(&w, "x", 1, 3, 0, 0);
    cr_assert_eq(tac_underflow_create(w.params, &u), TAC_OK);
    cr_assert_eq(tac_underflow_observe(u, 1.0, NULL), TAC_ERR_STATE);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "layout"));
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    for (size_t i = 0; i < 4; ++i) {
        cr_assert_eq(tac_underflow_observe(u, bad[i], NULL), TAC_ERR_ARG);
        const tac_underflow_shares s =
            tac_underflow_at(tac_underflow_get(u, 0), bad[i]);
        cr_assert_eq(s.zero, 0.0);
    }
    cr_assert_eq(tac_underflow_get(u, 0)->count, 0, "nothing was added");
    tac_underflow_destroy(u);
    eng_close(&w);
}
