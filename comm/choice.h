/* choice.h: what the choice of algorithms depends on besides the call: the cost
 * model's constants and the configuration's overrides. Made at creation. */
#ifndef TACIT_COMM_CHOICE_H
#define TACIT_COMM_CHOICE_H

#include "boot.h"
#include "cost.h"
#include "override.h"

typedef struct tac__choice {
    tac__cost_params params;
    int ranks_a_host; /* on the fullest */
    tac__overrides overrides;
} tac__choice;

/* Reads config.tune_file and config.algorithms; once the peers are known.
 * Collective: an agreed verdict, its text in b->text (ARG, IO, NOMEM, MISMATCH
 * if the ranks' files differ). */
tac_status tac__choice_open(tac__boot *b, tac_comm *c);
void tac__choice_close(tac_comm *c);

#endif
