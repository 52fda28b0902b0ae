/* What rank 0 tells a person while it trains. */
#ifndef TAC_DDP_PROGRESS_H
#define TAC_DDP_PROGRESS_H

#include <stdint.h>

/* A line that redraws itself on a terminal, with a bar where it is wide enough;
 * elsewhere a plain line every ten seconds. Goes to stderr; the run's results
 * go to stdout. */
typedef struct tac__progress {
    int enabled, tty, drawn;
    double begin_s, shown_s;
    int64_t first_step; /* that were done before: a run that goes on */
    int64_t steps;      /* of the whole run */
} tac__progress;

typedef struct tac__progress_sample {
    int64_t step; /* done so far */
    double loss, accuracy, lr, samples_per_s;
    double comm_share; /* exposed communication over step time */
    int scaled;        /* with loss scaling: */
    double loss_scale;
    uint64_t skipped;
    int local; /* in local modes: */
    uint64_t syncs;
} tac__progress_sample;

void tac__progress_begin(tac__progress *p, int enabled, int64_t first_step,
                         int64_t steps);
void tac__progress_show(tac__progress *p, const tac__progress_sample *s);
/* Clears the bar, so that a result line can follow. */
void tac__progress_clear(tac__progress *p);

#endif
