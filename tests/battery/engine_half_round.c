/* engine_half_round.c: stochastic rounding, by the vectorised kernels against
 * the definition and by its statistics. */
#include "kernel_check.h"

#include <stdio.h>

#include "tacit/pool.h"

enum { DRAWS = 65536, MANY = 20011 };

static const tac_dtype halves[2] = {TAC_F16, TAC_BF16};
static const uint64_t SEED = UINT64_C(0x0123456789abcdef);

typedef struct rig {
    const char *set;
    tac_kctx kc;
    tac_kernels k;
} rig;

static tac_round how(const uint64_t *step, uint32_t tensor, uint64_t first)
{
    return (tac_round){SEED, step, tensor, first};
}

static uint16_t nearest(tac_dtype t, float x)
{
    return t == TAC_F16 ? tac_f32_to_f16(x) : tac_f32_to_bf16(x);
}

/* The neighbour of x towards 0, from the nearest one. */
static uint16_t towards_0(tac_dtype t, float x)
{
    const uint16_t h = nearest(t, x);
    return fabs((double)half_value(t, h)) > fabs((double)x) ? (uint16_t)(h - 1)
                                                            : h;
}

/* By the definition, in f64: the share of the way from the neighbour towards 0
 * to the other one, cut to 32 bits, against the random word. */
static uint16_t defined(tac_dtype t, float x, uint32_t random)
{
    const unsigned infinity = t == TAC_F16 ? 0x7c00 : 0x7f80;
    if (!isfinite(x)) return nearest(t, x);
    const uint16_t low = towards_0(t, x);
    if ((low & 0x7fffu) >= infinity - 1) /* the largest, or beyond it */
        return (uint16_t)((low & 0x8000u) | (infinity - 1));
    const double a = fabs((double)half_value(t, low));
    const double b = fabs((double)half_value(t, (uint16_t)(low + 1)));
    const double share = (fabs((double)x) - a) / (b - a);
    return (uint16_t)(low + (floor(share * 0x1p32) > (double)random));
}

/* Bit patterns of all kinds: every exponent, NaN, infinities, neighbours of
 * what is representable. */
static float sample(uint64_t i)
{
    static const float special[] = {
        0.0f,     -0.0f,     65504.0f,  65519.0f,  -65520.0f,   1e6f,
        3.4e38f,  -3.4e38f,  0x1p-24f,  0x1p-25f,  -0x1.8p-24f, 0x1p-40f,
        0x1p-14f, 0x1p-126f, 0x1p-149f, 0x1p-133f, 0x1.8p-50f,  0x1.fffp-15f};
    const uint64_t bits =
        (uint64_t)((double)random_unit(31, i) * 0x1p31 + 0x1p31) ^ i * 40503;
    const uint32_t u = (uint32_t)bits;
    float x;
    if (i % 7 == 0) return special[i / 7 % (sizeof special / sizeof *special)];
    if (i % 7 == 1) return i % 2 ? INFINITY : NAN;
    if (i % 7 < 4) return random_unit(32, i) * 0x1p-13f; /* f16 subnormals */
    memcpy(&x, &u, sizeof x);
    return x;
}

static float *samples(size_t n)
{
    float *x = guarded(n * sizeof *x);
    for (size_t i = 0; i < n; ++i) x[i] = sample(i);
    return x;
}

static void against_definition(const rig *r, tac_dtype t, size_t n,
                               uint64_t first)
{
    const uint64_t step = 77;
    const tac_round round = how(&step, 513, first);
    const tac_rng_key key = {SEED, TAC_STREAM_ROUND, (77 << 16) + 513};
    float *x = samples(n);
    uint16_t *y = guarded(n * sizeof *y);
    long wrong = 0;
    memset(y, 0xee, n * sizeof *y);
    CHECK_OK(r->k.cast_stochastic(&r->kc, n, x, t, y, &round));
    for (size_t i = 0; i < n; ++i)
        wrong += y[i] != defined(t, x[i], tac_rng_u32(&key, first + i));
    CHECK_MSG(wrong == 0, "%s: %ld of %zu %s from %llu are wrong", r->set,
              wrong, n, tac_dtype_name(t), (unsigned long long)first);
    guarded_free(x);
    guarded_free(y);
}

