/* experiment_e7.c: streaming, with deltas under way for longer and longer. */
#include <stdio.h>

#include "experiment.h"

enum { DELAYS = 5, ALPHAS = 2, H = 30 };

static const int delays[DELAYS] = {0, 1, 3, 10, 20};
static const double alphas[ALPHAS] = {0, 0.5};

static void plan(exp_variant *v)
{
    for (int a = 0; a < ALPHAS; a++)
        for (int d = 0; d < DELAYS; d++) {
            char label[48];
            snprintf(label, sizeof label, "%d steps, alpha %g", delays[d],
                     alphas[a]);
            v[a * DELAYS + d] = exp_variant_make(
                delays[d], label, "--sync-delay %d --sync-alpha %g", delays[d],
                alphas[a]);
        }
}

static void judge(exp_report *r, const exp_variant *v, double alpha)
{
    const double none = exp_loss(&v[0]), tenth = exp_loss(&v[2]);
    exp_condition(r, tenth <= 1.01 * none,
                  "alpha %g: a delay of 3 of 30 steps changes the loss by "
                  "%+.2f %% (%.4f, %.4f)",
                  alpha, 100 * (tenth / none - 1), tenth, none);
}

tac_status exp_e7(exp_bench *b, exp_report *r)
{
    static const double rates[] = {3e-4, 1e-3, 3e-3};
    exp_trained t = {.b = b,
                     .name = "E7",
                     .common = "--optimizer adamw --batch 32 --sync streaming "
                               "--sync-every 30 --fragments 2",
                     .steps = exp_steps(b, 1200, 90),
                     .lrs = rates,
                     .n_lrs = b->o->quick ? 2 : 3};
    exp_variant v[ALPHAS * DELAYS];
    plan(v);
    for (int k = 0; k < ALPHAS * DELAYS; k++) {
        if (k % DELAYS == 0) TAC_TRY(exp_search(&t, &v[k]));
        v[k].lr = v[k / DELAYS * DELAYS].lr;
        v[k].lr_at_edge = v[k / DELAYS * DELAYS].lr_at_edge;
        TAC_TRY(exp_measure(&t, &v[k]));
    }
    exp_ran(r, "Streaming, H = 30, two fragments, outer Nesterov 0.4, 0.9; the "
               "learning rate of an alpha is that of no delay.");
    exp_ran_trained(r, &t);
    exp_variant_table(r, v, ALPHAS * DELAYS, "delay",
                      "Validation loss by delay:");
    for (int a = 0; a < ALPHAS; a++) judge(r, v + a * DELAYS, alphas[a]);
    return TAC_OK;
}
