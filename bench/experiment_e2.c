/* experiment_e2.c: where local SGD ends when workers see different data.
 *
 * With whole shards for batches there is no chance in it: the mean iterate
 * comes to rest at x_H. To first order in the rate g
 *
 *   x_H - x* = g (H-1)/2 F^-1 mean_m(A_m d_m),
 *
 * d_m and A_m gradient and Hessian of shard m at the minimum x*, F the mean of
 * the A_m: a worker's h-th gradient is that at x - g h d_m. (For quadratics in
 * one dimension that is the law of docs/localsgd.md's oracles.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "experiment_e2.h"

enum { HS = 7, RATES = 3 };
static const double LAMBDA = 0.01;

typedef struct rest {
    double rate;
    int64_t every;
    double distance, theory, gap; /* |x_H - x*|, first order, f - f* */
    int64_t steps;
    int settled;
} rest;

typedef struct plan {
    exp_bench *b;
    logistic p;
    double *slope; /* (d) F^-1 mean_m(A_m d_m) */
    rest rests[RATES * HS];
    int n_rates, n_every;
} plan;

static double norm(const double *x, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += x[j] * x[j];
    return sqrt(sum);
}

/* ---- theory --------------------------------------------------------------
 */

/* slope += A_m d_m / workers for shard m. */
static void add_shard(plan *p, size_t m, size_t workers, double *h, double *g)
{
    const logistic *q = &p->p;
    const size_t d = q->d, from = q->n * m / workers;
    const size_t to = q->n * (m + 1) / workers;
    memset(g, 0, d * sizeof *g);
    logistic_gradient_sum(q, q->best, from, to, g);
    for (size_t j = 0; j < d; j++)
        g[j] = g[j] / (double)(to - from) + q->lambda * q->best[j];
    logistic_hessian(q, q->best, from, to, h);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            p->slope[i] += h[i * d + j] * g[j] / (double)workers;
}

static tac_status first_order(plan *p)
{
    const size_t d = p->p.d, workers = (size_t)p->b->o->ranks;
    double *h = malloc(d * (d + 1) * sizeof *h);
    p->slope = calloc(d, sizeof *p->slope);
    if (!h || !p->slope) {
        free(h);
        return tac_fail(p->b->ctx, TAC_ERR_NOMEM, "no memory for Hessians");
    }
    for (size_t m = 0; m < workers; m++) add_shard(p, m, workers, h, h + d * d);
    logistic_hessian(&p->p, p->p.best, 0, p->p.n, h);
    const int solved = logistic_solve(d, h, p->slope, p->slope);
    free(h);
    if (solved) return TAC_OK;
    return tac_fail(p->b->ctx, TAC_ERR_INTERNAL, "the Hessian is singular");
}

/* ---- measuring -----------------------------------------------------------
 */

/* A look each half of the slowest mode's time, after a synchronisation. */
static int64_t look_every(double rate, int64_t every)
{
    const int64_t steps = (int64_t)(0.5 / (rate * LAMBDA));
    return (steps / every + 1) * every;
}

static tac_status come_to_rest(const plan *p, rest *x)
{
    logistic_outcome o;
    const int64_t look = look_every(x->rate, x->every);
    const logistic_run r = {.p = &p->p,
                            .workers = (int)p->b->o->ranks,
                            .every = x->every,
                            .steps = 40 * look,
                            .sorted = 1,
                            .rate = x->rate,
                            .decay = INFINITY,
                            .from_best = 1,
                            .look_every = look,
                            .settled = 0.001,
                            .stop = p->b->stop};
    const tac_status s = logistic_train(&r, &o);
    if (s >= 0) {
        double *off = o.mean;
        for (size_t j = 0; j < p->p.d; j++) off[j] -= p->p.best[j];
        x->distance = norm(off, p->p.d);
        x->gap = o.looks[o.n_looks - 1].gap;
        x->steps = o.steps;
        x->settled = o.settled;
        x->theory =
            x->rate * (double)(x->every - 1) / 2 * norm(p->slope, p->p.d);
        exp_say(p->b, "E2 rate %g, H = %lld: distance %.4g", x->rate,
                (long long)x->every, x->distance);
    }
    logistic_outcome_free(&o);
    return s;
}

static void make_plan(plan *p)
{
    static const double rates[RATES] = {0.1, 0.2, 0.4};
    const int quick = p->b->o->quick;
    p->n_rates = quick ? 2 : RATES;
    p->n_every = quick ? 5 : HS;
    for (int i = 0; i < p->n_rates; i++)
        for (int k = 0; k < p->n_every; k++)
            p->rests[i * p->n_every + k] =
                (rest){.rate = rates[RATES - p->n_rates + i],
                       .every = (int64_t)1 << k};
}

static tac_status measure(plan *p)
{
    for (int k = 0; k < p->n_rates * p->n_every; k++)
        TAC_TRY(come_to_rest(p, &p->rests[k]));
    return TAC_OK;
}

/* ---- telling -------------------------------------------------------------
 */

