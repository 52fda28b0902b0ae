/* loader_impl.h: what loader.c (hand-over) and loader_fill.c (contents) share.
 */
#ifndef TAC_DATA_LOADER_IMPL_H
#define TAC_DATA_LOADER_IMPL_H

#include "tacit/loader.h"

/* One buffer of a batch. */
typedef struct tac__loader_slot {
    tac_batch batch;
    uint64_t next_position; /* of the sampler once this batch is in use */
    tac_sample *samples;    /* scratch of the filler */
} tac__loader_slot;

/* What filling needs; constant while an epoch runs but for the cursor, which
 * belongs to whoever fills. */
typedef struct tac__loader_fill {
    tac_context *ctx;
    tac_dataset *set;
    const tac_sampler *sampler;
    size_t batch;
    int drop_partial;
    uint64_t position, step; /* cursor: of the next batch to fill */
} tac__loader_fill;

tac_status tac__loader_slot_create(tac_context *ctx, size_t batch,
                                   size_t sample, tac__loader_slot *slot);
/* What it holds; SIZE_MAX: too much. */
size_t tac__loader_slot_bytes(size_t batch, size_t sample);
void tac__loader_slot_destroy(tac__loader_slot *slot);

/* Fills a slot from the cursor and advances it. *end = 1 (and nothing filled)
 * at the end of the epoch. */
tac_status tac__loader_fill_slot(tac__loader_fill *f, tac__loader_slot *slot,
                                 int *end);

#endif
