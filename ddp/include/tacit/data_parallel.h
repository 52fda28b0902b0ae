/* tacit/data_parallel.h: a model on several ranks, for a loop of one's own:
 * what PyTorch's DistributedDataParallel is to a module.
 *
 *     tac_tape_begin(tape, &(tac_tape_step){.flags = TAC_TAPE_DRY});
 *     forward and loss of one batch: shapes alone
 *     tac_data_parallel_create(comm, tape, loss, seed, NULL, &dp);
 *     for each batch:
 *         tac_tape_begin(tape, NULL); forward, loss
 *         tac_data_parallel_backward(dp, loss, samples, scaler, 1);
 *         the optimizer's step
 *
 * Backward averages gradients over the ranks while it computes them. Equal
 * parameters at the start and equal steps keep the ranks equal.
 *
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_DATA_PARALLEL_H
#define TACIT_DATA_PARALLEL_H

#include "tacit/autocast.h"
#include "tacit/comm.h"
#include "tacit/loader.h"
#include "tacit/model.h"
#include "tacit/ops.h"
#include "tacit/reducer.h"
#include "tacit/scaler.h"
#include "tacit/tape.h"

TAC_BEGIN_DECLS

typedef struct tac_data_parallel tac_data_parallel;

/* Goes back through the dry step of `loss`, to learn in which order gradients
 * become final; lays the tape's parameters out in this order, gradients in the
 * communicator's memory; gives them their initial values by `seed`, rank 0's on
 * all ranks. Collective. Both are borrowed for the object's life. `config`
 * NULL: the reducer's defaults; its arena is set here. Errors: STATE if the
 * parameters are laid out already; those of the reducer, on all ranks. */
TAC_API tac_status tac_data_parallel_create(tac_comm *comm, tac_tape *tape,
                                            tac_tensor *loss, uint64_t seed,
                                            const tac_reducer_config *config,
                                            tac_data_parallel **out);
/* Before the parameters and the communicator. NULL is legal. */
TAC_API void tac_data_parallel_destroy(tac_data_parallel *dp);

/* ---- with a model ---------------------------------------------------------
 * The same for a tac_model that tells classes apart. The wrap makes and owns
 * what the loop is about: device (the CPU), parameters (f32), model, tape; it
 * takes the dry step itself. examples/01_loop.c is such a loop. */
typedef struct tac_data_parallel_config {
    size_t struct_size;
    const tac_model_source *model; /* needed; tacit/model.h */
    float dropout;                 /* probability, in [0,1) */
    size_t batch;                  /* samples a rank and micro-step; needed */
    tac_dtype autocast; /* F16 or BF16: of the region that forward and loss are
                           in; F32: none */
    int recompute;      /* 1: gradient checkpointing, block by block */
    uint64_t seed;      /* of initial values and dropout */
    const tac_reducer_config *reducer; /* NULL: the reducer's defaults */
} tac_data_parallel_config;

#define TAC_DATA_PARALLEL_CONFIG_INIT                                        \
    {                                                                        \
        sizeof(tac_data_parallel_config), NULL, 0.0f, 0, TAC_F32, 0, 0, NULL \
    }

/* Shapes and classes are those of `set`, which is not kept; nor is *config.
 * Collective. Errors, on all ranks but for NULL arguments: ARG, those of
 * tac_model_open, tac_autocast_begin and tac_data_parallel_create. */
TAC_API tac_status
tac_data_parallel_open(tac_comm *comm, const tac_data_parallel_config *config,
                       const tac_dataset *set, tac_data_parallel **out);
/* Outputs and loss (a sum over the batch's samples) of a batch, after
 * tac_tape_begin, in the region of autocast. STATE if the wrap is over a tape
 * of the caller's. */
TAC_API tac_status tac_data_parallel_forward(tac_data_parallel *dp,
                                             const tac_batch *batch,
                                             tac_xent *loss);
/* The wrap's, or what it was created over: for an optimizer, a scaler, and
 * tac_tape_begin. */
TAC_API tac_device *tac_data_parallel_device(const tac_data_parallel *dp);
TAC_API tac_params *tac_data_parallel_params(const tac_data_parallel *dp);
TAC_API tac_tape *tac_data_parallel_tape(const tac_data_parallel *dp);

/* ---- a step ---------------------------------------------------------------
 */

/* Backward of loss (a sum over this rank's samples) over `samples` (of the
 * whole step and all ranks) times the scaler's scale (NULL: 1): afterwards the
 * gradients, still scaled, are those of the mean over all samples. sync 0: they
 * stay this rank's, for more batches to be added with TAC_TAPE_ACCUMULATE.
 * Collective if sync. */
TAC_API tac_status tac_data_parallel_backward(tac_data_parallel *dp,
                                              tac_tensor *loss, double samples,
                                              tac_scaler *scaler, int sync);
/* Batches of this rank's share of `set`: `batch` samples a rank, in an order
 * that depends on (seed, epoch), or with shuffle 0 in that of the set. The
 * loader is the object's, at most TAC_DATA_PARALLEL_LOADERS of them. Errors:
 * ARG, NOMEM. */
enum { TAC_DATA_PARALLEL_LOADERS = 8 };
TAC_API tac_status tac_data_parallel_loader(tac_data_parallel *dp,
                                            tac_dataset *set, size_t batch,
                                            int shuffle, uint64_t seed,
                                            tac_loader **out);
/* XXH3-64 over the values of all parameters in registration order, without
 * padding: the params_hash that tacit's programs print. */
TAC_API tac_status tac_data_parallel_hash(tac_params *params, uint64_t *out);
TAC_API tac_reducer *tac_data_parallel_reducer(tac_data_parallel *dp);

TAC_END_DECLS

#endif
