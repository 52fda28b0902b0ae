/* What the files of the wrap share. */
#ifndef TAC_DDP_DATA_PARALLEL_IMPL_H
#define TAC_DDP_DATA_PARALLEL_IMPL_H

#include "tacit/data_parallel.h"

struct tac_data_parallel {
    tac_context *ctx;
    tac_comm *comm;
    tac_tape *tape;
    tac_params *params;
    tac_reducer *reducer;
    size_t *places; /* of each parameter in the arena, the reducer's index */
    struct {
        tac_sampler *sampler;
        tac_loader *loader;
    } loaders[TAC_DATA_PARALLEL_LOADERS];
    size_t n_loaders;

    /* Of tac_data_parallel_open, which owns these, the parameters and the tape;
     * else NULL. */
    tac_device *device;
    tac_model *model;
    tac_dtype low;
};

/* Everything that tac_data_parallel_create does after the allocation. */
tac_status tac__data_parallel_wrap(tac_data_parallel *dp, tac_tensor *loss,
                                   uint64_t seed,
                                   const tac_reducer_config *config);

#endif
