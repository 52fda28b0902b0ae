/* experiment_table.c: the experiments by name, with what they claim. */
#include "experiment.h"

const experiment exp_experiments[] = {
    {"E1", "linear speed-up with few synchronisations",
     "With independent samples K workers need 1/K of the steps, as long as H "
     "is at most c sqrt(T/K); with longer intervals they lose some of it.",
     "Stich, arXiv:1805.09767",
     "for every K and H <= sqrt(T/K) the efficiency T(1)/(K T) is at least "
     "0.7, "
     "and with the most workers a single average at the end costs at least 20 "
     "% more steps than averaging in every step.",
     exp_e1},
    {"E2", "shards by label: the error floor",
     "Where workers see different data, a constant step ends at a floor that "
     "grows with H and shrinks with the learning rate.",
     "fixed points of local SGD; docs/localsgd.md",
     "the distance from the minimum grows from each H to the next; divided by "
     "the learning rate it is constant within 15 % up to H = 8; it is within "
     "10 "
     "% of first-order theory where that is meant to hold; and with drawn "
     "samples the floor grows with H for shards by label, not for shared data.",
     exp_e2},
    {"E3", "accuracy against throughput",
     "Wall time is a + b/H, and accuracy does not rise with H.",
     "the table of Paddle's fleet documentation",
     "least squares give R^2 > 0.98, and no accuracy is above that of the H "
     "before it by more than noise: two standard deviations of the "
     "difference, at least half a point.",
     exp_e3},
    {"E5", "outer momentum at H = 1",
     "DiLoCo with H = 1 is worse than with H = 5 to 30.",
     "arXiv:2503.09799, figure 15",
     "the mean loss at H = 1 is above those at H = 5, 10 and 30.", exp_e5},
    {"E6", "deltas that are lost",
     "Half of all deltas may be lost at little cost.",
     "arXiv:2311.08105, figure 8",
     "the mean loss at 50 % is at most 3 % above that without losses, for "
     "shared data and for shards by label.",
     exp_e6},
    {"E7", "streaming: how long a delta may be under way",
     "A delay of up to a tenth of H costs next to nothing.",
     "arXiv:2501.18512, figure 8",
     "with a delay of a tenth of H the mean loss is at most 1 % above that "
     "without delay, for both alpha.",
     exp_e7},
    {"E8", "one interval late",
     "Applying the average one interval late, as it is, costs much; eagerly, "
     "with the own part made fresh, next to nothing.",
     "arXiv:2502.12996, table 2",
     "with two workers and the learning rate that is best without delay, the "
     "naive loss is at least 3 % above that without delay, and three times as "
     "far as the eager one, which is at most 3 % above.",
     exp_e8},
    {"E9", "what deltas travel as",
     "Quantising deltas is free down to 4 bits; leaving elements out costs, "
     "and "
     "needs error feedback.",
     "arXiv:2501.18512, arXiv:2508.15706",
     "bf16, int8 and fp4 are within 1 % of f32's loss; top-k without error "
     "feedback is worse than with it.",
     exp_e9},
    {"E10", "one worker: Lookahead",
     "DiLoCo with a single worker, which has nobody to average with, is no "
     "worse than plain training.",
     "arXiv:2503.09799, table 4",
     "the mean loss over at least 5 seeds is at most that of plain training.",
     exp_e10},
    {0},
};