/* In pieces, and with an offset of `first`: the same bits. */
static void splitting(const rig *r, tac_dtype t)
{
    const uint64_t step = 3;
    float *x = samples(MANY);
    uint16_t *y = guarded(MANY * sizeof *y), *z = guarded(MANY * sizeof *z);
    const tac_round whole = how(&step, 9, 5);
    CHECK_OK(r->k.cast_stochastic(&r->kc, MANY, x, t, y, &whole));
    for (size_t at = 0, n; at < MANY; at += n) {
        const tac_round piece = how(&step, 9, 5 + at);
        n = at * 7 % 301 + 1 < MANY - at ? at * 7 % 301 + 1 : MANY - at;
        CHECK_OK(r->k.cast_stochastic(&r->kc, n, x + at, t, z + at, &piece));
    }
    CHECK_EQ_MEM(y, z, MANY * sizeof *y);
    guarded_free(x);
    guarded_free(y);
    guarded_free(z);
}

/* The mean of many draws is x, within 4 standard deviations of it. */
static void mean(const rig *r, tac_dtype t, float x)
{
    const uint64_t step = 1;
    const tac_round round = how(&step, 2, 0);
    const double low = (double)half_value(t, towards_0(t, x));
    const double high = (double)half_value(t, (uint16_t)(towards_0(t, x) + 1));
    const double p = ((double)x - low) / (high - low);
    float *xs = guarded(DRAWS * sizeof *xs);
    uint16_t *y = guarded(DRAWS * sizeof *y);
    long up = 0, other = 0;
    for (size_t i = 0; i < DRAWS; ++i) xs[i] = x;
    CHECK_OK(r->k.cast_stochastic(&r->kc, DRAWS, xs, t, y, &round));
    for (size_t i = 0; i < DRAWS; ++i) {
        const double v = (double)half_value(t, y[i]);
        up += v == high;
        other += v != high && v != low;
    }
    CHECK_EQ(other, 0);
    CHECK_NEAR((double)up, p * DRAWS, 4 * sqrt(DRAWS * p * (1 - p)));
    guarded_free(xs);
    guarded_free(y);
}

static void statistics(const rig *r)
{
    mean(r, TAC_BF16, 1 + 0x1p-10f); /* p = 1/8 */
    mean(r, TAC_F16, 1 + 0x1p-13f);
    for (size_t i = 0; i < 2; ++i) {
        mean(r, halves[i], 0.1f);
        mean(r, halves[i], -3.14159f);
        mean(r, halves[i], 1e-3f);
    }
    mean(r, TAC_F16, 0x1.3p-25f); /* 0 or 2^-24 */
    mean(r, TAC_F16, -0x1.01p-29f);
    mean(r, TAC_F16, 0x1.235p-20f);
    mean(r, TAC_BF16, 0x1.555p-130f);
}

/* What the type has stays, whatever the random number. */
static void representable(const rig *r, tac_dtype t)
{
    const uint64_t step = 12;
    const tac_round round = how(&step, 0, 0);
    const unsigned quiet = t == TAC_F16 ? 0x200 : 0x40;
    const unsigned infinity = t == TAC_F16 ? 0x7c00 : 0x7f80;
    float *x = guarded(65536 * sizeof *x);
    uint16_t *y = guarded(65536 * sizeof *y);
    long wrong = 0;
    for (unsigned i = 0; i < 65536; ++i) x[i] = half_value(t, (uint16_t)i);
    CHECK_OK(r->k.cast_stochastic(&r->kc, 65536, x, t, y, &round));
    for (unsigned i = 0; i < 65536; ++i)
        wrong += y[i] != ((i & 0x7fff) > infinity ? i | quiet : i);
    CHECK_EQ(wrong, 0);
    guarded_free(x);
    guarded_free(y);
}

/* 768 weights of bf16 under updates of 1e-5 of their size: to nearest, none
 * ever moves; stochastically they move, and by what the updates say. */
