/* tacit/replica.h: one rank's copy of a model with all that trains it.
 *
 * A replica owns the device, the parameters in flat arenas, the tape, the
 * optimizer and the reducer that averages gradients with the other replicas.
 * Gradients live in the communicator's symmetric memory, so ranks of one host
 * average them in place.
 *
 * The path of a step is loop.c, a dozen calls. Level one of the interface is to
 * write those calls yourself with engine/, amp/ and comm/; this object is for
 * those who are content with them.
 *
 * Precision. With config->precision "fp16" or "bf16" forward, loss and backward
 * run in a region of autocast over 16-bit working weights, which a
 * tac_master rounds from the f32 parameters after each step; evaluation does
 * the same. Parameters, gradients and what travels between ranks are f32 as
 * without. The loss is scaled by a tac_scaler (disabled, hence passing
 * everything through, unless the configuration asks for a scale).
 *
 * Skipped steps. Gradients are averaged before they are checked, so an inf or
 * NaN of one rank is on all of them, and all ranks skip the same steps, halve
 * their scales together and stay equal without a word; therefore no agreement
 * is set on the scaler (tac_scaler_set_agree). With config->sync "none" each
 * rank has its own scaler and may skip alone. A skipped step counts as an
 * attempt (its samples are gone), but not as a step: learning rate, bias
 * corrections and stochastic rounding go by applied steps.
 *
 * tac_replica_step returns before the device is done, so it can't say whether
 * its step was applied. The host learns of it in r->scaling and from
 * tac_replica_poll: on the CPU at once, on an asynchronous device one step
 * late.
 *
 * Thread-safety: one thread at a time a replica. */
#ifndef TACIT_REPLICA_H
#define TACIT_REPLICA_H

#include <stdint.h>

#include "tacit/autocast.h"
#include "tacit/codec.h"
#include "tacit/comm.h"
#include "tacit/loader.h"
#include "tacit/model.h"
#include "tacit/ops.h"
#include "tacit/optim.h"
#include "tacit/reducer.h"
#include "tacit/scaler.h"
#include "tacit/tape.h"
#include "tacit/train_config.h"
#include "tacit/underflow.h"

TAC_BEGIN_DECLS

/* Seconds of wall time in the training thread, since creation. */
typedef struct tac_replica_times {
    double forward_s, backward_s, update_s; /* compute alone */
    double comm_s, comm_exposed_s, wait_s;  /* see reducer.h */
} tac_replica_times;

/* Sums over samples; masked (padded) samples count nowhere. A loss that is not
 * finite in a step that the scaler skipped is what loss scaling expects while
 * it looks for a scale: such samples are counted in `nonfinite` and nowhere
 * else. In a step that was applied it makes loss_sum not finite: the run has
 * diverged. */
typedef struct tac_metrics {
    double loss_sum;
    double correct;
    double count;
    double nonfinite;
} tac_metrics;

#define TAC_METRICS_INIT \
    {                    \
        0, 0, 0, 0       \
    }

typedef struct tac_replica {
    tac_context *ctx;
    tac_comm *comm;
    const tac_train_config *config;
    tac_device *device;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
    tac_comm *worker;     /* ranks whose gradients are averaged with this one's:
                             comm, or in local modes the ranks of a worker; NULL:
                             none */
    tac_comm *own_worker; /* the same if it is not comm */
    tac_reducer *reducer; /* NULL: gradients are not averaged */
    tac_reducer *idle_reducer; /* while they are not, but will be again */
    tac_codec *codec;          /* of the reducer; NULL: f32 travels */
    tac_optimizer *optimizer;
    tac_schedule schedule; /* of the optimizer, by applied steps */
    tac_dtype low;         /* products are computed in; F32: no autocast */
    tac_master *master;    /* 16-bit working weights; NULL with F32 */
    tac_scaler *scaler;
    tac_scaler_report scaling; /* what the host knows of it after a step */
    tac_underflow *underflow;  /* rank 0 with underflow_every; else NULL */
    uint64_t attempts;         /* optimizer steps tried */
    uint64_t dropped; /* of them without samples: nothing was computed */
    tac_replica_times times;
    tac_replica_times before; /* of these: of earlier processes of the run */
    size_t *places; /* of each parameter in the arena, the reducer's index */
    struct tac__history *history; /* losses on their way to the host */
    struct tac__memory *memory;   /* what its parts allocate */
    struct tac__record *record;   /* of ready times; NULL: none */
    struct tac__doubt *doubt;     /* injected infs, and where bad ones came
                                     from */
    double hook_s;                /* in grad-ready hooks of this backward */
    struct tac__local *local;     /* of local modes; NULL: another mode */
} tac_replica;

/* The replica's place in its step. */
typedef struct tac_micro {
    int first, last;       /* micro-step of a group of --accumulate */
    double samples;        /* of the whole step: over micro-steps and ranks;
                              in local modes over the ranks of this worker */
    uint64_t first_sample; /* position of this batch's first sample */
} tac_micro;

