/* engine_optim_runs.c: optimizers over many steps: 8-bit moments against
 * 32-bit ones, the fused pass against a reference, gradients of 0, noise for
 * two thousand steps, clipping at any scale, schedules that count applied
 * steps, and finding what is not finite. The numbers are those of the suites
 * of bitsandbytes, apex and PyTorch. */
#include "engine_optim_oracle.h"
#include "engine_test.h"
#include "tac_check.h"
#include "tac_sanitized.h"

static double normal(uint64_t stream, uint64_t i)
{
    const tac_rng_key key = {stream, TAC_STREAM_USER, 3};
    return tac_rng_normal(&key, i);
}

/* One parameter of a shape. */
static eng_world one(const char *isa, tac_dtype t, int ndim, size_t a, size_t b)
{
    eng_world w = eng_open(isa, t, 2);
    const size_t shape[2] = {a, b};
    CHECK_OK(tac_params_add(w.params, "w", ndim, shape,
                            (tac_init){TAC_INIT_ZEROS, 0}, 0, NULL));
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    return w;
}

static float *values(const eng_world *w)
{
    return tac_params_values(w->params);
}

static float *grads(const eng_world *w)
{
    return tac_params_grads(w->params);
}

static size_t count(const eng_world *w)
{
    return tac_params_elements(w->params);
}

static void set_grads(const eng_world *w, uint64_t step, double scale)
{
    for (size_t i = 0; i < count(w); ++i)
        grads(w)[i] = (float)(scale * normal(100 + step, i));
}

/* ----------------------------------------------- 8-bit against 32-bit */

typedef struct state8 {
    const uint8_t *code[2];
    const float *absmax[2];
    const float *wide[2];
} state8;

static tac_status take(void *arg, const tac_state_item *item)
{
    state8 *s = arg;
    const int k = strstr(item->name, "exp_avg_sq") != NULL;
    if (item->dtype == TAC_U8)
        s->code[k] = item->data;
    else if (strstr(item->name, "absmax"))
        s->absmax[k] = item->data;
    else if (item->dtype == TAC_F32)
        s->wide[k] = item->data;
    return TAC_OK;
}

static state8 state_of(tac_optimizer *o)
{
    state8 s = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    const tac_state_visitor v = {take, &s, NULL};
    CHECK_OK(tac_optimizer_walk(o, &v));
    return s;
}

/* Elements of a moment that are farther off than bitsandbytes' tests allow. */
static size_t mismatches(const state8 *narrow, const state8 *wide, int k,
                         size_t n)
{
    const float *map = tac_quant_map(k == 0);
    size_t bad = 0;
    for (size_t i = 0; i < n; ++i) {
        const double a = (double)map[narrow->code[k][i]] *
                         (double)narrow->absmax[k][i / TAC_QUANT_BLOCK];
        const double b = (double)wide->wide[k][i];
        bad += !(fabs(a - b) <= 3e-3 + 1e-3 * fabs(b));
    }
    return bad;
}

/* Returns the mean relative difference: values near 0 make it jump about, so
 * that it is judged over the run. */
static double compare_values(const eng_world *a, const eng_world *b,
                             uint64_t step)
{
    double sum = 0, relative = 0;
    for (size_t i = 0; i < count(a); ++i) {
        const double x = (double)values(a)[i], y = (double)values(b)[i];
        sum += fabs(x - y);
        relative += fabs(x - y) / (fabs(x) + 1e-9);
    }
    const double n = (double)count(a);
    CHECK_MSG(sum / n < 6e-5, "step %llu: mean difference %.3g",
              (unsigned long long)step, sum / n);
    return relative / n;
}

