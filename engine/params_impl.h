/* The registry's inside, shared by params.c, params_layout.c, params_init.c. */
#ifndef TAC_ENGINE_PARAMS_IMPL_H
#define TAC_ENGINE_PARAMS_IMPL_H

#include "tacit/params.h"

struct tac_params {
    tac_device *dev;
    tac_context *ctx;
    tac_dtype dtype, grad_dtype;
    tac_param *list; /* names are owned */
    size_t count, capacity;
    size_t elements; /* without padding */
    size_t padded;   /* with it; 0 before layout */
    int laid_out;
    size_t *order;
    tac_allocator value_alloc, grad_alloc;
    void *values, *grads;
};

#endif
