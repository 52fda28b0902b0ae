/* experiment_e8.c: averages that arrive one interval late. */
#include <stdio.h>

#include "experiment.h"

enum { NONE, NAIVE, EAGER, NAIVE_OWN, EAGER_OWN, VARIANTS };

static tac_status measure(const exp_trained *t, exp_variant *v)
{
    TAC_TRY(exp_search(t, &v[NONE]));
    v[NAIVE].lr = v[EAGER].lr = v[NONE].lr;
    v[NAIVE].lr_at_edge = v[EAGER].lr_at_edge = v[NONE].lr_at_edge;
    TAC_TRY(exp_search(t, &v[NAIVE_OWN]));
    TAC_TRY(exp_search(t, &v[EAGER_OWN]));
    for (int k = 0; k < VARIANTS; k++) TAC_TRY(exp_measure(t, &v[k]));
    return TAC_OK;
}

static void plan(exp_variant *v)
{
    const char *naive = "--sync-delay 10 --stale delayed";
    const char *eager = "--sync-delay 10 --stale eager";
    v[NONE] = exp_variant_make(0, "no delay", "--sync-delay 0");
    v[NAIVE] = exp_variant_make(10, "naive", "%s", naive);
    v[EAGER] = exp_variant_make(10, "eager", "%s", eager);
    v[NAIVE_OWN] = exp_variant_make(10, "naive, own rate", "%s", naive);
    v[EAGER_OWN] = exp_variant_make(10, "eager, own rate", "%s", eager);
}

static void tell(exp_report *r, const exp_trained *t, const exp_variant *v)
{
    char caption[128];
    snprintf(caption, sizeof caption,
             "Validation loss with %lld workers, %lld steps, averages one "
             "interval late:",
             (long long)t->ranks, (long long)t->steps);
    exp_variant_table(r, v, VARIANTS, "average", caption);
}

static void judge(exp_report *r, const exp_variant *v)
{
    const double none = exp_loss(&v[NONE]);
    const double naive = exp_loss(&v[NAIVE]) / none - 1;
    const double eager = exp_loss(&v[EAGER]) / none - 1;
    exp_condition(r, naive >= 0.03 && naive >= 3 * eager,
                  "2 workers: naive is at least 3 %% worse than no delay, and "
                  "three times as much as eager: %+.1f %%",
                  100 * naive);
    exp_condition(r, eager <= 0.03,
                  "2 workers: eager is at most 3 %% worse than no delay: "
                  "%+.1f %%",
                  100 * eager);
}

tac_status exp_e8(exp_bench *b, exp_report *r)
{
    static const double rates[] = {3e-5, 1e-4, 3e-4, 1e-3, 3e-3};
    exp_trained t = {
        .b = b,
        .name = "E8",
        .common = "--optimizer adamw --batch 32 --sync diloco --sync-every 10 "
                  "--warmup-steps 100",
        .steps = exp_steps(b, 2000, 300),
        .ranks = 2,
        .lrs = rates + (b->o->quick ? 1 : 0),
        .n_lrs = b->o->quick ? 3 : 5};
    exp_variant two[VARIANTS], many[VARIANTS];
    plan(two);
    plan(many);
    TAC_TRY(measure(&t, two));
    exp_ran(r, "DiLoCo, H = 10, outer Nesterov 0.7, 0.9. Naive and eager have "
               "the learning rate of no delay, and below the one that is best "
               "for them. Judged are two workers, as in the paper; with more, "
               "a worker's own part is less of the average.");
    exp_ran_trained(r, &t);
    tell(r, &t, two);
    judge(r, two);
    if (b->o->ranks == 2) return TAC_OK;
    t.ranks = b->o->ranks;
    t.steps = exp_steps(b, 1000, 300);
    t.name = "E8-many";
    TAC_TRY(measure(&t, many));
    tell(r, &t, many);
    return TAC_OK;
}
