/* Steps that are skipped one after the other: where the inf comes from, and
 * when to give up. Also puts infs where tests want them. */
#ifndef TAC_DDP_DOUBT_H
#define TAC_DDP_DOUBT_H

#include "tacit/replica.h"

tac_status tac__doubt_create(tac_replica *r);
void tac__doubt_destroy(tac_replica *r);
/* A group of micro-steps begins its last one: is there to be an inf, and are
 * gradients to be looked at? */
void tac__doubt_arm(tac_replica *r, int last);
/* The gradient of a parameter is final on this rank, not yet averaged. */
tac_status tac__doubt_ready(tac_replica *r, size_t param, tac_queue *queue);
/* The same for all, where no hook tells. */
tac_status tac__doubt_all(tac_replica *r);
/* After r->scaling has changed. */
void tac__doubt_judge(tac_replica *r);
/* DIVERGED once too many steps in a row were skipped. */
tac_status tac__doubt_verdict(tac_replica *r);
/* Has the verdict been passed? Without a message. */
int tac__doubt_gave_up(const tac_replica *r);

#endif
