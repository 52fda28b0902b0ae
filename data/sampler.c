/* sampler.c: DistributedSampler's semantics over a Philox permutation.
 *
 * Everything follows from one number, the position in the epoch's order over
 * all ranks: from `position` on, rank r takes position + r, + r + R, ... Cost:
 * O(N) at a change of epoch, O(1) a sample and for a start anywhere. */
#include "tacit/sampler.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tacit/rng.h"

struct tac_sampler {
    tac_sampler_config config;
    uint64_t epoch, position;
    uint32_t *order; /* the epoch's permutation; NULL without shuffle */
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
    return TAC_OK;
}

static void make_order(tac_sampler *s)
{
    if (!s->order) return;
    const tac_rng_key key = {s->config.seed, TAC_STREAM_SHUFFLE, s->epoch};
    tac_rng_permutation(&key, s->order, s->config.count);
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
    if (!s) goto fail_alloc;
    s->config = *config;
    if (config->shuffle) {
        s->order = malloc(config->count * sizeof(*s->order));
        if (!s->order) goto fail_order;
    }
    make_order(s);
    *out = s;
    return TAC_OK;

fail_order:
    free(s);
fail_alloc:
    return tac_fail(ctx, TAC_ERR_NOMEM,
                    "no memory for the order of %zu samples", config->count);
}

void tac_sampler_destroy(tac_sampler *s)
{
    if (!s) return;
    free(s->order);
    free(s);
}

size_t tac_sampler_remaining(const tac_sampler *s, uint64_t position)
{
    const size_t n = s->config.count, replicas = s->config.replicas;
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

size_t tac_sampler_get(const tac_sampler *s, uint64_t position, size_t n,
                       tac_sample *out)
{
    const size_t count = s->config.count;
    const size_t take = at_most(n, tac_sampler_remaining(s, position));
    for (size_t k = 0; k < take; ++k) {
        const uint64_t p = position + s->config.rank + k * s->config.replicas;
        const uint32_t slot = (uint32_t)(p % count);
        out[k].position = p;
        out[k].index = s->order ? s->order[slot] : slot;
        out[k].valid = p < count;
    }
    return take;
}

size_t tac_sampler_next(tac_sampler *s, size_t n, tac_sample *out)
{
    const size_t got = tac_sampler_get(s, s->position, n, out);
    s->position += (uint64_t)got * s->config.replicas;
    return got;
}

size_t tac_sampler_step_count(const tac_sampler *s, uint64_t position, size_t n)
{
    const size_t take = at_most(n, tac_sampler_remaining(s, position));
    if (take == 0) return 0;
    const size_t left = s->config.count - (size_t)position;
    return at_most(take * s->config.replicas, left);
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