/* Everything local: device, model, tape; a dry step finds the order in which
 * gradients become final and the memory that a step needs. `config` and `comm`
 * are borrowed for the replica's life; `model` NULL: config->model. No
 * communication. */
TAC_API tac_status tac_replica_open(tac_context *ctx, tac_comm *comm,
                                    const tac_train_config *config,
                                    const tac_dataset_info *data,
                                    const tac_model_source *model,
                                    tac_replica **out);
/* Everything collective: arenas in symmetric memory, the reducer (which
 * compares the parameter lists of all ranks), initial parameters of rank 0 on
 * all ranks; then optimizer, scaler and working weights. total_steps is for the
 * schedule. */
TAC_API tac_status tac_replica_connect(tac_replica *r, uint64_t total_steps);
TAC_API void tac_replica_close(tac_replica *r); /* NULL is legal */

/* One micro-step: forward, backward with averaging behind it and, if it is the
 * last of its group, the update. See loop.c. */
TAC_API tac_status tac_replica_step(tac_replica *r, const tac_batch *batch,
                                    const tac_micro *micro);

/* The pieces that tac_replica_step is made of, in its order, for those who want
 * to look or to do something in between:
 *
 *     tac_replica_forward(r, batch, micro, &logits, &xent);
 *     tac_replica_backward(r, micro, &xent);
 *     if (micro->last) {
 *         tac_replica_check(r);
 *         tac_replica_clip(r, 1.0);     optional
 *         tac_replica_update(r);
 *     }
 *
 * Tensors live in the tape until the next forward; logits may be of 16 bits.
 * `batch` and `micro` are not kept. */
TAC_API tac_status tac_replica_forward(tac_replica *r, const tac_batch *batch,
                                       const tac_micro *micro,
                                       tac_tensor **logits, tac_xent *xent);
/* Backward, and the averages are in the arena of gradients (scaled) if
 * micro->last. */
TAC_API tac_status tac_replica_backward(tac_replica *r, const tac_micro *micro,
                                        const tac_xent *xent);
/* Looks for inf and NaN; what follows divides by the scale. */
TAC_API tac_status tac_replica_check(tac_replica *r);
TAC_API tac_status tac_replica_clip(tac_replica *r, double max_norm);
/* The optimizer's step unless it is to be skipped, the new scale, the working
 * weights; one attempt more. */
TAC_API tac_status tac_replica_update(tac_replica *r);
/* Forward of an evaluation: its losses are added to those that
 * tac_replica_take_metrics takes. */
TAC_API tac_status tac_replica_forward_eval(tac_replica *r,
                                            const tac_batch *batch,
                                            tac_tensor **logits,
                                            tac_xent *xent);

/* What is known of loss scaling; waits for nothing, and is the same as
 * r->scaling. Errors: DIVERGED once config->max_skips steps in a row were
 * skipped, naming rank, step, tensor and scale; it stays so. */
TAC_API tac_status tac_replica_poll(tac_replica *r, tac_scaler_report *out);
/* Did a bad gradient of the last steps come from this rank's own samples? Known
 * once tac_replica_poll has failed; without it the sum of all ranks alone was
 * bad, or another rank's was. */
TAC_API int tac_replica_is_origin(const tac_replica *r);
/* The learning rate of the last applied step (0 before the first), as the
 * device computed it; for Adafactor's relative step without the factor of the
 * parameter's size. */
TAC_API double tac_replica_lr(const tac_replica *r);
/* After parameters or states were loaded: working weights and r->scaling
 * follow. */
TAC_API tac_status tac_replica_refresh(tac_replica *r);

/* Forward alone over the loader's whole epoch; *out holds this rank's sums. */
TAC_API tac_status tac_replica_evaluate(tac_replica *r, tac_loader *loader,
                                        tac_metrics *out);

/* Waits for the queue and takes the sums of all steps since the last call. */
TAC_API tac_status tac_replica_take_metrics(tac_replica *r, tac_metrics *out);

/* The 2-norm of all gradients, unscaled, at the last clipped step; NaN if there
 * was none. Waits for the queue. */
TAC_API double tac_replica_grad_norm(tac_replica *r);

/* Brings r->times up to date with the reducer's own counts. */
TAC_API void tac_replica_update_times(tac_replica *r);

/* Collective: sums over all ranks, in place. */
TAC_API tac_status tac_metrics_reduce(tac_comm *comm, tac_metrics *m);

/* XXH3-64 over the f32 parameters' values in registration order, without
 * padding. */
TAC_API tac_status tac_replica_hash(tac_replica *r, uint64_t *out);
/* Collective: do all replicas have the same bits? Errors: MISMATCH, naming a
 * rank that differs. */
TAC_API tac_status tac_replica_verify_equal(tac_replica *r);

TAC_END_DECLS

#endif
