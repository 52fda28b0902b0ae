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

#include "tacit/comm.h"
#include "tacit/loader.h"
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
