/* tacit/schedule.h: the learning rate as a pure function of the step.
 *
 * Steps count applied optimizer steps from 0: a skipped step does not advance
 * the schedule. With w warm-up steps, N total steps, minimum m = final * lr:
 *
 *     s < w:     lr * (s+1) / w
 *     constant:  lr
 *     linear:    lr - r * (lr - m),               r = (s-w) / (N-w) in [0,1]
 *     cosine:    m + (1 + cos(pi r)) / 2 * (lr - m)
 *
 * The warm-up is llm.c's: no step has a rate of 0 and step w-1 has lr. Beyond
 * N the rate stays m; N <= w means m right after the warm-up. Thread-safe. */
#ifndef TACIT_SCHEDULE_H
#define TACIT_SCHEDULE_H

#include <stdint.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

typedef enum tac_schedule_kind {
    TAC_SCHEDULE_CONSTANT,
    TAC_SCHEDULE_LINEAR,
    TAC_SCHEDULE_COSINE
} tac_schedule_kind;

typedef struct tac_schedule {
    tac_schedule_kind kind;
    double lr;             /* the peak */
    double final_fraction; /* of lr, reached at `total` */
    uint64_t warmup, total;
} tac_schedule;

/* "constant", "linear", "cosine". Errors: ARG, with what there is. */
TAC_API tac_status tac_schedule_parse(tac_context *ctx, const char *name,
                                      tac_schedule_kind *out);
TAC_API double tac_schedule_lr(const tac_schedule *s, uint64_t step);

TAC_END_DECLS

#endif
