/* comm_replay_run.h: what the parts of a replay share. */
#ifndef TAC_BENCH_COMM_REPLAY_RUN_H
#define TAC_BENCH_COMM_REPLAY_RUN_H

#include "comm_replay.h"
#include "tacit/reducer.h"

typedef struct tac__replay_run {
    tac__comm_bench *b;
    tac__replay_step step; /* in microseconds, scaled */
    tac_reducer *reducer;
    tac__arena memory;
    size_t padded;           /* bytes of all gradients */
    int spin, naps, repeats; /* repeats: of measurements beside the steps */
    double *total, *pure;    /* [n] of each step, seconds */
    size_t n, done;
} tac__replay_run;

/* Loads the step, allocates gradients, makes the reducer; agreed. */
tac_status tac__replay_set_up(tac__replay_run *r);
void tac__replay_tear_down(tac__replay_run *r);

/* Fills in bound_us, from the ready times and each bucket's own time. */
tac_status tac__replay_find_bound(tac__replay_run *r, tac__replay_result *out);

#endif
