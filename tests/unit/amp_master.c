/* amp_master.c: working weights are the masters, rounded. */
#include <criterion/criterion.h>

#include "amp_test.h"

enum { PARAMS = 3 };

static eng_world model(const size_t *order, int threads, int init)
{
    eng_world w = eng_open(NULL, TAC_F32, threads);

    amp_add(&w, "w", 2, 33, 65, 0);
    amp_add(&w, "b", 1, 7, 0, 0);
    amp_add(&w, "frozen", 2, 3, 5, TAC_PARAM_FROZEN);
    cr_assert_eq(tac_params_layout(w.params, order, NULL, NULL), TAC_OK);
    if (init) cr_assert_eq(tac_params_init(w.params, 5), TAC_OK);
    return w;
}

static tac_master *make(eng_world *w, tac_dtype low, const uint64_t *step,
                        uint64_t seed)
{
    tac_master_config c = TAC_MASTER_CONFIG_INIT;
    tac_master *m = NULL;

    c.low = low;
    c.stochastic = step != NULL;
    c.step = step;
    c.seed = seed;
    cr_assert_eq(tac_master_create(w->params, &c, &m), TAC_OK);
    return m;
}

static uint16_t half_of(tac_dtype low, float x)
{
    return low == TAC_F16 ? tac_f32_to_f16(x) : tac_f32_to_bf16(x);
}

static void expect_nearest(const eng_world *w, const tac_master *m)
{
    const float *p = tac_params_values(w->params);
    const uint16_t *h = tac_master_weights(m);

    for (size_t i = 0; i < tac_params_padded(w->params); ++i)
        cr_assert_eq(h[i], half_of(tac_master_dtype(m), p[i]), "element %zu",
                     i);
}

Test(amp_master, to_nearest_over_the_whole_arena)
{
    const tac_dtype lows[] = {TAC_F16, TAC_BF16};

    for (size_t l = 0; l < 2; ++l) {
        eng_world w = model(NULL, 2, 1);
        tac_master *m = make(&w, lows[l], NULL, 0);
        cr_assert_eq(tac_master_dtype(m), lows[l]);
        cr_assert_eq(tac_master_bytes(m), 2 * tac_params_padded(w.params));
        for (size_t i = 0; i < tac_params_padded(w.params); ++i)
            cr_assert_eq(((const uint16_t *)tac_master_weights(m))[i], 0,
                         "zero before the first refresh");
        cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
        expect_nearest(&w, m);
        ((float *)tac_params_value(w.params, 0))[9] = 1.0F + 0x1p-12F;
        ((float *)tac_params_value(w.params, 1))[6] = -0.0F;
        cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
        expect_nearest(&w, m);
        tac_master_destroy(m);
        eng_close(&w);
    }
    tac_master_destroy(NULL);
}

/* The bits of all parameters' working weights, one after another. */
static size_t bits_of(const eng_world *w, const tac_master *m, uint16_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < PARAMS; ++i) {
        const tac_param *q = tac_params_get(w->params, i);
        memcpy(out + n, (const uint16_t *)tac_master_weights(m) + q->offset,
               q->count * sizeof *out);
        n += q->count;
    }
    return n;
}

static size_t rounded(const size_t *order, int threads, tac_dtype low,
                      uint64_t step, uint64_t seed, uint16_t *out)
{
    eng_world w = model(order, threads, 1);
    tac_master *m = make(&w, low, &step, seed);

    cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
    const size_t n = bits_of(&w, m, out);
    tac_master_destroy(m);
    eng_close(&w);
    return n;
}

Test(amp_master, stochastic_bits_depend_on_seed_and_step_alone)
{
    enum { N = 33 * 65 + 7 + 15 };
    static uint16_t a[N], b[N];
    const size_t order[PARAMS] = {2, 0, 1};
    const tac_dtype lows[] = {TAC_F16, TAC_BF16};

    for (size_t l = 0; l < 2; ++l) {
        cr_assert_eq(rounded(NULL, 1, lows[l], 4, 9, a), N);
        rounded(order, 3, lows[l], 4, 9, b);
        cr_assert_eq(memcmp(a, b, sizeof a), 0, "layout and threads");
        rounded(NULL, 1, lows[l], 5, 9, b);
        cr_assert_neq(memcmp(a, b, sizeof a), 0, "another step");
        rounded(NULL, 1, lows[l], 4, 10, b);
        cr_assert_neq(memcmp(a, b, sizeof a), 0, "another seed");
    }
}

