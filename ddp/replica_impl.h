/* Parts of a replica that are shared by its files. */
#ifndef TAC_DDP_REPLICA_IMPL_H
#define TAC_DDP_REPLICA_IMPL_H

#include "tacit/ops.h"
#include "tacit/replica.h"

/* The batch as tensors of the present step. */
tac_status tac__replica_inputs(tac_replica *r, const tac_batch *batch,
                               tac_tensor **x, tac_tensor **y);

/* Losses and hits on their way from the device to the host: a ring of slots
 * that copies are enqueued into, read only when it is full or asked for. */
tac_status tac__history_create(tac_replica *r, size_t batch);
void tac__history_destroy(tac_replica *r);
tac_status tac__history_add(tac_replica *r, size_t rows, size_t valid,
                            const tac_xent *xent);
tac_status tac__history_restore(tac_replica *r, const tac_metrics *m);

#endif
