/* dataset.c: the dataset object and subsets of it. */
#include "tacit/dataset.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Samples that are asked for at a time where memory of their own is needed. */
enum { CHUNK = 64 };

struct tac_dataset {
    atomic_size_t owners;
    const tac_dataset_ops *ops;
    void *impl;
    tac_dataset_info info;
    size_t sample; /* H*W*C */
};

static tac_status check_info(tac_context *ctx, const char *name,
                             const tac_dataset_info *info, size_t *sample)
{
    size_t size = info->h;
    size_t all;
    if (__builtin_mul_overflow(size, info->w, &size) ||
        __builtin_mul_overflow(size, info->c, &size) ||
        __builtin_mul_overflow(size, info->count, &all) ||
        all > SIZE_MAX / sizeof(float) || size == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "dataset %s: %zu samples of shape %zux%zux%zu: each "
                        "dimension must be at least 1 and the whole must be "
                        "addressable",
                        name, info->count, info->h, info->w, info->c);
    if (info->count > UINT32_MAX)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "dataset %s: %zu samples, at most %u can be indexed",
                        name, info->count, UINT32_MAX);
    *sample = size;
    return TAC_OK;
}

tac_status tac_dataset_create(tac_context *ctx, const tac_dataset_ops *ops,
                              void *impl, const tac_dataset_info *info,
                              tac_dataset **out)
{
    if (!ops || !ops->gather || !ops->name || !info || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_dataset_create: ops with a name and gather, info "
                        "and out are needed");
    size_t sample = 0;
    TAC_TRY(check_info(ctx, ops->name, info, &sample));
    tac_dataset *set = malloc(sizeof(*set));
    if (!set)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for dataset %s",
                        ops->name);
    atomic_init(&set->owners, 1);
    set->ops = ops;
    set->impl = impl;
    set->info = *info;
    set->sample = sample;
    *out = set;
    return TAC_OK;
}

tac_dataset *tac_dataset_retain(tac_dataset *set)
{
    atomic_fetch_add_explicit(&set->owners, 1, memory_order_relaxed);
    return set;
}

void tac_dataset_destroy(tac_dataset *set)
{
    if (!set) return;
    /* acq_rel: what other owners did comes before the last one's free. */
    if (atomic_fetch_sub_explicit(&set->owners, 1, memory_order_acq_rel) > 1)
        return;
    if (set->ops->destroy) set->ops->destroy(set->impl);
    free(set);
}

const char *tac_dataset_name(const tac_dataset *set)
{
    return set->ops->name;
}

tac_dataset_info tac_dataset_get_info(const tac_dataset *set)
{
    return set->info;
}

size_t tac_dataset_sample_size(const tac_dataset *set)
{
    return set->sample;
}

static tac_status check_indices(const tac_dataset *set, tac_context *ctx,
                                size_t n, const uint32_t *index)
{
    for (size_t i = 0; i < n; ++i) {
        if (index[i] >= set->info.count)
            return tac_fail(ctx, TAC_ERR_ARG,
                            "dataset %s has %zu samples; sample %u was asked "
                            "for",
                            set->ops->name, set->info.count, index[i]);
    }
    return TAC_OK;
}

tac_status tac_dataset_gather(const tac_dataset *set, tac_context *ctx,
                              size_t n, const uint32_t *index, float *x,
                              int32_t *y)
{
    if (n == 0) return TAC_OK;
    TAC_TRY(check_indices(set, ctx, n, index));
    return set->ops->gather(set->impl, ctx, n, index, x, y);
}

/* Gathers a few samples at a time and keeps their labels. */
static tac_status labels_by_gather(const tac_dataset *set, tac_context *ctx,
                                   size_t n, const uint32_t *index, int32_t *y)
{
    float *x = malloc(CHUNK * set->sample * sizeof(*x));
    tac_status status = TAC_OK;
    if (!x)
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "no memory for %d samples of dataset %s", CHUNK,
                        set->ops->name);
    for (size_t done = 0; done < n && status >= 0; done += CHUNK) {
        const size_t m = n - done < CHUNK ? n - done : CHUNK;
        status = set->ops->gather(set->impl, ctx, m, index + done, x, y + done);
    }
    free(x);
    return status;
}

