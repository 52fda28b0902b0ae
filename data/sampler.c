/* sampler.c: DistributedSampler's semantics over a Philox permutation.
 *
 * Everything follows from one number, the position in the epoch's order over
 * all ranks: from `position` on, rank r takes position + r, + r + R, ... Cost:
 * O(N) at a change of epoch, O(1) a sample and for a start anywhere.
 *
 * With shards the position counts rows of R samples, one of each rank; one
 * inside a row (left by a run with another R) is rounded up to the next. */
#include "tacit/sampler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/rng.h"

struct tac_sampler {
    tac_sampler_config config;
    uint64_t epoch, position;
    uint32_t *order; /* the epoch's permutation; NULL without shuffle */
    /* With shards `order` is this rank's own list in the epoch's order. */
    uint32_t *shard; /* in the order of the shards; NULL: none */
    size_t *sizes;   /* of all ranks' shards */
    size_t rows;     /* samples that each rank gets */
};

static tac_status check_config(tac_context *ctx, const tac_sampler_config *c)
{
    if (c->count == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "sampler: the dataset is empty (count 0)");
    if (c->count > UINT32_MAX)
        return tac_fail(ctx, TAC_ERR_ARG, "sampler: count %zu is over %u",
                        c->count, UINT32_MAX);
    if (c->replicas == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "sampler: replicas must be at least 1");
    if (c->rank >= c->replicas)
        return tac_fail(ctx, TAC_ERR_ARG, "sampler: rank %zu is outside 0..%zu",
                        c->rank, c->replicas - 1);
    if (c->shards && (tac_shards_count(c->shards) != c->count ||
                      tac_shards_ranks(c->shards) != c->replicas))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "sampler: shards of %zu samples for %zu ranks, but "
                        "there are %zu and %zu",
                        tac_shards_count(c->shards),
                        tac_shards_ranks(c->shards), c->count, c->replicas);
    return TAC_OK;
}

/* A rank and an epoch in 48 bits: of each the lower ones. */
static uint64_t shard_step(const tac_sampler *s)
{
    return ((uint64_t)s->config.rank & 0xfffff) << 28 | (s->epoch & 0xfffffff);
}

static void make_order(tac_sampler *s)
{
    if (!s->order) return;
    if (!s->shard) {
        const tac_rng_key key = {s->config.seed, TAC_STREAM_SHUFFLE, s->epoch};
        tac_rng_permutation(&key, s->order, s->config.count);
        return;
    }
    const tac_rng_key key = {s->config.seed, TAC_STREAM_SHARD_ORDER,
                             shard_step(s)};
    const size_t n = s->sizes[s->config.rank];
    tac_rng_permutation(&key, s->order, n);
    for (size_t i = 0; i < n; ++i) s->order[i] = s->shard[s->order[i]];
}

/* Copies this rank's list and the sizes of all. */
static int copy_shards(tac_sampler *s, const tac_shards *shards)
{
    const size_t replicas = s->config.replicas;
    const size_t n = tac_shards_size(shards, s->config.rank);
    s->shard = malloc((n + 1) * sizeof(*s->shard));
    s->sizes = malloc(replicas * sizeof(*s->sizes));
    if (!s->shard || !s->sizes) return 0;
    memcpy(s->shard, tac_shards_index(shards, s->config.rank),
           n * sizeof(*s->shard));
    s->rows = tac_shards_size(shards, 0);
    for (size_t r = 0; r < replicas; ++r) {
        const size_t size = s->sizes[r] = tac_shards_size(shards, r);
        if (s->config.drop_last ? size < s->rows : size > s->rows)
            s->rows = size;
    }
    return 1;
}

