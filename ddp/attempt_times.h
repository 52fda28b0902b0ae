/* How long each attempt of a run took each rank, without communication, for
 * predicting wall times from measured ones (docs/ddp_train.md). */
#ifndef TAC_DDP_ATTEMPT_TIMES_H
#define TAC_DDP_ATTEMPT_TIMES_H

#include "run.h"

/* Room for all attempts of the run; does nothing without --attempt-times.
 * Errors: NOMEM. */
tac_status tac__attempt_times_open(tac__run *run);
void tac__attempt_times_close(tac__run *run);

/* Training begins, or goes on: earlier attempts have no times here. */
void tac__attempt_times_begin(tac__run *run);
/* An attempt is over: notes what the replica has computed since the last call.
 */
void tac__attempt_times_note(tac__run *run);

/* Collective: rank 0 writes the file. Errors: IO, NOMEM, those of comm. */
tac_status tac__attempt_times_write(tac__run *run);

#endif
