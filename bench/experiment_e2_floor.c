/* experiment_e2_floor.c: E2 with samples drawn: the floor that noise and unlike
 * data leave. With shared data the interval does not matter to it (for
 * quadratics exactly: docs/localsgd.md's oracles). */
#include "experiment_e2.h"

#include <math.h>

static const double RATE = 0.4;

/* Mean gap over the second half of a run. */
static tac_status one_floor(exp_bench *b, const logistic *p,
                            const exp_e2_floor *x, uint64_t seed, double *gap)
{
    logistic_outcome o;
    const logistic_run r = {.p = p,
                            .workers = (int)b->o->ranks,
                            .every = x->every,
                            .steps = b->o->quick ? 2048 : 8192,
                            .batch = EXP_E2_BATCH,
                            .sorted = x->sorted,
                            .rate = RATE,
                            .decay = INFINITY,
                            .from_best = 1,
                            .look_every = 64,
                            .seed = seed,
                            .stop = b->stop};
    const tac_status s = logistic_train(&r, &o);
    *gap = 0;
    for (size_t k = o.n_looks / 2; s >= 0 && k < o.n_looks; k++)
        *gap += o.looks[k].gap / (double)(o.n_looks - o.n_looks / 2);
    logistic_outcome_free(&o);
    return s;
}

static tac_status find_floor(exp_bench *b, const logistic *p, exp_e2_floor *x)
{
    double gap[EXP_SEEDS];
    const size_t seeds = (size_t)exp_seeds(b);
    for (size_t k = 0; k < seeds; k++)
        TAC_TRY(one_floor(b, p, x, k + 1, &gap[k]));
    x->gap = exp_mean(gap, seeds);
    x->gap_sd = exp_deviation(gap, seeds);
    exp_say(b, "E2 drawn samples, %s, H = %lld: f - f* %.3g",
            x->sorted ? "sorted" : "shared", (long long)x->every, x->gap);
    return TAC_OK;
}

tac_status exp_e2_floors(exp_bench *b, const logistic *p, exp_e2_floor *out)
{
    static const int64_t every[EXP_E2_LENGTHS] = {1, 4, 16, 64};
    for (int k = 0; k < EXP_E2_FLOORS; k++) {
        out[k] = (exp_e2_floor){.sorted = k / EXP_E2_LENGTHS,
                                .every = every[k % EXP_E2_LENGTHS]};
        TAC_TRY(find_floor(b, p, &out[k]));
    }
    return TAC_OK;
}

void exp_e2_tell_floors(exp_report *r, const exp_e2_floor *floors)
{
    exp_table(r,
              "Samples drawn, g = %g: f - f* of the mean iterate, averaged "
              "over the second half of the steps:",
              RATE);
    exp_column(r, "shards", "data", NULL);
    exp_column(r, "sync_every", "H", "%.0f");
    exp_column(r, "gap", "f - f*", "%.3e");
    exp_column(r, "gap_sd", "+-", "%.1e");
    for (int k = 0; k < EXP_E2_FLOORS; k++) {
        const exp_e2_floor *x = &floors[k];
        exp_row(r);
        exp_text(r, x->sorted ? "by label" : "shared");
        exp_number(r, (double)x->every);
        exp_number(r, x->gap);
        exp_number(r, x->gap_sd);
    }
}

void exp_e2_judge_floors(exp_report *r, const exp_e2_floor *floors)
{
    const exp_e2_floor *shared = floors, *sorted = floors + EXP_E2_LENGTHS;
    const double a = shared[EXP_E2_LENGTHS - 1].gap / shared[0].gap;
    const double b = sorted[EXP_E2_LENGTHS - 1].gap / sorted[0].gap;
    exp_condition(r, a <= 1.5,
                  "drawn from shared data, the floor at H = 64 is %.2f times "
                  "that at H = 1 (at most 1.5)",
                  a);
    exp_condition(r, b >= 2,
                  "drawn from shards by label, it is %.1f times (at least 2)",
                  b);
}
