/* tacit/replica.h: one rank's copy of a model with all that trains it.
 *
 * A replica owns the device, the parameters in flat arenas, the tape, the
 * optimizer and the reducer that averages gradients with the other replicas.
 * Gradients live in the communicator's symmetric memory, so ranks of one host
 * average them in place.
 *
 * The path of a step is loop.c, ten calls. Level one of the interface is to
 * write those calls yourself with engine/ and comm/; this object is for those
 * who are content with them.
 *
 * Thread-safety: one thread at a time a replica. */
#ifndef TACIT_REPLICA_H
#define TACIT_REPLICA_H

#include <stdint.h>

#include "tacit/codec.h"
#include "tacit/comm.h"
#include "tacit/loader.h"
#include "tacit/model.h"
#include "tacit/optim.h"
#include "tacit/reducer.h"
#include "tacit/tape.h"
#include "tacit/train_config.h"

TAC_BEGIN_DECLS

/* Seconds of wall time in the training thread, since creation. */
typedef struct tac_replica_times {
    double forward_s, backward_s, update_s; /* compute alone */
    double comm_s, comm_exposed_s, wait_s;  /* see reducer.h */
} tac_replica_times;

/* Sums over samples; masked (padded) samples count nowhere. */
typedef struct tac_metrics {
    double loss_sum;
    double correct;
    double count;
} tac_metrics;

typedef struct tac_replica {
    tac_context *ctx;
    tac_comm *comm;
    const tac_train_config *config;
    tac_device *device;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
    tac_reducer *reducer; /* NULL: replicas are not averaged */
    tac_codec *codec;     /* of the reducer; NULL: f32 travels */
    tac_optimizer *optimizer;
    tac_schedule schedule;
    uint64_t attempts; /* optimizer steps tried */
    tac_replica_times times;
    size_t *places; /* of each parameter in the arena, the reducer's index */
    struct tac__history *history; /* losses on their way to the host */
    struct tac__record *record;   /* of ready times; NULL: none */
    double hook_s;                /* in grad-ready hooks of this backward */
} tac_replica;

/* The replica's place in its step. */
typedef struct tac_micro {
    int first, last;       /* micro-step of a group of --accumulate */
    double samples;        /* of the whole step: over ranks and micro-steps */
    uint64_t first_sample; /* position of this batch's first sample */
} tac_micro;

/* Everything local: device, model, tape; a dry step finds the order in which
 * gradients become final and the memory that a step needs. `config` and `comm`
 * are borrowed for the replica's life. No communication. */
TAC_API tac_status tac_replica_open(tac_context *ctx, tac_comm *comm,
                                    const tac_train_config *config,
                                    const tac_dataset_info *data,
                                    tac_replica **out);
/* Everything collective: arenas in symmetric memory, the reducer (which
 * compares the parameter lists of all ranks), initial parameters of rank 0 on
 * all ranks; then the optimizer. total_steps is for the schedule. */
TAC_API tac_status tac_replica_connect(tac_replica *r, uint64_t total_steps);
TAC_API void tac_replica_close(tac_replica *r); /* NULL is legal */

/* One micro-step: forward, backward with averaging behind it and, if it is the
 * last of its group, the update. See loop.c. */
TAC_API tac_status tac_replica_step(tac_replica *r, const tac_batch *batch,
                                    const tac_micro *micro);

/* Forward alone over the loader's whole epoch; *out holds this rank's sums. */
TAC_API tac_status tac_replica_evaluate(tac_replica *r, tac_loader *loader,
                                        tac_metrics *out);

/* Waits for the queue and takes the sums of all steps since the last call. */
TAC_API tac_status tac_replica_take_metrics(tac_replica *r, tac_metrics *out);

/* The 2-norm of all gradients at the last clipped step; NaN if there was none.
 * Waits for the queue. */
TAC_API double tac_replica_grad_norm(tac_replica *r);

/* Brings r->times up to date with the reducer's own counts. */
TAC_API void tac_replica_update_times(tac_replica *r);

/* Collective: sums over all ranks, in place. */
TAC_API tac_status tac_metrics_reduce(tac_comm *comm, tac_metrics *m);

/* XXH3-64 over the parameters' values in registration order, without
 * padding. */
TAC_API tac_status tac_replica_hash(tac_replica *r, uint64_t *out);
/* Collective: do all replicas have the same bits? Errors: MISMATCH, naming a
 * rank that differs. */
TAC_API tac_status tac_replica_verify_equal(tac_replica *r);

TAC_END_DECLS

#endif
