/* experiment_e1.c: how many steps K workers need that average every H steps,
 * where all see the same data.
 *
 * The step is min(a, c / (lambda t)), as in Stich's theorem, with a and c
 * searched for every K and H alike, and the iterate is the theorem's: the mean
 * over workers and steps with weights t^2. */
#include <math.h>
#include <stdio.h>

#include "experiment.h"
#include "experiment_logistic.h"

enum { KS = 7, HS = 8, SEARCH_SEED = 1001, BATCH = 4, CAP = 40000 };

/* T for one K and H. `every` 0: one average, at the end. */
typedef struct cell {
    int workers;
    int64_t every;
    double rate, decay;       /* decay in units of 1/lambda */
    double steps, steps_sd;   /* to the target; INFINITY: not reached */
    double syncs, efficiency; /* T(1) / (K T) */
} cell;

typedef struct plan {
    exp_bench *b;
    logistic p;
    double share, target; /* of f(0) - f*; in all */
    double rates[2], decays[4];
    int n_rates, n_decays;
    cell cells[KS * HS];
    int n;
} plan;

static void add(plan *p, int workers, int64_t every)
{
    p->cells[p->n++] = (cell){.workers = workers, .every = every};
}

static void make_cells(plan *p)
{
    const int quick = p->b->o->quick;
    add(p, 1, 1);
    for (int k = 2, i = 1; k <= p->b->o->ranks && i < KS; k *= 2, i++) {
        for (int64_t h = 1; h <= 64; h *= quick ? 8 : 2) add(p, k, h);
        add(p, k, 0);
    }
}

static void make_rates(plan *p)
{
    static const double decays[] = {0.125, 0.25, 0.5, 1};
    const int n = p->b->o->quick ? 2 : 4;
    p->rates[p->n_rates++] = 4;
    p->rates[p->n_rates++] = 16;
    for (int k = 0; k < n; k++) p->decays[p->n_decays++] = decays[k];
}

/* Steps until the target, INFINITY after `most`. */
static tac_status steps_to_target(const plan *p, const cell *c, int64_t most,
                                  uint64_t seed, double *steps)
{
    logistic_outcome o;
    const logistic_run r = {.p = &p->p,
                            .workers = c->workers,
                            .every = c->every ? c->every : 2 * CAP,
                            .steps = most,
                            .batch = BATCH,
                            .rate = c->rate,
                            .decay = c->decay / p->p.lambda,
                            .averaged = 1,
                            .target = p->target,
                            .seed = seed,
                            .stop = p->b->stop};
    const tac_status s = logistic_train(&r, &o);
    *steps = o.reached;
    logistic_outcome_free(&o);
    return s;
}

static const char *every_text(const cell *c, char *text, size_t bytes)
{
    snprintf(text, bytes, "%lld", (long long)c->every);
    return c->every ? text : "T";
}

/* Of a few seeds; T varies by a third from one to the next. */
static int64_t search_seeds(const plan *p)
{
    return p->b->o->quick ? 1 : 3;
}

static int64_t seeds_of(const plan *p)
{
    if (p->b->o->seeds) return p->b->o->seeds;
    return p->b->o->quick ? 3 : 6;
}

/* Sum of T over the search's seeds; INFINITY as soon as it is above `least`. */
static tac_status try_rates(const plan *p, const cell *c, double least,
                            double *sum)
{
    double steps;
    *sum = 0;
    for (int64_t k = 0; k < search_seeds(p) && *sum < INFINITY; k++) {
        const int64_t most = (int64_t)fmin(CAP, least - *sum + 1);
        TAC_TRY(steps_to_target(p, c, most, SEARCH_SEED + (uint64_t)k, &steps));
        *sum += steps;
        if (*sum >= least) *sum = INFINITY;
    }
    return TAC_OK;
}

static tac_status search(const plan *p, cell *c)
{
    cell best = *c;
    double sum, least = INFINITY;
    best.rate = p->rates[0];
    best.decay = p->decays[0];
    for (int i = 0; i < p->n_rates; i++)
        for (int k = 0; k < p->n_decays; k++) {
            cell try = *c;
            try.rate = p->rates[i];
            try.decay = p->decays[k];
            TAC_TRY(try_rates(p, &try, least, &sum));
            if (sum < least) least = sum, best = try;
        }
    *c = best;
    return TAC_OK;
}

static tac_status measure(const plan *p, cell *c)
{
    double steps[EXP_SEEDS];
    char text[32];
    const size_t seeds = (size_t)seeds_of(p);
    TAC_TRY(search(p, c));
    for (size_t k = 0; k < seeds; k++)
        TAC_TRY(steps_to_target(p, c, CAP, k + 1, &steps[k]));
    c->steps = exp_mean(steps, seeds);
    c->steps_sd = exp_deviation(steps, seeds);
    c->syncs = c->workers == 1 ? 0 : c->every ? c->steps / (double)c->every : 1;
    c->efficiency = p->cells[0].steps / c->steps / c->workers;
    exp_say(p->b, "E1 K = %d, H = %s: %.0f steps", c->workers,
            every_text(c, text, sizeof text), c->steps);
    return TAC_OK;
}

