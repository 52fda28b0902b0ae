/* What fp16 would lose of the gradients, told at the end of a run. All are
 * no-ops where nothing was observed. */
#ifndef TAC_DDP_UNDERFLOW_REPORT_H
#define TAC_DDP_UNDERFLOW_REPORT_H

#include "run.h"

/* The loss scale that is shown beside 1. */
double tac__underflow_scale(const tac__run *run);
/* A table on stdout; lines of metrics.jsonl. */
void tac__underflow_print(tac__run *run);
void tac__underflow_log(tac__run *run);
/* underflow_picture.c: underflow.svg. Errors: IO, NOMEM. */
tac_status tac__underflow_draw(tac__run *run, const char *path);

#endif