/* As there, both start each step from the same values. */
static void test_8_bit(void)
{
    eng_world a = one(NULL, TAC_F32, 2, 1024, 32);
    eng_world b = one(NULL, TAC_F32, 2, 1024, 32);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW8BIT);
    tac_optimizer *x = NULL, *y = NULL;
    const size_t bytes = count(&a) * sizeof(float);
    double relative = 0;
    CHECK_OK(tac_optimizer_create(a.params, &c, &x));
    c.min_8bit_size = SIZE_MAX; /* f32 moments, the same decay */
    CHECK_OK(tac_optimizer_create(b.params, &c, &y));
    for (size_t i = 0; i < count(&a); ++i)
        values(&a)[i] = values(&b)[i] = (float)(0.1 * normal(1, i));
    for (uint64_t step = 0; step < 50; ++step) {
        set_grads(&a, step, 0.01);
        memcpy(grads(&b), grads(&a), bytes);
        CHECK_OK(tac_optimizer_step(x, NULL));
        CHECK_OK(tac_optimizer_step(y, NULL));
        const state8 narrow = state_of(x), wide = state_of(y);
        CHECK(mismatches(&narrow, &wide, 0, count(&a)) < 20);
        CHECK(mismatches(&narrow, &wide, 1, count(&a)) < 20);
        relative += compare_values(&b, &a, step) / 50;
        memcpy(values(&a), values(&b), bytes);
    }
    CHECK_MSG(relative < 6e-4, "mean relative difference %.3g", relative);
    tac_optimizer_destroy(x);
    tac_optimizer_destroy(y);
    eng_close(&a);
    eng_close(&b);
}

/* ---------------------------------------------- fused against reference */

