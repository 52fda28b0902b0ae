/* The optimizer's inside, shared by optim.c, optim_config.c, optim_runs.c. */
#ifndef TAC_ENGINE_OPTIM_IMPL_H
#define TAC_ENGINE_OPTIM_IMPL_H

#include "tacit/optim.h"

enum { TAC__MOMENTS = 2, TAC__LR_SLOTS = 8 };

/* Neighbours in the arenas with the same weight decay: one kernel call. */
typedef struct tac__run {
    size_t offset, count; /* elements */
    float weight_decay;
} tac__run;

/* What the device holds beside the moments, in one piece of its memory. */
typedef struct tac__device_part {
    tac_step_scalars scalars;
    double sum_squares, norm;
} tac__device_part;

struct tac_optimizer {
    tac_params *params;
    tac_device *dev;
    tac_context *ctx;
    const tac_kernels *k;
    tac_optimizer_config config;
    tac_allocator state_alloc;
    void *moments[TAC__MOMENTS]; /* SGD: buffer; AdamW: exp_avg, exp_avg_sq */
    const char *moment_names[TAC__MOMENTS];
    int n_moments;
    tac__device_part *part; /* device memory */
    tac__run *runs;
    size_t n_runs;
    /* Sources of enqueued copies, which may still be under way. */
    float lr_slots[TAC__LR_SLOTS];
    unsigned next_lr_slot;
};

/* Ranges and combinations, with a text for each. optim_config.c */
tac_status tac__optimizer_check(tac_context *ctx,
                                const tac_optimizer_config *c);
/* Cuts the arenas into runs. optim_runs.c */
tac_status tac__optimizer_make_runs(tac_optimizer *o);

#endif
