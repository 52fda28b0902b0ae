/* Recording when gradients become ready, for comm_bench --replay. */
#ifndef TAC_DDP_RECORD_H
#define TAC_DDP_RECORD_H

#include "tacit/replica.h"

typedef struct tac__record tac__record;

/* Keeps the last steps of this rank; nothing is allocated afterwards. The
 * replica's layout must be final. */
tac_status tac__record_create(tac_replica *r, tac__record **out);
void tac__record_destroy(tac__record *rec); /* NULL is legal */

/* Called by the step, in this order; all are no-ops on NULL. */
void tac__record_begin(tac__record *rec);    /* a group of micro-steps */
void tac__record_backward(tac__record *rec); /* a micro-step's backward */
/* The gradient at place k of the arenas is ready; time in the replica's hooks
 * so far does not count as compute. */
void tac__record_ready(tac__record *rec, size_t place, uint64_t now_ns);
void tac__record_end(tac__record *rec); /* the update is done */

/* Writes the step whose compute is the median of those kept, in the format of
 * docs/comm_bench.md. Errors: IO, STATE (no step), NOMEM. */
tac_status tac__record_write(const tac__record *rec, const char *path);

#endif
