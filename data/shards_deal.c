/* shards_deal.c: from a spec and labels to shards of equal sizes. */
#include <stdlib.h>
#include <string.h>

#include "shards_impl.h"
#include "tacit/rng.h"

enum { MOST_CLASSES = 1 << 20, MOST_RANKS = 1 << 20 };

/* "dirichlet:0.5", 0.5 of it; anything else: 0. */
static double concentration(const char *spec)
{
    const char *colon = strchr(spec, ':');
    char *end = NULL;
    if (!colon || strncmp(spec, "dirichlet:", 10) != 0) return 0;
    const double a = strtod(colon + 1, &end);
    const int is_number = colon[1] != '\0' && *end == '\0';
    return is_number && a >= 1e-6 && a <= 1e6 ? a : 0;
}

tac_status tac_shards_check(tac_context *ctx, const char *spec)
{
    if (!spec)
        return tac_fail(ctx, TAC_ERR_ARG, "tac_shards_check: a spec is needed");
    if (!strcmp(spec, "iid") || !strcmp(spec, "sorted") ||
        concentration(spec) > 0)
        return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "shards '%s' are unknown: expected iid, sorted, or "
                    "dirichlet:A with A from 1e-6 to 1e6, as in dirichlet:0.5",
                    spec);
}

static tac_status check_config(tac_context *ctx, const tac_shards_config *c)
{
    if (!c->labels || c->count == 0 || c->count > UINT32_MAX)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "shards: labels of 1 to %u samples are needed, not %zu",
                        UINT32_MAX, c->labels ? c->count : 0);
    if (c->classes == 0 || c->classes > MOST_CLASSES || c->ranks == 0 ||
        c->ranks > MOST_RANKS)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "shards: %zu classes and %zu ranks, expected 1 to %d "
                        "and 1 to %d",
                        c->classes, c->ranks, MOST_CLASSES, MOST_RANKS);
    for (size_t i = 0; i < c->count; ++i)
        if (c->labels[i] < 0 || (size_t)c->labels[i] >= c->classes)
            return tac_fail(ctx, TAC_ERR_ARG,
                            "shards: sample %zu has the label %d, outside "
                            "0..%zu",
                            i, c->labels[i], c->classes - 1);
    return TAC_OK;
}

void tac__pools_fill(const tac_shards_config *c, const uint32_t *order,
                     tac__pools *pools)
{
    size_t *first = pools->first;
    memset(first, 0, (c->classes + 1) * sizeof(*first));
    for (size_t i = 0; i < c->count; ++i) ++first[c->labels[i] + 1];
    for (size_t k = 0; k < c->classes; ++k) first[k + 1] += first[k];
    /* first[k] runs to the end of class k, where class k+1 begins. */
    for (size_t i = 0; i < c->count; ++i) {
        const uint32_t sample = order ? order[i] : (uint32_t)i;
        pools->index[first[c->labels[sample]]++] = sample;
    }
    for (size_t k = c->classes; k > 0; --k) first[k] = first[k - 1];
    first[0] = 0;
}

static void set_sizes(const tac_shards_config *c, tac_shards *s)
{
    s->first[0] = 0;
    for (size_t r = 0; r < c->ranks; ++r)
        s->first[r + 1] =
            s->first[r] + c->count / c->ranks + (r < c->count % c->ranks);
}

/* Pools in a random order of their samples, then the mixes. */
static tac_status deal_dirichlet(tac_context *ctx, const tac_shards_config *c,
                                 double a, tac__pools *pools, tac_shards *s)
{
    const tac_rng_key key = {c->seed, TAC_STREAM_SHARD, 0};
    tac_rng_permutation(&key, s->index, c->count);
    tac__pools_fill(c, s->index, pools);
    return tac__shards_dirichlet(ctx, c, a, pools, s);
}

static tac_status deal(tac_context *ctx, double a, const tac_shards_config *c,
                       tac_shards *s)
{
    tac__pools pools = {.classes = c->classes};
    tac_status status = TAC_OK;
    pools.first = malloc((c->classes + 1) * sizeof(*pools.first));
    pools.index = malloc(c->count * sizeof(*pools.index));
    set_sizes(c, s);
    if (!pools.first || !pools.index) {
        status = tac_fail(ctx, TAC_ERR_NOMEM,
                          "no memory to sort %zu samples by label", c->count);
    } else if (a > 0) {
        status = deal_dirichlet(ctx, c, a, &pools, s);
    } else {
        tac__pools_fill(c, NULL, &pools);
        memcpy(s->index, pools.index, c->count * sizeof(*pools.index));
    }
    free(pools.index);
    free(pools.first);
    return status;
}

tac_status tac_shards_create(tac_context *ctx, const char *spec,
                             const tac_shards_config *config, tac_shards **out)
{
    tac_shards *s = NULL;
    if (!config || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_shards_create: config and out are needed");
    TAC_TRY(tac_shards_check(ctx, spec));
    if (!strcmp(spec, "iid")) {
        *out = NULL;
        return TAC_OK;
    }
    TAC_TRY(check_config(ctx, config));
    TAC_TRY(tac__shards_alloc(ctx, config->ranks, config->count, &s));
    const tac_status status = deal(ctx, concentration(spec), config, s);
    if (status < 0) {
        tac_shards_destroy(s);
        return status;
    }
    *out = s;
    return TAC_OK;
}

static tac_status read_labels(tac_context *ctx, const tac_dataset *set,
                              size_t n, int32_t **out)
{
    int32_t *labels = malloc((n + 1) * sizeof(*labels));
    uint32_t *index = malloc((n + 1) * sizeof(*index));
    tac_status status;
    if (labels && index) {
        for (size_t i = 0; i < n; ++i) index[i] = (uint32_t)i;
        status = tac_dataset_labels(set, ctx, n, index, labels);
    } else {
        status = tac_fail(ctx, TAC_ERR_NOMEM, "no memory for %zu labels", n);
    }
    free(index);
    if (status < 0) {
        free(labels);
        return status;
    }
    *out = labels;
    return TAC_OK;
}

tac_status tac_dataset_shards(tac_context *ctx, const tac_dataset *set,
                              const char *spec, size_t ranks, uint64_t seed,
                              tac_shards **out)
{
    tac_shards_config c = TAC_SHARDS_CONFIG_INIT;
    int32_t *labels = NULL;
    if (!set)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_dataset_shards: a dataset is needed");
    const tac_dataset_info info = tac_dataset_get_info(set);
    if (spec && strcmp(spec, "iid") != 0)
        TAC_TRY(read_labels(ctx, set, info.count, &labels));
    c.labels = labels;
    c.count = info.count;
    c.classes = info.classes;
    c.ranks = ranks;
    c.seed = seed;
    const tac_status status = tac_shards_create(ctx, spec, &c, out);
    free(labels);
    return status;
}
