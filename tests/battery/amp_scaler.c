/* amp_scaler.c: random runs of a scaler with one to three optimizers against a
 * model in plain C: scale, growth tracker, counters, applied steps, giving up,
 * with saving and loading in between. */
#include <float.h>

#include "amp_test.h"
#include "tac_check.h"

enum { RUNS = 150, STEPS = 60, OPTIMIZERS = 3, COUNT = 9 };

/* The definition, in f64; what is f32 in the device is rounded to it. */
typedef struct model {
    double scale, growth, backoff, min, max;
    long interval, tracker, updates, skipped, consecutive;
} model;

static double f32(double x)
{
    return (double)(float)x;
}

static void model_update(model *m, int found)
{
    m->updates += 1;
    if (found) {
        m->skipped += 1;
        m->consecutive += 1;
        m->tracker = 0;
        if (m->interval > 0) {
            m->scale = f32(m->scale * f32(m->backoff));
            if (m->scale < f32(m->min)) m->scale = f32(m->min);
        }
        return;
    }
    m->consecutive = 0;
    if (m->interval == 0 || ++m->tracker < m->interval) return;
    m->tracker = 0;
    const double grown = f32(m->scale * f32(m->growth));
    if (isfinite(grown)) m->scale = grown < f32(m->max) ? grown : f32(m->max);
}

typedef struct run {
    uint64_t seed, drawn;
    eng_world w;
    size_t n;
    tac_params *params[OPTIMIZERS];
    tac_optimizer *o[OPTIMIZERS];
    uint64_t applied[OPTIMIZERS];
    tac_scaler_config config;
    tac_scaler *s;
    model m;
} run;

static double draw(run *r)
{
    const tac_rng_key key = {r->seed, TAC_STREAM_USER, 77};
    return tac_rng_uniform(&key, r->drawn++);
}

static size_t draw_below(run *r, size_t n)
{
    return (size_t)(draw(r) * (double)n);
}

static double pick(run *r, const double *list, size_t n)
{
    return list[draw_below(r, n)];
}

static void draw_config(run *r)
{
    const double growths[] = {2, 4, 16, 1.5, 1.001};
    const double backoffs[] = {0.5, 0.25, 0.9, 1e-3};
    const double mins[] = {1e-20, 1e-4, 1, 3};
    const double maxs[] = {1e4, 16777216, FLT_MAX, INFINITY};
    const double inits[] = {3, 128, 1e4};
    const double intervals[] = {0, 1, 2, 3, 7};
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;

    c.growth_factor = pick(r, growths, 5);
    c.backoff_factor = pick(r, backoffs, 4);
    c.min_scale = pick(r, mins, 4);
    c.max_scale = pick(r, maxs, 4);
    c.init_scale = pick(r, inits, 3);
    c.growth_interval = (int64_t)pick(r, intervals, 5);
    c.max_skips = (int64_t)draw_below(r, 6);
    r->config = c;
    r->m = (model){f32(c.init_scale),
                   c.growth_factor,
                   c.backoff_factor,
                   c.min_scale,
                   c.max_scale,
                   (long)c.growth_interval,
                   0,
                   0,
                   0,
                   0};
}

static int open_optimizer(run *r, size_t i)
{
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    const size_t shape[1] = {COUNT};

    return CHECK_OK(tac_params_create(r->w.dev, TAC_F32, &r->params[i])) &&
           CHECK_OK(tac_params_add(r->params[i], "x", 1, shape,
                                   (tac_init){TAC_INIT_ZEROS, 0}, 0, NULL)) &&
           CHECK_OK(tac_params_layout(r->params[i], NULL, NULL, NULL)) &&
           CHECK_OK(tac_optimizer_create(r->params[i], &c, &r->o[i]));
}

static int open_run(run *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->w = eng_open(NULL, TAC_F32, 1);
    draw_config(r);
    r->n = 1 + draw_below(r, OPTIMIZERS);
    for (size_t i = 0; i < r->n; ++i)
        if (!open_optimizer(r, i)) return 0;
    return CHECK_OK(tac_scaler_create(r->w.dev, &r->config, &r->s));
}

