/* experiment_e10.c: an outer optimizer with nobody to average with. */
#include "experiment.h"

enum { SEEDS = 5 };

tac_status exp_e10(exp_bench *b, exp_report *r)
{
    static const double rates[] = {1e-4, 3e-4, 1e-3, 3e-3};
    exp_options more = *b->o;
    exp_bench own = *b;
    if (more.seeds < SEEDS && !more.quick) more.seeds = SEEDS;
    own.o = &more;
    exp_trained t = {.b = &own,
                     .name = "E10",
                     .common = "--optimizer adamw --batch 32",
                     .steps = exp_steps(b, 3000, 300),
                     .ranks = 1,
                     .lrs = rates + (b->o->quick ? 1 : 0),
                     .n_lrs = b->o->quick ? 2 : 4};
    exp_variant v[] = {
        exp_variant_make(0, "plain", "--sync grad"),
        exp_variant_make(30, "DiLoCo", "--sync diloco --sync-every 30"),
    };
    TAC_TRY(exp_search_and_measure(&t, v, 2));
    exp_ran(r, "One worker; DiLoCo: H = 30, outer Nesterov 0.7, 0.9.");
    exp_ran_trained(r, &t);
    exp_variant_table(r, v, 2, "training", "Validation loss of one worker:");
    exp_condition(r, exp_loss(&v[1]) <= exp_loss(&v[0]),
                  "DiLoCo's loss is at most that of plain training, over %zu "
                  "seeds: %.4f, %.4f",
                  v[0].n, exp_loss(&v[1]), exp_loss(&v[0]));
    return TAC_OK;
}
