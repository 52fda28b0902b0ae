/* The scaler's inside, shared by the scaler_*.c files. */
#ifndef TAC_AMP_SCALER_IMPL_H
#define TAC_AMP_SCALER_IMPL_H

#include "tacit/kernels.h"
#include "tacit/scaler.h"

enum {
    TAC__SCALER_OPTIMIZERS = 8, /* in one iteration */
    TAC__SCALER_SLOTS = 2,      /* mirrors: the update before may be on its way
                                   while the one before that is read */
    TAC__SCALE_SLOTS = 8 /* scales set by hand that may be on their way */
};

/* What the host gets a copy of after each update. */
typedef struct tac__scaler_view {
    tac_scaler_state state;
    uint64_t bad[TAC__SCALER_OPTIMIZERS]; /* of each optimizer; UINT64_MAX */
} tac__scaler_view;

/* In device memory. */
typedef struct tac__scaler_part {
    tac__scaler_view view;
    float one; /* what gradients are divided by between iterations */
} tac__scaler_part;

typedef enum tac__scaler_stage {
    TAC__UNSCALED, /* not listed at all: READY */
    TAC__STEPPED
} tac__scaler_stage;

typedef struct tac__scaler_entry {
    tac_optimizer *optimizer;
    tac__scaler_stage stage;
} tac__scaler_entry;

/* The parameters that `bad` is about; NULL: no such optimizer. */
typedef struct tac__scaler_finders {
    const tac_params *params[TAC__SCALER_OPTIMIZERS];
} tac__scaler_finders;

typedef struct tac__scaler_known {
    tac__scaler_view view;
    tac__scaler_finders finders;
} tac__scaler_known;

typedef struct tac__scaler_mirror {
    tac__scaler_known known; /* its view is a copy's destination */
    tac_event *arrived;
    int used;
} tac__scaler_mirror;

struct tac_scaler {
    tac_device *dev;
    tac_context *ctx;
    const tac_kernels *k;
    tac_scaler_config config;
    tac__scaler_part *part; /* device memory */

    /* The optimizers of this iteration that are not READY. */
    tac__scaler_entry entries[TAC__SCALER_OPTIMIZERS];
    size_t n_entries;

    tac__scaler_finders finders; /* of the latest update */
    tac__scaler_mirror mirrors[TAC__SCALER_SLOTS];
    unsigned next_mirror;
    tac__scaler_known known; /* the latest that has arrived */

    float scale_slots[TAC__SCALE_SLOTS];
    unsigned next_scale_slot;

    tac_scaler_agree_fn *agree;
    void *agree_arg;
};

/* scaler_config.c: ranges, with a text for each; `code` is for the caller. */
tac_status tac__scaler_check_config(tac_context *ctx,
                                    const tac_scaler_config *c,
                                    tac_status code);

/* scaler_check.c */
tac__scaler_entry *tac__scaler_find(tac_scaler *s, const tac_optimizer *o);

/* scaler_mirror.c: make, drop, and enqueue a copy of the present state. */
tac_status tac__scaler_mirrors_make(tac_scaler *s);
void tac__scaler_mirrors_drop(tac_scaler *s);
tac_status tac__scaler_mirror_now(tac_scaler *s, tac_queue *queue);

#endif
