/* experiments_logistic.c: the logistic regression of E1 and E2. Its gradient
 * against differences, its minimum against neighbours, local SGD on threads
 * against a simulation in one loop, all in f64. */
#include <math.h>
#include <stdlib.h>

#include "experiment_logistic.h"
#include "tac_check.h"
#include "tacit/rng.h"

enum { WORKERS_MAX = 8, D_MAX = 64 };

static tac_context *ctx;
static logistic p;

static double at(uint64_t stream, size_t j)
{
    const tac_rng_key key = {3, TAC_STREAM_USER, stream};
    return 2 * tac_rng_uniform(&key, j) - 1;
}

static void problem(void)
{
    CHECK_EQ((int64_t)(p.n % 6), 0); /* each class a multiple of 3 */
    CHECK(p.d == 50 && p.f_best < p.f_zero && p.accuracy > 0.6);
    CHECK_NEAR(p.f_zero, log(2), 1e-12);
    for (size_t i = 0; i < p.n; i++) { /* the constant has the label's sign */
        const float constant = p.rows[i * p.d + p.d - 1];
        if (!CHECK(i < p.n / 2 ? constant > 0 : constant < 0)) return;
    }
}

static void gradient(void)
{
    double x[D_MAX], g[D_MAX] = {0};
    for (size_t j = 0; j < p.d; j++) x[j] = at(1, j);
    logistic_gradient_sum(&p, x, 5, 60, g);
    for (size_t j = 0; j < p.d; j++) {
        const double kept = x[j], e = 1e-5;
        x[j] = kept + e;
        const double up = logistic_loss_sum(&p, x, 5, 60);
        x[j] = kept - e;
        const double down = logistic_loss_sum(&p, x, 5, 60);
        x[j] = kept;
        CHECK_NEAR(g[j], (up - down) / 2 / e, 1e-6);
    }
}

static void hessian(void)
{
    double x[D_MAX], h[D_MAX * D_MAX], up[D_MAX], down[D_MAX];
    for (size_t j = 0; j < p.d; j++) x[j] = at(2, j);
    logistic_hessian(&p, x, 0, p.n, h);
    for (size_t k = 0; k < p.d; k += 7) {
        const double kept = x[k], e = 1e-5;
        for (size_t j = 0; j < p.d; j++) up[j] = down[j] = 0;
        x[k] = kept + e;
        logistic_gradient_sum(&p, x, 0, p.n, up);
        x[k] = kept - e;
        logistic_gradient_sum(&p, x, 0, p.n, down);
        x[k] = kept;
        for (size_t j = 0; j < p.d; j++)
            CHECK_NEAR(h[j * p.d + k] - (j == k ? p.lambda : 0),
                       (up[j] - down[j]) / 2 / e / (double)p.n, 1e-7);
    }
}

static void solve(void)
{
    double a[9] = {4, 2, 0.5, 2, 5, 1, 0.5, 1, 3}, s[3];
    const double b[3] = {4 - 4 + 1.5, 2 - 10 + 3, 0.5 - 2 + 9};
    CHECK(logistic_solve(3, a, b, s)); /* (1, -2, 3) */
    CHECK_NEAR(s[0], 1, 1e-12);
    CHECK_NEAR(s[1], -2, 1e-12);
    CHECK_NEAR(s[2], 3, 1e-12);
    double singular[4] = {1, 2, 2, 4};
    CHECK(!logistic_solve(2, singular, b, s));
}

/* To second order f rises by s'Fs/2 along any s. */
static void minimum(void)
{
    CHECK(p.gradient < 1e-9);
    CHECK_NEAR(logistic_value(&p, p.best), p.f_best, 0);
    for (uint64_t k = 0; k < 5; k++) {
        double x[D_MAX], h[D_MAX * D_MAX], rise = 0;
        const double e = 1e-3;
        logistic_hessian(&p, p.best, 0, p.n, h);
        for (size_t i = 0; i < p.d; i++) {
            x[i] = p.best[i] + e * at(10 + k, i);
            for (size_t j = 0; j < p.d; j++)
                rise += h[i * p.d + j] * at(10 + k, i) * at(10 + k, j) / 2;
        }
        CHECK_NEAR((logistic_value(&p, x) - p.f_best) / e / e / rise, 1, 0.01);
    }
}

/* ---- local SGD -----------------------------------------------------------
 */

/* What logistic_train must do, in one loop: the iterate at the end. */
static void simulate(const logistic_run *r, double *mean)
{
    static double x[WORKERS_MAX][D_MAX];
    double sum[D_MAX] = {0}, weight = 0;
    const size_t k = (size_t)r->workers;
    for (size_t w = 0; w < k; w++)
        for (size_t j = 0; j < p.d; j++) x[w][j] = r->from_best ? p.best[j] : 0;
    for (int64_t t = 1; t <= r->steps; t++) {
        const double rate = fmin(r->rate, r->decay / (double)t);
        for (size_t w = 0; w < k; w++) {
            const size_t from = r->sorted ? p.n * w / k : 0;
            const size_t to = r->sorted ? p.n * (w + 1) / k : p.n;
            const tac_rng_key key = {r->seed, TAC_STREAM_USER + (uint32_t)w,
                                     (uint64_t)t};
            double g[D_MAX] = {0};
            const size_t n = r->batch ? (size_t)r->batch : to - from;
            for (size_t b = 0; b < n; b++) {
                const size_t i =
                    from + (r->batch ? tac_rng_below(&key, b, to - from) : b);
                logistic_gradient_sum(&p, x[w], i, i + 1, g);
            }
            for (size_t j = 0; j < p.d; j++)
                x[w][j] -= rate * (g[j] / (double)n + p.lambda * x[w][j]);
        }
        for (size_t j = 0; j < p.d; j++) {
            double all = 0;
            for (size_t w = 0; w < k; w++) all += x[w][j] / (double)k;
            for (size_t w = 0; w < k && (t % r->every == 0 || t == r->steps);
                 w++)
                x[w][j] = all;
            sum[j] += (double)(t * t) * all;
            mean[j] = all;
        }
        weight += (double)(t * t);
    }
    for (size_t j = 0; j < p.d && r->averaged; j++) mean[j] = sum[j] / weight;
}

