/* shards.c: the object, and shards of one's own. */
#include "tacit/shards.h"

#include <stdlib.h>
#include <string.h>

#include "shards_impl.h"

tac_status tac__shards_alloc(tac_context *ctx, size_t ranks, size_t count,
                             tac_shards **out)
{
    tac_shards *s = calloc(1, sizeof(*s));
    if (!s) goto fail;
    s->ranks = ranks;
    s->first = malloc((ranks + 1) * sizeof(*s->first));
    s->index = malloc((count + 1) * sizeof(*s->index));
    if (!s->first || !s->index) goto fail;
    *out = s;
    return TAC_OK;

fail:
    tac_shards_destroy(s);
    return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for shards of %zu samples",
                    count);
}

/* Writes the sum of sizes, unless it is no count of samples. */
static tac_status add_up(tac_context *ctx, size_t ranks, const size_t *sizes,
                         size_t *count)
{
    size_t sum = 0;
    for (size_t r = 0; r < ranks; ++r)
        if (__builtin_add_overflow(sum, sizes[r], &sum)) sum = SIZE_MAX;
    if (sum == 0 || sum > UINT32_MAX)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "shards: %zu samples in all, expected 1 to %u", sum,
                        UINT32_MAX);
    *count = sum;
    return TAC_OK;
}

/* Is each of 0..count-1 there once? */
static tac_status check_partition(tac_context *ctx, size_t count,
                                  const uint32_t *index)
{
    unsigned char *seen = calloc(count, 1);
    tac_status status = TAC_OK;
    if (!seen)
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "no memory to check shards of %zu samples", count);
    for (size_t i = 0; i < count && status >= 0; ++i) {
        if (index[i] >= count || seen[index[i]])
            status = tac_fail(
                ctx, TAC_ERR_ARG,
                "shards: sample %u is %s; each of the %zu "
                "belongs to one rank",
                index[i], index[i] >= count ? "out of range" : "there twice",
                count);
        else
            seen[index[i]] = 1;
    }
    free(seen);
    return status;
}

tac_status tac_shards_of(tac_context *ctx, size_t ranks, const size_t *sizes,
                         const uint32_t *index, tac_shards **out)
{
    size_t count = 0;
    tac_shards *s = NULL;
    if (ranks == 0 || !sizes || !index || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_shards_of: ranks, sizes, index and out are "
                        "needed");
    TAC_TRY(add_up(ctx, ranks, sizes, &count));
    TAC_TRY(check_partition(ctx, count, index));
    TAC_TRY(tac__shards_alloc(ctx, ranks, count, &s));
    s->first[0] = 0;
    for (size_t r = 0; r < ranks; ++r) s->first[r + 1] = s->first[r] + sizes[r];
    memcpy(s->index, index, count * sizeof(*index));
    *out = s;
    return TAC_OK;
}

void tac_shards_destroy(tac_shards *s)
{
    if (!s) return;
    free(s->index);
    free(s->first);
    free(s);
}

size_t tac_shards_ranks(const tac_shards *s)
{
    return s->ranks;
}

size_t tac_shards_count(const tac_shards *s)
{
    return s->first[s->ranks];
}

size_t tac_shards_size(const tac_shards *s, size_t r)
{
    return s->first[r + 1] - s->first[r];
}

const uint32_t *tac_shards_index(const tac_shards *s, size_t r)
{
    return s->index + s->first[r];
}