static void close_run(run *r)
{
    tac_scaler_destroy(r->s);
    for (size_t i = 0; i < r->n; ++i) {
        tac_optimizer_destroy(r->o[i]);
        tac_params_destroy(r->params[i]);
    }
    eng_close(&r->w);
}

/* Gradients of 1, scaled, with now and then one that is not finite. */
static int draw_gradients(run *r, size_t i)
{
    const double bad[] = {INFINITY, -INFINITY, NAN};
    float *g = tac_params_grad(r->params[i], 0);
    const int spoil = draw(r) < 0.25;

    for (size_t e = 0; e < COUNT; ++e) g[e] = 1.0F;
    if (spoil) g[draw_below(r, COUNT)] = (float)pick(r, bad, 3);
    return spoil;
}

/* Checks and steps one optimizer in one of the ways; 1: it found something. */
static int step_one(run *r, size_t i)
{
    const int found = draw_gradients(r, i);
    const size_t way = draw_below(r, 3);

    if (way == 0) CHECK_OK(tac_scaler_unscale(r->s, r->o[i], NULL));
    if (way == 1) CHECK_OK(tac_scaler_check(r->s, r->o[i], NULL));
    CHECK_OK(tac_scaler_step(r->s, r->o[i], NULL));
    r->applied[i] += !found;
    CHECK_EQ_U64(tac_optimizer_scalars(r->o[i])->applied, r->applied[i]);
    return found;
}

/* A new scaler, with other settings, takes over the state. The limits are no
 * state. */
static void reload(run *r)
{
    static amp_store f;
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;
    tac_scaler *s = NULL;

    c.min_scale = r->config.min_scale;
    c.max_scale = r->config.max_scale;
    c.max_skips = r->config.max_skips;
    c.init_scale = r->config.init_scale;
    f.n = 0;
    if (!CHECK_OK(tac_scaler_create(r->w.dev, &c, &s))) return;
    CHECK_OK(amp_save(tac_scaler_walk, r->s, &f));
    CHECK_OK(amp_load(tac_scaler_walk, s, &f));
    tac_scaler_destroy(r->s);
    r->s = s;
}

static void compare(run *r)
{
    const model *m = &r->m;
    const int over =
        r->config.max_skips > 0 && m->consecutive >= (long)r->config.max_skips;
    tac_scaler_report got;

    CHECK_STATUS(tac_scaler_poll(r->s, &got), over ? TAC_ERR_DIVERGED : TAC_OK);
    CHECK_EQ_F64(got.scale, m->scale);
    CHECK_EQ_F64((double)*tac_scaler_scale(r->s), m->scale);
    CHECK_EQ((long)got.updates, m->updates);
    CHECK_EQ((long)got.skipped, m->skipped);
    CHECK_EQ((long)got.consecutive, m->consecutive);
    CHECK_EQ_F64(amp_state(r->s, "scaler._growth_tracker"), (double)m->tracker);
}

static void set_by_hand(run *r)
{
    const double wanted = exp2(30.0 * draw(r) - 5.0);
    double v = wanted;

    if (v < r->config.min_scale) v = r->config.min_scale;
    if (v > r->config.max_scale) v = r->config.max_scale;
    CHECK_OK(tac_scaler_set_scale(r->s, wanted, NULL));
    r->m.scale = f32(v);
}

static void one_run(uint64_t seed)
{
    run r;
    const long before = tac_check_failed();

    if (open_run(&r, seed)) {
        for (int k = 0; k < STEPS; ++k) {
            int found = 0;
            for (size_t i = 0; i < r.n; ++i) found |= step_one(&r, i);
            CHECK_OK(tac_scaler_update(r.s, NULL));
            model_update(&r.m, found);
            compare(&r);
            if (draw(&r) < 0.05) reload(&r);
            if (draw(&r) < 0.05) set_by_hand(&r);
        }
    }
    if (tac_check_failed() > before)
        fprintf(stderr, "in the run with seed %llu\n",
                (unsigned long long)seed);
    close_run(&r);
}

int main(void)
{
    for (uint64_t seed = 1; seed <= RUNS; ++seed) one_run(seed);
    return tac_check_summary();
}
