/* experiment_e6.c: what is lost with deltas that are left out of averages. */
#include <stdio.h>
#include <string.h>

#include "experiment.h"

enum { LOSSES = 4 };

/* One learning rate for all probabilities, that of none lost: nobody knows
 * beforehand how many will be. */
static tac_status measure(const exp_trained *t, const char *shards,
                          exp_variant *v)
{
    static const double p[LOSSES] = {0, 0.1, 0.3, 0.5};
    for (int k = 0; k < LOSSES; k++) {
        char label[48];
        snprintf(label, sizeof label, "%.0f %% lost, %s", 100 * p[k], shards);
        v[k] = exp_variant_make(p[k], label, "--drop-deltas %g --shards %s",
                                p[k], shards);
        if (k == 0) TAC_TRY(exp_search(t, &v[0]));
        v[k].lr = v[0].lr;
        v[k].lr_at_edge = v[0].lr_at_edge;
        TAC_TRY(exp_measure(t, &v[k]));
    }
    return TAC_OK;
}

static void judge(exp_report *r, const exp_variant *v, const char *data)
{
    const double none = exp_loss(&v[0]), half = exp_loss(&v[LOSSES - 1]);
    exp_condition(r, half <= 1.03 * none,
                  "%s: with half of the deltas lost the loss is %+.1f %% "
                  "against none lost (%.4f, %.4f)",
                  data, 100 * (half / none - 1), half, none);
}

tac_status exp_e6(exp_bench *b, exp_report *r)
{
    static const double rates[] = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2};
    exp_trained t = {
        .b = b,
        .name = "E6",
        .common = "--optimizer adamw --batch 32 --sync diloco --sync-every 10",
        .steps = exp_steps(b, 1200, 100),
        .lrs = rates + (b->o->quick ? 1 : 0),
        .n_lrs = b->o->quick ? 3 : 5};
    exp_variant v[2 * LOSSES];
    TAC_TRY(measure(&t, "iid", v));
    TAC_TRY(measure(&t, "dirichlet:0.5", v + LOSSES));
    exp_ran(r, "DiLoCo, H = 10. A delta that is lost is left out of the "
               "average, and its worker goes on from its own parameters; the "
               "learning rate is that of no losses.");
    exp_ran_trained(r, &t);
    exp_variant_table(r, v, 2 * LOSSES, "deltas",
                      "Validation loss by the probability that a delta is "
                      "lost:");
    judge(r, v, "shared data");
    judge(r, v + LOSSES, "shards by label (Dirichlet, 0.5)");
    return TAC_OK;
}
