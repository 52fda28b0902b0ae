/* experiment_e5.c: DiLoCo's outer momentum where there is nothing to average
 * over: H = 1. */
#include <stdio.h>

#include "experiment.h"

tac_status exp_e5(exp_bench *b, exp_report *r)
{
    static const double rates[] = {3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2};
    exp_trained t = {.b = b,
                     .name = "E5",
                     .common = "--optimizer adamw --batch 32",
                     .steps = exp_steps(b, 600, 90),
                     .search_seeds = b->o->quick ? 1 : 2,
                     .lrs = rates + (b->o->quick ? 1 : 0),
                     .n_lrs = b->o->quick ? 4 : 6};
    exp_variant v[] = {
        exp_variant_make(1, "H = 1", "--sync diloco --sync-every 1"),
        exp_variant_make(5, "H = 5", "--sync diloco --sync-every 5"),
        exp_variant_make(10, "H = 10", "--sync diloco --sync-every 10"),
        exp_variant_make(30, "H = 30", "--sync diloco --sync-every 30"),
        exp_variant_make(0, "gradients", "--sync grad"),
    };
    TAC_TRY(exp_search_and_measure(&t, v, 5));
    exp_ran(r, "DiLoCo: outer Nesterov, rate 0.7, momentum 0.9.");
    exp_ran_trained(r, &t);
    exp_variant_table(r, v, 5, "DiLoCo",
                      "Validation loss by H, and of averaging gradients "
                      "without an outer optimizer:");
    for (int k = 1; k <= 3; k++)
        exp_condition(r, exp_loss(&v[0]) > exp_loss(&v[k]),
                      "the loss at H = 1 is above that at H = %.0f: %.4f, %.4f",
                      v[k].number, exp_loss(&v[0]), exp_loss(&v[k]));
    return TAC_OK;
}