static void compare(logistic_run r, const char *what)
{
    double want[D_MAX], worst = 0;
    logistic_outcome o;
    r.p = &p;
    simulate(&r, want);
    if (!CHECK_OK(logistic_train(&r, &o))) return;
    for (size_t j = 0; j < p.d; j++)
        worst = fmax(worst, fabs(o.mean[j] - want[j]));
    CHECK_MSG(worst < (r.from_best ? 1e-7 : 2e-5), "%s: off by %g", what,
              worst);
    CHECK_EQ(o.steps, r.steps);
    CHECK_EQ(o.looks[o.n_looks - 1].step, r.steps);
    CHECK_NEAR(o.looks[o.n_looks - 1].gap, logistic_value(&p, want) - p.f_best,
               1e-6);
    CHECK_EQ(o.syncs, (r.steps + r.every - 1) / r.every);
    CHECK_NEAR(o.bytes, (double)o.syncs * 4 * (double)p.d, 0);
    logistic_outcome_free(&o);
}

static void training(void)
{
    compare((logistic_run){.workers = 1,
                           .every = 1,
                           .steps = 33,
                           .batch = 1,
                           .rate = 2,
                           .decay = 20,
                           .averaged = 1,
                           .seed = 5},
            "alone");
    compare((logistic_run){.workers = 3,
                           .every = 4,
                           .steps = 50,
                           .batch = 3,
                           .rate = 2,
                           .decay = 30,
                           .averaged = 1,
                           .seed = 6},
            "three workers");
    compare((logistic_run){.workers = 3,
                           .every = 7,
                           .steps = 20,
                           .batch = 0,
                           .sorted = 1,
                           .rate = 1,
                           .decay = INFINITY,
                           .from_best = 1,
                           .look_every = 7},
            "whole shards by label");
    compare((logistic_run){.workers = 2,
                           .every = 100,
                           .steps = 40,
                           .batch = 2,
                           .rate = 1,
                           .decay = INFINITY,
                           .seed = 7},
            "one average");
}

/* Whole data, no chance: the target is met where a longer run passes it. */
static void target(void)
{
    logistic_run r = {.p = &p,
                      .workers = 2,
                      .every = 2,
                      .steps = 400,
                      .rate = 2,
                      .decay = INFINITY,
                      .look_every = 1};
    logistic_outcome all, some;
    if (!CHECK_OK(logistic_train(&r, &all))) return;
    CHECK(isinf(all.reached) && all.n_looks == 400);
    r.target = all.looks[99].gap * 1.0001;
    if (!CHECK_OK(logistic_train(&r, &some))) return;
    CHECK_EQ(some.steps, 100);
    CHECK(some.reached > 99 && some.reached <= 100);
    logistic_outcome_free(&all);
    logistic_outcome_free(&some);
    r.settled = 1e-3;
    r.target = 0;
    r.look_every = 50;
    r.steps = 100000;
    r.from_best = 1;
    r.sorted = 1;
    if (!CHECK_OK(logistic_train(&r, &some))) return;
    CHECK(some.settled && some.steps < r.steps);
    logistic_outcome_free(&some);
}

static void mistakes(void)
{
    logistic_outcome o;
    logistic q;
    const logistic_run none = {.p = &p, .workers = 0, .every = 1, .steps = 1};
    volatile sig_atomic_t stop = 1;
    const logistic_run stopped = {.p = &p,
                                  .workers = 2,
                                  .every = 1,
                                  .steps = 10,
                                  .batch = 1,
                                  .rate = 1,
                                  .decay = 1,
                                  .stop = &stop};
    CHECK(logistic_train(&none, &o) == TAC_ERR_ARG);
    logistic_outcome_free(&o);
    CHECK(logistic_train(&stopped, &o) == TAC_ERR_INTERRUPTED);
    logistic_outcome_free(&o);
    CHECK(logistic_open(ctx, "synth:12", NULL, 0, 50, 0, &q) == TAC_ERR_DATA);
}

static void quiet(void *arg, tac_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

int main(void)
{
    tac_context_config c = TAC_CONTEXT_CONFIG_INIT;
    c.log = quiet;
    if (!CHECK_OK(tac_context_create(&c, &ctx))) return tac_check_summary();
    if (CHECK_OK(logistic_open(ctx, "synth:1200", NULL, 150, 3, 0.02, &p))) {
        problem();
        gradient();
        hessian();
        solve();
        minimum();
        training();
        target();
        mistakes();
    }
    logistic_close(&p);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
