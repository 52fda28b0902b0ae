/* tacit/loader.h: batches, filled in the background.
 *
 * A loader joins a dataset and a sampler. While batch t is in use one thread
 * of its own fills batches t+1 .. t+prefetch. With prefetch 0 there is no
 * thread and batches are filled when asked for; the batches are the same.
 *
 *     tac_loader_start_epoch(loader, epoch);
 *     while (tac_loader_next(loader, &batch) == TAC_OK && batch) { ... }
 *
 * The sampler's position follows what was handed out, not what was filled
 * ahead: saving the sampler after step t and tac_loader_resume continue with
 * step t+1. Spans named "load" go to TAC_LANE_LOADER of the trace.
 *
 * Thread-safety: one thread at a time a loader. Its thread blocks all signals
 * and holds no CPU while it waits. */
#ifndef TACIT_LOADER_H
#define TACIT_LOADER_H

#include "tacit/dataset.h"
#include "tacit/sampler.h"

TAC_BEGIN_DECLS

typedef struct tac_loader tac_loader;

typedef struct tac_loader_config {
    size_t struct_size;
    size_t batch;     /* samples a rank and step, at least 1 */
    size_t prefetch;  /* batches filled ahead; 0: no thread */
    int drop_partial; /* 1: no last batch of fewer than `batch` samples */
    int timeout_ms;   /* longest wait for one batch; then TIMEOUT */
} tac_loader_config;

#define TAC_LOADER_CONFIG_INIT                      \
    {                                               \
        sizeof(tac_loader_config), 64, 2, 0, 300000 \
    }

/* One batch, borrowed from the loader until the next call on it. Arrays have
 * `count` entries and are aligned to 64 bytes. */
typedef struct tac_batch {
    size_t count;       /* samples; less than `batch` at the end of an epoch */
    size_t valid_count; /* of them no padding */
    size_t step_count;  /* valid samples of this step over all ranks */
    uint64_t step;      /* batches of this epoch before this one */
    float *x;           /* (count,H,W,C) f32 */
    int32_t *y;         /* (count) labels; -1 for padding, which a loss masks */
    uint8_t *valid;     /* (count) 0: padding */
    uint64_t *position; /* (count) in the epoch's order over all ranks: the
                           index for per-sample random numbers */
    uint32_t *index;    /* (count) in the dataset */
} tac_batch;

/* Creates a loader; `set` is retained, `sampler` is borrowed and must not be
 * changed by others while an epoch runs. Errors: ARG (batch 0; the sampler's
 * count is not the dataset's), NOMEM. */
TAC_API tac_status tac_loader_create(tac_context *ctx, tac_dataset *set,
                                     tac_sampler *sampler,
                                     const tac_loader_config *config,
                                     tac_loader **out);
/* Stops and frees. Waits for a `gather` in progress. NULL is legal. */
TAC_API void tac_loader_destroy(tac_loader *l);

/* Bytes of batches that a loader of `set` with this configuration holds: for
 * tables made before it is. SIZE_MAX: more than can be addressed. */
TAC_API size_t tac_loader_predict(const tac_dataset *set,
                                  const tac_loader_config *config);

/* Batches of a whole epoch, the same on every rank. */
TAC_API size_t tac_loader_batches(const tac_loader *l);

/* Sets the sampler to the start of `epoch` and begins to fill. May be called
 * at any time; what was filled before is dropped. */
TAC_API tac_status tac_loader_start_epoch(tac_loader *l, uint64_t epoch);
/* Begins to fill at the sampler's present epoch and position. */
TAC_API tac_status tac_loader_resume(tac_loader *l);

/* The next batch, or *out = NULL at the end of the epoch. Errors: STATE if no
 * epoch was started; TIMEOUT; the first failure of the dataset, after the good
 * batches before it, and at each later call until the next start. */
TAC_API tac_status tac_loader_next(tac_loader *l, const tac_batch **out);

/* Stops filling and drops what was filled ahead. The sampler stays at the
 * position after the last batch handed out. Legal at any time. */
TAC_API void tac_loader_stop(tac_loader *l);

TAC_END_DECLS

#endif
