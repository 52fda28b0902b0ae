/* experiment_e2.h: the two halves of E2. */
#ifndef EXPERIMENT_E2_H
#define EXPERIMENT_E2_H

#include "experiment.h"
#include "experiment_logistic.h"

enum { EXP_E2_LENGTHS = 4, EXP_E2_FLOORS = 2 * EXP_E2_LENGTHS };
enum { EXP_E2_BATCH = 32 };

/* f - f* with samples drawn: of the mean iterate, averaged over steps; mean and
 * deviation over seeds. */
typedef struct exp_e2_floor {
    int sorted;
    int64_t every;
    double gap, gap_sd;
} exp_e2_floor;

/* Shared data first, then shards by label. */
tac_status exp_e2_floors(exp_bench *b, const logistic *p, exp_e2_floor *out);
void exp_e2_tell_floors(exp_report *r, const exp_e2_floor *floors);
void exp_e2_judge_floors(exp_report *r, const exp_e2_floor *floors);

#endif