/* 278011 elements, seven steps, decay; allowed: 1e-3 there, 1e-6 here. */
static void test_fused(tac_optimizer_kind kind, float scale)
{
    eng_world w = one(NULL, TAC_F32, 2, 1, 278011);
    tac_optimizer_config c = tac_optimizer_defaults(kind);
    const size_t shape[2] = {1, 278011};
    ora_tensor o = ora_make(2, shape);
    tac_optimizer *x = NULL;
    double most = 0;
    c.weight_decay = 0.1;
    if (kind == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
    CHECK_OK(tac_optimizer_create(w.params, &c, &x));
    CHECK_OK(tac_optimizer_set_grad_scale(x, &scale, NULL));
    for (size_t i = 0; i < o.n; ++i)
        o.p[i] = (double)(values(&w)[i] = (float)normal(7, i));
    tac_optimizer_config r = c;
    ora_round(&r, TAC_F32);
    for (uint64_t step = 0; step < 7; ++step) {
        set_grads(&w, step, (double)scale);
        for (size_t i = 0; i < o.n; ++i)
            o.g[i] = (double)grads(&w)[i] / (double)scale;
        CHECK_OK(tac_optimizer_step(x, NULL));
        ora_step(&o, &r, isnan(c.lr) ? 1 : c.lr, c.weight_decay);
    }
    for (size_t i = 0; i < o.n; ++i)
        most = fmax(most, fabs((double)values(&w)[i] - o.p[i]) /
                              fmax(1, fabs(o.p[i])));
    CHECK_MSG(most <= 1e-6, "%s, scale %g: off by %.3g",
              tac_optimizer_kind_name(kind), (double)scale, most);
    ora_free(&o);
    tac_optimizer_destroy(x);
    eng_close(&w);
}

/* ------------------------------------------------------- hard gradients */

static tac_optimizer_config config_of(int k)
{
    tac_optimizer_config c = tac_optimizer_defaults((tac_optimizer_kind)k);
    if (k == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
    if (k != TAC_OPTIMIZER_ADAFACTOR) c.lr = 0.01;
    return c;
}

static int all_finite(const eng_world *w)
{
    for (size_t i = 0; i < count(w); ++i)
        if (!isfinite(values(w)[i])) return 0;
    return 1;
}

/* A gradient of 0 for 100 steps: no 0/0, in any type. */
static void test_zeros(int k, tac_dtype t)
{
    eng_world w = one(NULL, t, 2, 80, 65);
    const tac_optimizer_config c = config_of(k);
    tac_optimizer *o = NULL;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    eng_fill(t, tac_params_values(w.params), count(&w), 3, 3);
    for (int i = 0; i < 100; ++i) CHECK_OK(tac_optimizer_step(o, NULL));
    for (size_t i = 0; i < count(&w); ++i) {
        const double x = eng_get(t, tac_params_values(w.params), i);
        if (!CHECK(fabs(x) <= fabs(eng_value(3, 3, i)) * 1.01)) break;
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* Noisy quadratics of curvatures over some decades: finite, and downhill.
 * (8-bit moments are only the first over more than three: where exp_avg_sq
 * becomes the code of 0 and exp_avg does not, steps are too large.) */
static void test_quadratics(int k, unsigned decades)
{
    eng_world w = one(NULL, TAC_F32, 2, 72, 58);
    const tac_optimizer_config c = config_of(k);
    const double curvature[5] = {1, 0.1, 1e-2, 1e-3, 1e-4};
    tac_optimizer *o = NULL;
    double first = 0, last = 0;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    for (size_t i = 0; i < count(&w); ++i) values(&w)[i] = (float)normal(5, i);
    for (uint64_t step = 0; step < 2000; ++step) {
        double loss = 0;
        for (size_t i = 0; i < count(&w); ++i) {
            const double a = curvature[i % decades];
            const double x = (double)values(&w)[i];
            const double noise = (double)((step * 7 + i) % 11) - 5;
            grads(&w)[i] = (float)(a * x + 0.01 * a * noise);
            loss += 0.5 * a * x * x;
        }
        first = step == 0 ? loss : first;
        last = loss;
        CHECK_OK(tac_optimizer_step(o, NULL));
    }
    CHECK(all_finite(&w));
    if (decades <= 3 || k != TAC_OPTIMIZER_ADAMW8BIT)
        CHECK_MSG(last < 0.1 * first, "%s: from %g to %g",
                  tac_optimizer_kind_name(c.kind), first, last);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* ------------------------------------------------- clipping and scales */

/* The threshold is in units of the true gradient, whatever the scale. */
static void test_clip(int k)
{
    float after[2][400];
    for (int i = 0; i < 2; ++i) {
        eng_world w = one(NULL, TAC_F32, 2, 20, 20);
        const tac_optimizer_config c = config_of(k);
        const float scale = i == 0 ? 1.0F : 65536.0F;
        tac_optimizer *o = NULL;
        CHECK_OK(tac_optimizer_create(w.params, &c, &o));
        eng_fill(TAC_F32, values(&w), 400, 1, 1);
        for (uint64_t step = 0; step < 4; ++step) {
            set_grads(&w, step, (double)scale);
            CHECK_OK(tac_optimizer_set_grad_scale(o, &scale, NULL));
            if (step % 2) CHECK_OK(tac_optimizer_check(o, NULL));
            CHECK_OK(tac_optimizer_clip(o, 0.2, NULL));
            if (step == 3) CHECK_OK(tac_optimizer_unscale(o, NULL));
            CHECK_OK(tac_optimizer_step(o, NULL));
        }
        memcpy(after[i], values(&w), sizeof after[i]);
        tac_optimizer_destroy(o);
        eng_close(&w);
    }
    for (size_t i = 0; i < 400; ++i)
        if (!CHECK_NEAR((double)after[0][i], (double)after[1][i], 1e-6)) break;
}

/* ------------------------------------------------------------- schedules */

/* The rate that a step used, seen through plain SGD on a gradient of 1. Steps
 * that found inf neither move nor advance; the schedule is llm.c's. */
static void test_schedule(void)
{
    static const double want[] = {0.5,     1,       1,   .965746,
                                  .868198, .722208, .55, .377792,
                                  .231802, .134254, .1,  .1};
    const tac_schedule s = {TAC_SCHEDULE_COSINE, 1, 0.1, 2, 10};
    const tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    eng_world w = one(NULL, TAC_F32, 1, 1, 0);
    tac_optimizer *o = NULL;
    tac_schedule bad = s;
    size_t applied = 0;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    CHECK_OK(tac_optimizer_set_schedule(o, &s));
    for (int step = 0; step < 17; ++step) {
        const int skip = step % 3 == 2;
        values(&w)[0] = 0;
        grads(&w)[0] = skip ? INFINITY : 1;
        CHECK_OK(tac_optimizer_check(o, NULL));
        CHECK_OK(tac_optimizer_step(o, NULL));
        CHECK_NEAR(-(double)values(&w)[0], skip ? 0 : want[applied], 1e-6);
        applied += !skip;
        CHECK_EQ(tac_optimizer_scalars(o)->applied, applied);
        CHECK_OK(tac_optimizer_clear_found_inf(o, NULL));
    }
    bad.lr = -1;
    CHECK_STATUS(tac_optimizer_set_schedule(o, &bad), TAC_ERR_ARG);
    CHECK_OK(tac_optimizer_set_schedule(o, NULL));
    CHECK_OK(tac_optimizer_set_lr(o, 0.25, NULL));
    values(&w)[0] = 0, grads(&w)[0] = 1;
    CHECK_OK(tac_optimizer_step(o, NULL));
    CHECK_EQ_F64(-(double)values(&w)[0], 0.25);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* --------------------------------------------------- what is not finite */

static void find(const char *isa, size_t n, size_t at, float what)
{
    eng_world w = one(isa, TAC_F32, 1, n, 0);
    const tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    const float scale = 4;
    tac_optimizer *o = NULL;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    for (int unscale = 0; unscale < 2; ++unscale) {
        for (size_t i = 0; i < n; ++i) grads(&w)[i] = (float)(16 << i % 3);
        CHECK_OK(tac_optimizer_clear_found_inf(o, NULL));
        CHECK_OK(tac_optimizer_set_grad_scale(o, &scale, NULL));
        if (at < n) grads(&w)[at] = what;
        if (at < n) grads(&w)[n - 1] = what; /* perhaps a later one */
        CHECK_OK(unscale ? tac_optimizer_unscale(o, NULL)
                         : tac_optimizer_check(o, NULL));
        CHECK_EQ_F64((double)tac_optimizer_scalars(o)->found_inf,
                     at < n ? 1.0 : 0.0);
        CHECK_EQ_U64(*tac_optimizer_first_bad(o), at < n ? at : UINT64_MAX);
        const float divide = unscale ? 4 : 1;
        for (size_t i = 0; i < n; ++i) {
            const float want = (float)(16 << i % 3) / divide;
            if (isfinite(grads(&w)[i]) && grads(&w)[i] != want)
                CHECK_FAIL("gradient %zu is %g", i, (double)grads(&w)[i]);
        }
        CHECK_EQ_F64((double)tac_optimizer_scalars(o)->grad_scale,
                     unscale ? 1 : 4);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

static void test_find(const char *isa)
{
    static const size_t sizes[] = {1, 3, 16, 33, 40000};
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 5; ++i) {
        find(isa, sizes[i], SIZE_MAX, 0);
        for (int k = 0; k < 3; ++k) {
            find(isa, sizes[i], 0, bad[k]);
            find(isa, sizes[i], sizes[i] - 1, bad[k]);
            find(isa, sizes[i], sizes[i] / 2, bad[k]);
        }
    }
}

/* A scale below 1 can make a finite gradient infinite. */
static void test_small_scale(void)
{
    eng_world w = one(NULL, TAC_F32, 1, 20, 0);
    const tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    const float scale = 0.125F;
    tac_optimizer *o = NULL;
    CHECK_OK(tac_optimizer_create(w.params, &c, &o));
    CHECK_OK(tac_optimizer_set_grad_scale(o, &scale, NULL));
    grads(&w)[7] = 3e38F;
    CHECK_OK(tac_optimizer_unscale(o, NULL));
    CHECK_EQ_F64((double)tac_optimizer_scalars(o)->found_inf, 1.0);
    CHECK_EQ_U64(*tac_optimizer_first_bad(o), 7);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    test_8_bit();
    for (int k = TAC_OPTIMIZER_SGD; k <= TAC_OPTIMIZER_ADAMW8BIT; ++k) {
        if (k != TAC_OPTIMIZER_ADAMW8BIT) {
            test_fused((tac_optimizer_kind)k, 1);
            test_fused((tac_optimizer_kind)k, 0.125F);
            test_zeros(k, TAC_F64);
        }
        test_zeros(k, TAC_F32);
        test_zeros(k, TAC_F16);
        test_quadratics(k, 3);
        if (!TESTS_SLOW) test_quadratics(k, 5);
        test_clip(k);
    }
    test_schedule();
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->available(why, sizeof why)) test_find(sets[i]->name);
    test_small_scale();
    return tac_check_summary();
}
