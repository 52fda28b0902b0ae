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
/* Mean loss over this rank's samples of the last step; NaN if there is none, or
 * if it was skipped. Waits for the queue. */
tac_status tac__history_last(tac_replica *r, double *loss);
tac_status tac__history_restore(tac_replica *r, const tac_metrics *m);

/* Gradients are averaged from now on (1), or stay each rank's own: for a part
 * of a run that began with averages. Between steps. */
void tac__replica_average(tac_replica *r, int on);

/* Applied steps, as far as the host knows. */
uint64_t tac__replica_applied(const tac_replica *r);
/* The learning rate of applied step t, from 1. */
double tac__replica_rate(const tac_replica *r, uint64_t t);

/* exchange.c: an attempt that sends and computes nothing. */
tac_status tac__replica_exchange(tac_replica *r);

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
