/* Do all ranks run the same configuration? */
#ifndef TAC_DDP_COMPARE_H
#define TAC_DDP_COMPARE_H

#include "tacit/comm.h"
#include "tacit/options.h"

/* Collective. Compares every option that must be equal on all ranks with rank
 * 0's. A rank that differs gets MISMATCH, and a message that names the option
 * and both values; the others get OK: agree on the verdict next. */
tac_status tac__compare_options(tac_comm *comm, const tac_options *o);

#endif