tac_status tac_dataset_labels(const tac_dataset *set, tac_context *ctx,
                              size_t n, const uint32_t *index, int32_t *y)
{
    if (n == 0) return TAC_OK;
    TAC_TRY(check_indices(set, ctx, n, index));
    if (set->ops->struct_size < sizeof(tac_dataset_ops) || !set->ops->labels)
        return labels_by_gather(set, ctx, n, index, y);
    return set->ops->labels(set->impl, ctx, n, index, y);
}

/* A subset translates indices and lets its parent gather. */
typedef struct subset {
    tac_dataset *parent;
    uint32_t index[];
} subset;

/* Writes the parent's indices of up to CHUNK samples; returns how many. */
static size_t translate(const subset *s, size_t n, const uint32_t *index,
                        uint32_t *parents)
{
    const size_t m = n < CHUNK ? n : CHUNK;
    for (size_t i = 0; i < m; ++i) parents[i] = s->index[index[i]];
    return m;
}

static tac_status subset_gather(void *impl, tac_context *ctx, size_t n,
                                const uint32_t *index, float *x, int32_t *y)
{
    const subset *s = impl;
    uint32_t parents[CHUNK];
    for (size_t done = 0; done < n;) {
        const size_t m = translate(s, n - done, index + done, parents);
        TAC_TRY(tac_dataset_gather(s->parent, ctx, m, parents,
                                   x + done * s->parent->sample, y + done));
        done += m;
    }
    return TAC_OK;
}

static tac_status subset_labels(void *impl, tac_context *ctx, size_t n,
                                const uint32_t *index, int32_t *y)
{
    const subset *s = impl;
    uint32_t parents[CHUNK];
    for (size_t done = 0; done < n;) {
        const size_t m = translate(s, n - done, index + done, parents);
        TAC_TRY(tac_dataset_labels(s->parent, ctx, m, parents, y + done));
        done += m;
    }
    return TAC_OK;
}

static void subset_destroy(void *impl)
{
    subset *s = impl;
    tac_dataset_destroy(s->parent);
    free(s);
}

static const tac_dataset_ops subset_ops;

/* The share of `n` samples of all that `set` has. */
static size_t share_bytes(const tac_dataset *set, size_t n)
{
    const double all = (double)tac_dataset_bytes(set);
    const size_t count = set->info.count;
    return count > 0 ? (size_t)(all * (double)n / (double)count) : 0;
}

size_t tac_dataset_bytes(const tac_dataset *set)
{
    if (set->ops == &subset_ops) {
        const subset *s = set->impl;
        return set->info.count * sizeof(uint32_t) +
               share_bytes(s->parent, set->info.count);
    }
    if (set->ops->struct_size < offsetof(tac_dataset_ops, labels) ||
        !set->ops->bytes)
        return 0;
    return set->ops->bytes(set->impl);
}

static const tac_dataset_ops subset_ops = {
    sizeof(tac_dataset_ops), "subset", subset_gather,
    subset_destroy,          NULL,     subset_labels};

tac_status tac_dataset_subset(tac_context *ctx, tac_dataset *parent, size_t n,
                              const uint32_t *index, tac_dataset **out)
{
    if (!parent || (n && !index) || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_dataset_subset: parent, index and out are needed");
    TAC_TRY(check_indices(parent, ctx, n, index));
    size_t bytes = 0;
    if (__builtin_mul_overflow(n, sizeof(uint32_t), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(subset), &bytes))
        return tac_fail(ctx, TAC_ERR_ARG, "a subset of %zu samples", n);
    subset *s = malloc(bytes);
    if (!s)
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "no memory for a subset of %zu samples", n);
    s->parent = parent;
    if (n) memcpy(s->index, index, n * sizeof(uint32_t));
    tac_dataset_info info = parent->info;
    info.count = n;
    tac_status status = tac_dataset_create(ctx, &subset_ops, s, &info, out);
    if (status < 0) {
        free(s);
        return status;
    }
    tac_dataset_retain(parent);
    return TAC_OK;
}
