/* The optimizer's inside, shared by optim*.c.
 *
 * optim_config.c checks settings, optim_groups.c gives each parameter its own,
 * optim_plan.c lays out the state, optim_runs.c makes kernel calls of it,
 * optim_step.c makes them, optim_scalars.c sets what a step reads,
 * optim_walk.c shows the state. */
#ifndef TAC_ENGINE_OPTIM_IMPL_H
#define TAC_ENGINE_OPTIM_IMPL_H

#include "tacit/optim.h"

enum { TAC__STATE_PARTS = 4, TAC__SLOTS = 8 };

/* Which kernel keeps which state of a parameter. */
typedef enum tac__form {
    TAC__FORM_NONE,  /* frozen, or empty */
    TAC__FORM_DENSE, /* sgd, adamw: moments laid out as the values are */
    TAC__FORM_QUANT, /* adamw8bit: codes and absmax of both moments */
    TAC__FORM_FACTOR /* adafactor: row and col (or one vector), perhaps m */
} tac__form;

/* One array of state. */
typedef struct tac__state_part {
    const char *name; /* "exp_avg" */
    tac_dtype dtype;
    int ndim;
    size_t shape[TAC_MAX_DIMS];
    size_t bytes;
    size_t offset; /* in the state's memory */
} tac__state_part;

/* What one parameter gets. */
typedef struct tac__slot {
    double lr_scale, weight_decay;
    const char *group; /* NULL: none fits */
    int wide;          /* f32 moments whatever the size */
    tac__form form;
    tac_adafactor_shape shape; /* of FORM_FACTOR */
    tac__state_part parts[TAC__STATE_PARTS];
    int n_parts;
    char text[96]; /* of the parts */
} tac__slot;

typedef struct tac__plan {
    size_t state_bytes, scratch_bytes; /* padding included */
    size_t trained;                    /* parameters */
} tac__plan;

/* One kernel call: a parameter, or neighbours in the arenas of equal settings
 * and FORM_DENSE. */
typedef struct tac__run {
    size_t offset, count; /* elements */
    const tac__slot *slot;
    tac_round rounding;
    const tac_round *round; /* &rounding or NULL */
} tac__run;

/* What the device holds beside the state, in one piece of its memory. */
typedef struct tac__device_part {
    tac_step_scalars scalars;
    double sum_squares, norm;
    uint64_t first_bad;
} tac__device_part;

/* Who measured the sum of squares of the present gradients. */
typedef enum tac__known {
    TAC__KNOWN_NO,
    TAC__KNOWN_CLIP,
    TAC__KNOWN_CHECK
} tac__known;

struct tac_optimizer {
    tac_params *params;
    tac_device *dev;
    tac_context *ctx;
    const tac_kernels *k;        /* of the values' type */
    const tac_kernels *grad_k;   /* of the gradients' */
    tac_optimizer_config config; /* groups are own copies */
    tac_param_group *groups;
    tac_allocator state_alloc;
    tac__plan plan;
    tac__slot *slots; /* by parameter index */
    tac__run *runs;
    size_t n_runs;
    char *state;            /* from state_alloc; NULL if there is none */
    void *scratch;          /* device memory; NULL if none is needed */
    tac__device_part *part; /* device memory */
    tac__known known;
    tac_schedule schedule;
    int has_schedule;
    uint16_t *low; /* 16-bit copy of the values that steps keep; borrowed */
    tac_dtype low_dtype;
    /* Sources of enqueued copies, which may still be under way. */
    double lr_slots[TAC__SLOTS];
    unsigned next_lr_slot;
    tac__device_part fresh; /* as it is after creation */
};

/* Ranges and combinations, with a text for each. optim_config.c */
tac_status tac__optimizer_check(tac_context *ctx,
                                const tac_optimizer_config *c);
/* Fills decay, rate, group and bits of the slots. optim_groups.c */
tac_status tac__optimizer_groups(const tac_params *params,
                                 const tac_optimizer_config *c,
                                 tac__slot *slots);
tac_status tac__optimizer_copy_groups(tac_optimizer *o);
void tac__optimizer_free_groups(tac_optimizer *o);
/* Fills the rest of the slots: arrays of state and their places. optim_plan.c
 */
void tac__optimizer_plan(const tac_params *params,
                         const tac_optimizer_config *c, tac__slot *slots,
                         tac__plan *plan);
/* The elements that parameter `index` takes in the arenas. optim_plan.c */
size_t tac__optimizer_padded(const tac_params *params, size_t index);
/* Cuts the arenas into runs. optim_runs.c */
tac_status tac__optimizer_make_runs(tac_optimizer *o);
/* Enqueues a copy from the host; src must stay. optim_scalars.c */
tac_status tac__optimizer_write(tac_optimizer *o, void *dst, const void *src,
                                size_t bytes, tac_queue *queue);

#endif