static void tell_rests(exp_report *r, const plan *p)
{
    exp_table(r,
              "Whole shards: where the mean iterate comes to rest, %lld "
              "workers:",
              (long long)p->b->o->ranks);
    exp_column(r, "rate", "g", "%g");
    exp_column(r, "sync_every", "H", "%.0f");
    exp_column(r, "distance", "|x_H - x*|", "%.5f");
    exp_column(r, "distance_by_rate", "/ g", "%.4f");
    exp_column(r, "theory", "first order", "%.5f");
    exp_column(r, "by_theory", "ratio", "%.3f");
    exp_column(r, "gap", "f - f*", "%.3e");
    exp_column(r, "steps", "steps", "%.0f");
    exp_column(r, "settled", "at rest", NULL);
    for (int k = 0; k < p->n_rates * p->n_every; k++) {
        const rest *x = &p->rests[k];
        exp_row(r);
        exp_number(r, x->rate);
        exp_number(r, (double)x->every);
        exp_number(r, x->distance);
        exp_number(r, x->distance / x->rate);
        exp_number(r, x->theory);
        exp_number(r, x->theory > 0 ? x->distance / x->theory : NAN);
        exp_number(r, x->gap);
        exp_number(r, (double)x->steps);
        exp_text(r, x->settled || x->every == 1 ? "yes" : "no");
    }
}

/* ---- judging -------------------------------------------------------------
 */

static void judge_growth(exp_report *r, const plan *p)
{
    int grows = 1;
    for (int k = 0; k < p->n_rates * p->n_every; k++)
        if (k % p->n_every > 0 &&
            !(p->rests[k].distance > p->rests[k - 1].distance))
            grows = 0;
    exp_condition(r, grows,
                  "at every rate the distance grows from each H to the next, "
                  "up to %.4f at H = %lld",
                  p->rests[p->n_rates * p->n_every - 1].distance,
                  (long long)p->rests[p->n_every - 1].every);
}

/* Distances over rates, of different rates at the same H. */
static void judge_rate(exp_report *r, const plan *p)
{
    double worst = 1;
    int64_t at = 2;
    for (int k = 1; k < p->n_every && p->rests[k].every <= 8; k++) {
        const rest *small = &p->rests[k];
        const rest *large = &p->rests[(p->n_rates - 1) * p->n_every + k];
        const double q =
            (large->distance / large->rate) / (small->distance / small->rate);
        if (!(fabs(log(q)) <= fabs(log(worst)))) worst = q, at = small->every;
    }
    exp_condition(r, fabs(log(worst)) <= log(1.15),
                  "up to H = 8 distance/rate changes at most by a factor of "
                  "%.3f between g = %g and %g (at H = %lld)",
                  worst, p->rests[0].rate,
                  p->rests[(p->n_rates - 1) * p->n_every].rate, (long long)at);
}

static void judge_theory(exp_report *r, const plan *p)
{
    double worst = 0;
    for (int k = 1; k < p->n_every && p->rests[k].every <= 8; k++) {
        const rest *x = &p->rests[k]; /* of the smallest rate */
        const double off = fabs(x->distance / x->theory - 1);
        if (!(off <= worst)) worst = off;
    }
    exp_condition(r, worst <= 0.05,
                  "at g = %g and up to H = 8 the distance is within %.1f %% of "
                  "first-order theory",
                  p->rests[0].rate, 100 * worst);
}

static void tell_problem(exp_report *r, const plan *p)
{
    exp_report_seeds(r, exp_seeds(p->b));
    exp_ran(r,
            "Logistic regression on labels %d and %d of %s, 7 x 7 blocks: %zu "
            "samples, %zu parameters, lambda = %g; f* = %.10f by Newton's "
            "method (|gradient| %.0e).",
            p->p.first, p->p.second, p->b->o->data, p->p.n, p->p.d, p->p.lambda,
            p->p.f_best, p->p.gradient);
    exp_ran(r,
            "Half of the workers have the one label, half the other. Plain SGD "
            "with a constant rate g, from the minimum on, once with whole "
            "shards for batches, until the mean iterate rests; once with %d "
            "samples a step and worker, %lld seeds.",
            EXP_E2_BATCH, (long long)exp_seeds(p->b));
}

tac_status exp_e2(exp_bench *b, exp_report *r)
{
    plan p = {.b = b};
    exp_e2_floor floors[EXP_E2_FLOORS];
    const exp_options *o = b->o;
    if (o->ranks < 2 || o->ranks % 2)
        return tac_fail(b->ctx, TAC_ERR_CONFIG,
                        "E2 gives half of the workers each label: an even "
                        "number of --ranks");
    TAC_TRY(logistic_open(b->ctx, o->data, o->data_dir, o->quick ? 2000 : 0,
                          (size_t)o->ranks, LAMBDA, &p.p));
    make_plan(&p);
    tac_status s = first_order(&p);
    if (s >= 0) s = measure(&p);
    if (s >= 0) s = exp_e2_floors(b, &p.p, floors);
    if (s >= 0) {
        tell_problem(r, &p);
        tell_rests(r, &p);
        exp_e2_tell_floors(r, floors);
        judge_growth(r, &p);
        judge_rate(r, &p);
        judge_theory(r, &p);
        exp_e2_judge_floors(r, floors);
    }
    free(p.slope);
    logistic_close(&p.p);
    return s;
}
