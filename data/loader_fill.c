/* loader_fill.c: the contents of one batch: samples from the sampler, images
 * and labels from the dataset. Cost: one gather; no allocation. */
#include <stdlib.h>

#include "loader_impl.h"
#include "tacit/clock.h"
#include "tacit/trace.h"

/* 64-byte aligned, at least one line; NULL: no memory or overflow. */
static void *aligned(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - 64)
        return NULL;
    return aligned_alloc(64, bytes / 64 * 64 + 64);
}

/* What the arrays of a batch have for a sample besides its floats. */
enum {
    LABEL_BYTES = sizeof(int32_t) + sizeof(uint8_t) + sizeof(uint64_t) +
                  sizeof(uint32_t) + sizeof(tac_sample)
};

size_t tac__loader_slot_bytes(size_t batch, size_t sample)
{
    size_t one, all;
    if (__builtin_mul_overflow(sample, sizeof(float), &one) ||
        __builtin_add_overflow(one, LABEL_BYTES, &one) ||
        __builtin_mul_overflow(batch, one, &all) || all > SIZE_MAX - 6 * 64)
        return SIZE_MAX;
    return all + 6 * 64;
}

tac_status tac__loader_slot_create(tac_context *ctx, size_t batch,
                                   size_t sample, tac__loader_slot *slot)
{
    tac_batch *b = &slot->batch;
    size_t floats = 0;
    if (!__builtin_mul_overflow(batch, sample, &floats))
        b->x = aligned(floats, sizeof(*b->x));
    b->y = aligned(batch, sizeof(*b->y));
    b->valid = aligned(batch, sizeof(*b->valid));
    b->position = aligned(batch, sizeof(*b->position));
    b->index = aligned(batch, sizeof(*b->index));
    slot->samples = aligned(batch, sizeof(*slot->samples));
    if (b->x && b->y && b->valid && b->position && b->index && slot->samples)
        return TAC_OK;
    tac__loader_slot_destroy(slot);
    return tac_fail(ctx, TAC_ERR_NOMEM,
                    "loader: no memory for a batch of %zu samples of %zu "
                    "floats; lower the batch",
                    batch, sample);
}

void tac__loader_slot_destroy(tac__loader_slot *slot)
{
    tac_batch *b = &slot->batch;
    free(b->x);
    free(b->y);
    free(b->valid);
    free(b->position);
    free(b->index);
    free(slot->samples);
    *slot = (tac__loader_slot){0};
}

static void copy_samples(const tac_sample *samples, size_t n, tac_batch *b)
{
    b->count = n;
    b->valid_count = 0;
    for (size_t i = 0; i < n; ++i) {
        b->index[i] = samples[i].index;
        b->position[i] = samples[i].position;
        b->valid[i] = samples[i].valid != 0;
        b->valid_count += b->valid[i];
    }
}

static void mask_labels(tac_batch *b)
{
    for (size_t i = 0; i < b->count; ++i)
        if (!b->valid[i]) b->y[i] = -1;
}

tac_status tac__loader_fill_slot(tac__loader_fill *f, tac__loader_slot *slot,
                                 int *end)
{
    const uint64_t begin = tac_clock_ns();
    const size_t n =
        tac_sampler_get(f->sampler, f->position, f->batch, slot->samples);
    *end = n == 0 || (f->drop_partial && n < f->batch);
    if (*end) return TAC_OK;
    tac_batch *b = &slot->batch;
    copy_samples(slot->samples, n, b);
    TAC_TRY(tac_dataset_gather(f->set, f->ctx, n, b->index, b->x, b->y));
    mask_labels(b);
    b->step_count = tac_sampler_step_count(f->sampler, f->position, n);
    b->step = f->step++;
    f->position += (uint64_t)n * tac_sampler_replicas(f->sampler);
    slot->next_position = f->position;
    tac_trace_span(f->ctx, TAC_LANE_LOADER, "load", begin, tac_clock_ns(),
                   (int64_t)b->step);
    return TAC_OK;
}
