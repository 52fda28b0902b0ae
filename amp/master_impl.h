/* The working weights' inside, shared by master.c and autocast.c. */
#ifndef TAC_AMP_MASTER_IMPL_H
#define TAC_AMP_MASTER_IMPL_H

#include "tacit/master.h"

struct tac_master {
    tac_params *params;
    tac_device *dev;
    tac_context *ctx;
    const tac_kernels *k; /* of f32: the casts are the same in every table */
    tac_dtype low;
    int stochastic;
    uint64_t seed;
    const uint64_t *step; /* device memory */
    int kept;             /* by the steps of the optimizer followed */
    tac_allocator alloc;
    void *weights; /* device memory */
};

#endif
