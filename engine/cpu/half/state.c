/* state.c: what the 16-bit kernels keep between calls. */
#include <stdint.h>
#include <stdlib.h>

#include "cpu/half/half.h"
#include "cpu/kernel_sets.h"
#include "tacit/pool.h"

tac_status tac__half_create(tac_context *ctx, const tac_kernels *base,
                            void **out)
{
    tac__half *h = calloc(1, sizeof *h);
    if (!h) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for 16-bit kernels");
    h->ctx = ctx;
    h->base = *base;
    *out = h;
    return TAC_OK;
}

static void destroy_part(tac__half_part *part)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->cache_destroy)
            sets[i]->cache_destroy(part->cache.slots[sets[i]->slot]);
    free(part->space.p);
}

void tac__half_destroy(void *state)
{
    tac__half *h = state;
    if (!h) return;
    for (size_t i = 0; i < h->part_count; ++i) destroy_part(&h->parts[i]);
    free(h->parts);
    free(h->whole.p);
    free(h);
}

size_t tac__half_bytes(const void *state)
{
    const tac__half *h = state;
    if (!h) return 0;
    size_t bytes = h->whole.floats * sizeof(float);
    for (size_t i = 0; i < h->part_count; ++i)
        bytes += h->parts[i].space.floats * sizeof(float) +
                 tac__cache_bytes(&h->parts[i].cache);
    return bytes;
}

static tac_status no_memory(const tac__half *h, size_t floats)
{
    return tac_fail(h->ctx, TAC_ERR_NOMEM,
                    "no memory for %zu floats of scratch of a 16-bit kernel; "
                    "lower the batch or the threads",
                    floats);
}

/* Some more than asked for: a kernel may store whole vectors. */
static tac_status grow(const tac__half *h, tac__half_space *space,
                       size_t floats)
{
    const size_t page = 4096;
    if (space->p && space->floats >= floats) return TAC_OK;
    if (floats > (SIZE_MAX - 2 * page) / sizeof(float))
        return no_memory(h, floats);
    const size_t bytes = (floats * sizeof(float) / page + 1) * page;
    float *p = aligned_alloc(page, bytes);
    if (!p) return no_memory(h, floats);
    free(space->p);
    *space = (tac__half_space){p, bytes / sizeof(float)};
    return TAC_OK;
}

float *tac__half_scratch(const tac_kctx *kc, size_t floats)
{
    tac__half *h = tac__half_of(kc);
    return grow(h, &h->whole, floats) < 0 ? NULL : h->whole.p;
}

/* The states that the device has, made once more for the part. */
static tac_status fill_cache(const tac__half *h, const tac_cpu_cache *device,
                             tac_cpu_cache *cache)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    for (size_t i = 0; sets[i]; ++i) {
        const int slot = sets[i]->slot;
        if (sets[i]->cache_create && device->slots[slot] && !cache->slots[slot])
            TAC_TRY(sets[i]->cache_create(h->ctx, &cache->slots[slot]));
    }
    return TAC_OK;
}

static tac_status add_parts(tac__half *h, const tac_kctx *kc, size_t count)
{
    if (count <= h->part_count) return TAC_OK;
    tac__half_part *parts = realloc(h->parts, count * sizeof *parts);
    if (!parts) return no_memory(h, count);
    h->parts = parts;
    while (h->part_count < count) {
        tac__half_part *part = &parts[h->part_count++];
        *part = (tac__half_part){{NULL, 0}, {{NULL}}};
        TAC_TRY(fill_cache(h, kc->cache, &part->cache));
    }
    return TAC_OK;
}

tac_status tac__half_reserve(const tac_kctx *kc, size_t floats)
{
    tac__half *h = tac__half_of(kc);
    const size_t count = (size_t)tac_pool_size(kc->pool);
    TAC_TRY(add_parts(h, kc, count));
    for (size_t i = 0; i < count; ++i)
        TAC_TRY(grow(h, &h->parts[i].space, floats));
    return TAC_OK;
}

void tac__half_apply(tac_kernels *table)
{
    if (table->dtype == TAC_F16) tac__half_apply_f16(table);
    if (table->dtype == TAC_BF16) tac__half_apply_bf16(table);
}