static void vanishing(tac_device *dev, tac_dtype t)
{
    enum { WEIGHTS = 768, STEPS = 200 };
    const tac_kernels *k = tac_device_kernels(dev, t);
    const tac_kctx kc = tac_device_kctx(dev, NULL);
    const float size = t == TAC_BF16 ? 1 : 16;
    uint16_t p[2][WEIGHTS], p0[WEIGHTS];
    float g[WEIGHTS];
    long moved[2] = {0, 0};
    double drift = 0;
    for (size_t i = 0; i < WEIGHTS; ++i) {
        p0[i] = nearest(t, size * (1.25f + random_unit(5, i) / 5));
        p[0][i] = p[1][i] = p0[i];
        g[i] = size;
    }
    for (uint64_t step = 0; step < STEPS; ++step) {
        const tac_round round = how(&step, 4, 0);
        const tac_step_scalars s = {
            .lr = 1e-5f, .grad_scale = 1, .clip_coef = 1};
        tac_sgd_args a = {.lr_scale = 1};
        CHECK_OK(k->sgd(&kc, WEIGHTS, &a, &s, p[0], g, NULL));
        a.round = &round;
        CHECK_OK(k->sgd(&kc, WEIGHTS, &a, &s, p[1], g, NULL));
    }
    for (size_t i = 0; i < WEIGHTS; ++i) {
        moved[0] += p[0][i] != p0[i];
        moved[1] += p[1][i] != p0[i];
        drift += (double)half_value(t, p0[i]) - (double)half_value(t, p[1][i]);
    }
    /* Each step drops an ulp with probability d/ulp: the variance of the sum
     * is below WEIGHTS * STEPS * d * ulp. */
    const double d = 1e-5 * (double)size, n = (double)WEIGHTS * STEPS;
    const double ulp = (double)size * (t == TAC_BF16 ? 0x1p-7 : 0x1p-10);
    CHECK_EQ(moved[0], 0);
    CHECK(moved[1] > WEIGHTS / 16);
    CHECK_NEAR(drift, n * d, 4 * sqrt(n * d * ulp));
}

/* Row sums of squares are in f64, whatever f16 could hold. */
static void norm(tac_device *dev)
{
    const tac_kernels *k = tac_device_kernels(dev, TAC_F16);
    const tac_kctx kc = tac_device_kctx(dev, NULL);
    const uint16_t h = tac_f32_to_f16(5000);
    const uint16_t x[4] = {h, h, h, h};
    double squares = NAN;
    CHECK_OK(k->sum_squares(&kc, 4, x, &squares));
    CHECK_EQ_F64(sqrt(squares), 10000);
}

static void run_set(const tac_kernel_set *set, tac_context *ctx)
{
    static const uint64_t firsts[] = {0, 3, (UINT64_C(4) << 32) - 9};
    static const size_t sizes[] = {0, 1, 63, 64, 131, MANY};
    rig r = {.set = set->name,
             .kc = {.ctx = ctx, .pool = tac_context_pool(ctx)},
             .k = {.struct_size = sizeof r.k, .dtype = TAC_F32}};
    tac_cpu_kernel_sets()[0]->apply(&r.k);
    set->apply(&r.k);
    for (size_t t = 0; t < 2; ++t) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
            for (size_t j = 0; j < 3; ++j)
                against_definition(&r, halves[t], sizes[i], firsts[j]);
        splitting(&r, halves[t]);
        representable(&r, halves[t]);
    }
    statistics(&r);
}

static void run(int threads)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    tac_device *dev;
    char why[256];
    config.threads = threads;
    if (!CHECK_OK(tac_context_create(&config, &ctx))) return;
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->available(why, sizeof why)) run_set(sets[i], ctx);
    if (CHECK_OK(tac_device_open(ctx, "cpu", NULL, &dev))) {
        vanishing(dev, TAC_BF16);
        vanishing(dev, TAC_F16);
        norm(dev);
        tac_device_close(dev);
    }
    tac_context_destroy(ctx);
}

int main(void)
{
    run(1);
    run(3);
    return tac_check_summary();
}
