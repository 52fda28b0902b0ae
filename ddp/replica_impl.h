/* Parts of a replica that are shared by its files. */
#ifndef TAC_DDP_REPLICA_IMPL_H
#define TAC_DDP_REPLICA_IMPL_H

#include "tacit/ops.h"
#include "tacit/replica.h"

/* --compress with what it leaves open, for a run of so many steps. */
void tac__replica_codec_spec(const tac_train_config *c, uint64_t steps,
                             char *out, size_t bytes);

/* The batch as tensors of the present step. */
tac_status tac__replica_inputs(tac_replica *r, const tac_batch *batch,
                               tac_tensor **x, tac_tensor **y);

/* Losses and hits on their way from the device to the host: a ring of slots
 * that copies are enqueued into, read only when it is full or asked for. */
tac_status tac__history_create(tac_replica *r, size_t batch);
void tac__history_destroy(tac_replica *r);
tac_status tac__history_add(tac_replica *r, size_t rows, size_t valid,
                            const tac_xent *xent);
/* The step of the losses added since the last call is over; `found_inf`: in
 * device memory, nonzero if it was skipped; NULL: nothing could skip it. */
tac_status tac__history_end_step(tac_replica *r, const float *found_inf);
tac_status tac__history_restore(tac_replica *r, const tac_metrics *m);

/* mixed.c: scaler, working weights and what looks at them. After the
 * optimizer. */
tac_status tac__mixed_connect(tac_replica *r);
/* Opens the region that forward and loss run in. */
tac_status tac__mixed_region(tac_replica *r, tac_autocast *region);
/* Counts exponents of the averaged gradients, if it is time to. */
tac_status tac__mixed_observe(tac_replica *r);
/* Brings r->scaling up to date. */
tac_status tac__mixed_poll(tac_replica *r);

#endif