tac_status tac_sampler_create(tac_context *ctx,
                              const tac_sampler_config *config,
                              tac_sampler **out)
{
    if (!config || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_sampler_create: config and out are needed");
    TAC_TRY(check_config(ctx, config));
    tac_sampler *s = calloc(1, sizeof(*s));
    if (!s) goto fail;
    s->config = *config;
    s->config.shards = NULL; /* borrowed for this call alone */
    if (config->shards && !copy_shards(s, config->shards)) goto fail;
    if (config->shuffle) {
        const size_t n = s->shard ? s->sizes[config->rank] : config->count;
        s->order = malloc((n + 1) * sizeof(*s->order));
        if (!s->order) goto fail;
    }
    make_order(s);
    *out = s;
    return TAC_OK;

fail:
    tac_sampler_destroy(s);
    return tac_fail(ctx, TAC_ERR_NOMEM,
                    "no memory for the order of %zu samples", config->count);
}

void tac_sampler_destroy(tac_sampler *s)
{
    if (!s) return;
    free(s->sizes);
    free(s->shard);
    free(s->order);
    free(s);
}

/* The row of the first sample from `position` on, with shards. */
static uint64_t row_of(const tac_sampler *s, uint64_t position)
{
    const size_t replicas = s->config.replicas;
    return position / replicas + (position % replicas != 0);
}

size_t tac_sampler_remaining(const tac_sampler *s, uint64_t position)
{
    const size_t n = s->config.count, replicas = s->config.replicas;
    if (s->shard) {
        const uint64_t row = row_of(s, position);
        return row < s->rows ? s->rows - (size_t)row : 0;
    }
    if (position >= n) return 0;
    const size_t left = n - (size_t)position;
    return left / replicas + (!s->config.drop_last && left % replicas != 0);
}

size_t tac_sampler_length(const tac_sampler *s)
{
    return tac_sampler_remaining(s, 0);
}

size_t tac_sampler_count(const tac_sampler *s)
{
    return s->config.count;
}

size_t tac_sampler_replicas(const tac_sampler *s)
{
    return s->config.replicas;
}

uint64_t tac_sampler_epoch(const tac_sampler *s)
{
    return s->epoch;
}

uint64_t tac_sampler_position(const tac_sampler *s)
{
    return s->position;
}

void tac_sampler_set_epoch(tac_sampler *s, uint64_t epoch)
{
    s->position = 0;
    if (epoch == s->epoch) return;
    s->epoch = epoch;
    make_order(s);
}

void tac_sampler_seek(tac_sampler *s, uint64_t position)
{
    s->position = position;
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* Sample `row` of this rank's shard; one that is empty lends the dataset's
 * first, as something has to be gathered. */
static tac_sample shard_sample(const tac_sampler *s, uint64_t row)
{
    const size_t n = s->sizes[s->config.rank];
    const uint32_t *list = s->order ? s->order : s->shard;
    return (tac_sample){.position = row * s->config.replicas + s->config.rank,
                        .index = n ? list[row % n] : 0,
                        .valid = row < n};
}

static tac_sample dealt_sample(const tac_sampler *s, uint64_t p)
{
    const uint32_t slot = (uint32_t)(p % s->config.count);
    return (tac_sample){.position = p,
                        .index = s->order ? s->order[slot] : slot,
                        .valid = p < s->config.count};
}

size_t tac_sampler_get(const tac_sampler *s, uint64_t position, size_t n,
                       tac_sample *out)
{
    const size_t take = at_most(n, tac_sampler_remaining(s, position));
    const uint64_t row = row_of(s, position);
    const uint64_t first = position + s->config.rank;
    for (size_t k = 0; k < take; ++k)
        out[k] = s->shard ? shard_sample(s, row + k)
                          : dealt_sample(s, first + k * s->config.replicas);
    return take;
}

size_t tac_sampler_next(tac_sampler *s, size_t n, tac_sample *out)
{
    const size_t got = tac_sampler_get(s, s->position, n, out);
    s->position += (uint64_t)got * s->config.replicas;
    return got;
}

/* Valid ones of rank r's samples from `position` on. */
static size_t valid_left(const tac_sampler *s, uint64_t position, size_t r)
{
    const size_t replicas = s->config.replicas;
    if (s->shard) {
        const uint64_t row = row_of(s, position);
        return row < s->sizes[r] ? s->sizes[r] - (size_t)row : 0;
    }
    const uint64_t first = position + r;
    if (first >= s->config.count) return 0;
    return (s->config.count - (size_t)first - 1) / replicas + 1;
}

size_t tac_sampler_step_count_of(const tac_sampler *s, uint64_t position,
                                 size_t n, size_t first, size_t end)
{
    const size_t take = at_most(n, tac_sampler_remaining(s, position));
    size_t sum = 0;
    if (take == 0) return 0;
    for (size_t r = first; r < end; ++r)
        sum += at_most(take, valid_left(s, position, r));
    return sum;
}

size_t tac_sampler_step_count(const tac_sampler *s, uint64_t position, size_t n)
{
    return tac_sampler_step_count_of(s, position, n, 0, s->config.replicas);
}

tac_status tac_sampler_walk(void *sampler, const tac_state_visitor *v)
{
    tac_sampler *s = sampler;
    const uint64_t seed = s->config.seed, epoch = s->epoch;
    TAC_TRY(tac_state_visit_u64(v, "seed", &s->config.seed));
    TAC_TRY(tac_state_visit_u64(v, "epoch", &s->epoch));
    TAC_TRY(tac_state_visit_u64(v, "position", &s->position));
    if (seed != s->config.seed || epoch != s->epoch) make_order(s);
    return TAC_OK;
}