/* H in units of sqrt(T/K), the theorem's scale. */
static double relative(const cell *c)
{
    const double h = c->every ? (double)c->every : c->steps;
    return h / sqrt(c->steps / c->workers);
}

static void tell(exp_report *r, const plan *p)
{
    exp_table(r, "Steps to the target by workers K and interval H:");
    exp_column(r, "workers", "K", "%.0f");
    exp_column(r, "sync_every", "H", NULL);
    exp_column(r, "steps", "T", "%.0f");
    exp_column(r, "steps_sd", "+-", "%.0f");
    exp_column(r, "efficiency", "T(1)/(K T)", "%.2f");
    exp_column(r, "relative", "H/sqrt(T/K)", "%.2f");
    exp_column(r, "syncs", "syncs", "%.0f");
    exp_column(r, "rate", "a", "%g");
    exp_column(r, "decay", "c", "%g");
    for (int k = 0; k < p->n; k++) {
        const cell *c = &p->cells[k];
        char text[32];
        exp_row(r);
        exp_number(r, c->workers);
        exp_text(r, every_text(c, text, sizeof text));
        exp_number(r, c->steps);
        exp_number(r, c->steps_sd);
        exp_number(r, c->efficiency);
        exp_number(r, relative(c));
        exp_number(r, c->syncs);
        exp_number(r, c->rate);
        exp_number(r, c->decay);
    }
}

/* The largest c so that no cell with H <= c sqrt(T/K) has less than 0.7 of the
 * efficiency of one worker. */
static double range_of_speed_up(const plan *p, const cell **first_below)
{
    double reach = 0;
    *first_below = NULL;
    for (int k = 1; k < p->n; k++)
        if (p->cells[k].efficiency < 0.7 &&
            (!*first_below || relative(&p->cells[k]) < relative(*first_below)))
            *first_below = &p->cells[k];
    for (int k = 1; k < p->n; k++) {
        const double c = relative(&p->cells[k]);
        if (!*first_below || c < relative(*first_below)) reach = fmax(reach, c);
    }
    return reach;
}

static void judge(exp_report *r, const plan *p)
{
    const cell *worst = NULL, *first = NULL, *last = &p->cells[p->n - 1];
    const cell *below;
    for (int k = 1; k < p->n; k++) {
        const cell *c = &p->cells[k];
        if (c->every != 1) continue;
        if (c->workers == last->workers) first = c;
        if (!worst || !(c->efficiency >= worst->efficiency)) worst = c;
    }
    const double c = range_of_speed_up(p, &below);
    exp_condition(r, worst->efficiency >= 0.7,
                  "with H = 1 the least efficiency is %.2f, of %d workers",
                  worst->efficiency, worst->workers);
    exp_condition(r, c >= 0.5,
                  "it is at least 0.7 wherever H <= c sqrt(T/K) with c = %.2f; "
                  "the next interval, %.2f sqrt(T/K), has %.2f",
                  c, below ? relative(below) : NAN,
                  below ? below->efficiency : NAN);
    exp_condition(r, last->steps >= 1.2 * first->steps,
                  "%d workers that average once need %.2f times the steps of "
                  "H = 1",
                  last->workers, last->steps / first->steps);
}

static void tell_problem(exp_report *r, const plan *p)
{
    exp_report_seeds(r, seeds_of(p));
    exp_ran(r,
            "Logistic regression on labels %d and %d of %s, 7 x 7 blocks: %zu "
            "samples, %zu parameters, lambda = 1/n; f(0) = %.6f, f* = %.10f by "
            "Newton's method (|gradient| %.0e, accuracy %.1f %%).",
            p->p.first, p->p.second, p->b->o->data, p->p.n, p->p.d, p->p.f_zero,
            p->p.f_best, p->p.gradient, 100 * p->p.accuracy);
    exp_ran(r,
            "Each worker draws %d samples a step with replacement from all; "
            "plain SGD, step min(a, c/(lambda t)); the iterate is the workers' "
            "mean with weights t^2. T: steps until f - f* is %g %% of f(0) - "
            "f*, mean of %lld seeds; a and c are the best of %d x %d by %lld "
            "other seeds. H = T: one average, at the end.",
            BATCH, 100 * p->share, (long long)seeds_of(p), p->n_rates,
            p->n_decays, (long long)search_seeds(p));
}

tac_status exp_e1(exp_bench *b, exp_report *r)
{
    plan p = {.b = b};
    const exp_options *o = b->o;
    if (o->ranks < 2)
        return tac_fail(b->ctx, TAC_ERR_CONFIG,
                        "E1 compares numbers of workers: --ranks 2 or more");
    TAC_TRY(logistic_open(b->ctx, o->data, o->data_dir, 0, 1, 0, &p.p));
    p.share = o->quick ? 0.01 : 0.0025;
    p.target = p.share * (p.p.f_zero - p.p.f_best);
    make_cells(&p);
    make_rates(&p);
    tac_status s = TAC_OK;
    for (int k = 0; k < p.n && s >= 0; k++) s = measure(&p, &p.cells[k]);
    if (s >= 0) {
        tell_problem(r, &p);
        tell(r, &p);
        judge(r, &p);
    }
    logistic_close(&p.p);
    return s;
}