/* f32 to bf16 with the random number of (seed, step, parameter, element). */
static uint16_t rounded_by_hand(float x, uint64_t seed, uint64_t step,
                                size_t param, size_t element)
{
    const tac_rng_key key = {seed, TAC_STREAM_ROUND, (step << 16) + param};
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    const int up = bits << 16 > tac_rng_u32(&key, element); /* what drops */
    return (uint16_t)((bits >> 16) + (uint32_t)up);
}

Test(amp_master, stochastic_bits_are_those_of_the_key)
{
    eng_world w = model(NULL, 2, 1);
    uint64_t step = 6;
    tac_master *m = make(&w, TAC_BF16, &step, 12);

    cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
    for (size_t i = 0; i < PARAMS; ++i) {
        const tac_param *q = tac_params_get(w.params, i);
        const float *x = tac_params_value(w.params, i);
        const uint16_t *h = (const uint16_t *)tac_master_weights(m) + q->offset;
        for (size_t e = 0; e < q->count; ++e)
            cr_assert_eq(h[e], rounded_by_hand(x[e], 12, 6, i, e),
                         "parameter %zu, element %zu", i, e);
    }
    tac_master_destroy(m);
    eng_close(&w);
}

/* Over many steps the mean of the working weights is the master: to nearest it
 * would be off by up to half a unit in the last place. */
Test(amp_master, stochastic_rounding_is_unbiased)
{
    enum { STEPS = 4096, AT = 3 };
    eng_world w = model(NULL, 1, 0);
    const float x = 1.0F + 0x1p-10F; /* 1/8 of the way up in bf16 */
    uint64_t step = 0;
    tac_master *m = make(&w, TAC_BF16, &step, 1);
    double ups = 0;

    ((float *)tac_params_value(w.params, 1))[AT] = x;
    for (; step < STEPS; ++step) {
        cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
        const size_t at = tac_params_get(w.params, 1)->offset + AT;
        const float y =
            tac_bf16_to_f32(((const uint16_t *)tac_master_weights(m))[at]);
        cr_assert(y == 1.0F || y == 1.0F + 0x1p-7F);
        ups += y > 1.0F;
    }
    const double sigma = sqrt(STEPS * 0.125 * 0.875);
    cr_assert_lt(fabs(ups - STEPS / 8.0), 4.0 * sigma, "%g of %d", ups, STEPS);
    tac_master_destroy(m);
    eng_close(&w);
}

Test(amp_master, memory_comes_from_the_allocator)
{
    eng_world w = model(NULL, 1, 1);
    eng_counter count = {0, 0, 0};
    const tac_allocator alloc = eng_allocator(&count);
    tac_master_config c = TAC_MASTER_CONFIG_INIT;
    tac_master *m = NULL;

    c.alloc = &alloc;
    cr_assert_eq(tac_master_create(w.params, &c, &m), TAC_OK);
    cr_assert_eq(count.bytes, tac_master_bytes(m));
    cr_assert_eq(tac_master_refresh(m, NULL), TAC_OK);
    expect_nearest(&w, m);
    cr_assert_eq(count.allocs, 1);
    tac_master_destroy(m);
    cr_assert_eq(count.frees, 1);
    eng_close(&w);
}

static void expect_refused(tac_params *p, const tac_master_config *c,
                           tac_status want, const eng_world *w,
                           const char *text)
{
    tac_master *m = NULL;
    char got[256];

    cr_assert_eq(tac_master_create(p, c, &m), want, "%s", text);
    cr_assert_null(m);
    cr_assert_not_null(strstr(eng_error(w, got, sizeof got), text), "%s", got);
}

Test(amp_master, errors)
{
    eng_world w = eng_open(NULL, TAC_F32, 1), d = eng_open(NULL, TAC_F64, 1);
    tac_master_config c = TAC_MASTER_CONFIG_INIT;

    amp_add(&w, "x", 1, 3, 0, 0);
    amp_add(&d, "x", 1, 3, 0, 0);
    cr_assert_eq(tac_params_layout(d.params, NULL, NULL, NULL), TAC_OK);
    expect_refused(w.params, &c, TAC_ERR_STATE, &w, "layout");
    expect_refused(d.params, &c, TAC_ERR_ARG, &d, "f64");
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    c.low = TAC_F32;
    expect_refused(w.params, &c, TAC_ERR_ARG, &w, "f32");
    c = (tac_master_config)TAC_MASTER_CONFIG_INIT;
    c.stochastic = 1;
    expect_refused(w.params, &c, TAC_ERR_ARG, &w, "config.step");
    c.struct_size = 0;
    expect_refused(w.params, &c, TAC_ERR_ARG, &w, "INIT");
    eng_close(&w);
    eng_close(&d);
}
