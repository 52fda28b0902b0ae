/* reducer_assign.c: which parameters form which bucket.
 *
 * The rule of the field's data-parallel reducers: one open bucket for each
 * dtype, closed as soon as its bytes reach the limit, the parameter included;
 * a parameter is never split; each dtype advances through the list of limits
 * on its own and repeats the last. Cost: O(n log n), no data is touched.
 * Reference: Li et al., "PyTorch Distributed: Experiences on Accelerating Data
 * Parallel Training", VLDB 2020. */
#include <stdlib.h>
#include <string.h>

#include "reducer_impl.h"

/* While assigning: a bucket is a chain of parameters in the order taken. */
typedef struct tac__draft {
    size_t key;  /* buckets are sorted by it */
    size_t size; /* parameters */
    size_t limit;
    size_t id;
} tac__draft;

typedef struct tac__open {
    size_t id; /* of the open bucket, valid if `is_open` */
    size_t bytes;
    size_t step; /* in the list of limits */
    int is_open;
} tac__open;

typedef struct tac__assign {
    const tac_param_desc *params;
    size_t n;
    const size_t *order, *limits;
    size_t n_limits;
    tac__open open[TAC_DTYPE_COUNT];
    tac__draft *drafts; /* (n) */
    size_t n_drafts;
    size_t *draft_of; /* (n) by parameter */
} tac__assign;

static int is_permutation(const size_t *order, size_t n)
{
    unsigned char *seen = calloc(n ? n : 1, 1);
    if (!seen) return -1;
    int ok = 1;
    for (size_t i = 0; i < n && ok; ++i) {
        ok = order[i] < n && !seen[order[i]];
        if (ok) seen[order[i]] = 1;
    }
    free(seen);
    return ok;
}

/* Puts parameter p, the k-th taken, into its dtype's open bucket. */
static tac_status take(tac__assign *a, size_t p, size_t k)
{
    const tac_param_desc *d = &a->params[p];
    const size_t element = tac_dtype_size(d->dtype);
    if (!element || d->count > SIZE_MAX / element) return TAC_ERR_ARG;
    tac__open *o = &a->open[d->dtype];

    if (!o->is_open) {
        *o = (tac__open){a->n_drafts, 0, o->step, 1};
        const size_t key = a->order ? k : p;
        a->drafts[a->n_drafts] =
            (tac__draft){key, 0, a->limits[o->step], a->n_drafts};
        ++a->n_drafts;
    }
    tac__draft *draft = &a->drafts[o->id];
    if (o->bytes > SIZE_MAX - d->count * element) return TAC_ERR_ARG;
    o->bytes += d->count * element;
    ++draft->size;
    if (a->order) draft->key = k;
    a->draft_of[p] = o->id;
    if (o->bytes >= draft->limit) {
        o->is_open = 0;
        if (o->step + 1 < a->n_limits) ++o->step;
    }
    return TAC_OK;
}

static int by_key(const void *x, const void *y)
{
    const tac__draft *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

/* The plan's arrays lie in one block, `first` at its start. */
static tac_status write_plan(const tac__assign *a, tac_bucket_plan *out)
{
    const size_t nb = a->n_drafts, n = a->n;
    if (n > SIZE_MAX / sizeof(size_t) / 3 - 1) return TAC_ERR_NOMEM;
    size_t *block = malloc((2 * nb + 1 + n) * sizeof *block);
    size_t *fill = malloc((nb + 1) * sizeof *fill);
    if (!block || !fill) {
        free(block);
        free(fill);
        return TAC_ERR_NOMEM;
    }
    size_t *first = block, *limits = first + nb + 1, *params = limits + nb;
    first[0] = 0;
    for (size_t b = 0; b < nb; ++b) {
        first[b + 1] = first[b] + a->drafts[b].size;
        limits[b] = a->drafts[b].limit;
        fill[a->drafts[b].id] = first[b];
    }
    for (size_t k = 0; k < n; ++k) {
        const size_t p = a->order ? a->order[k] : k;
        params[fill[a->draft_of[p]]++] = p;
    }
    free(fill);
    *out = (tac_bucket_plan){nb, first, params, limits};
    return TAC_OK;
}

static tac_status assign(tac__assign *a, tac_bucket_plan *out)
{
    for (size_t k = 0; k < a->n; ++k)
        TAC_TRY(take(a, a->order ? a->order[k] : k, k));
    qsort(a->drafts, a->n_drafts, sizeof *a->drafts, by_key);
    return write_plan(a, out);
}

tac_status tac_reducer_assign_buckets(const tac_param_desc *params, size_t n,
                                      const size_t *order, const size_t *limits,
                                      size_t n_limits, tac_bucket_plan *out)
{
    if ((!params && n) || !limits || !n_limits || !out) return TAC_ERR_ARG;
    if (order) {
        const int ok = is_permutation(order, n);
        if (ok <= 0) return ok ? TAC_ERR_NOMEM : TAC_ERR_ARG;
    }
    tac__assign a = {.params = params,
                     .n = n,
                     .order = order,
                     .limits = limits,
                     .n_limits = n_limits};
    a.drafts = calloc(n ? n : 1, sizeof *a.drafts);
    a.draft_of = calloc(n ? n : 1, sizeof *a.draft_of);
    tac_status s = a.drafts && a.draft_of ? TAC_OK : TAC_ERR_NOMEM;
    if (!s) s = assign(&a, out);
    free(a.drafts);
    free(a.draft_of);
    return s;
}

void tac_bucket_plan_free(tac_bucket_plan *plan)
{
    if (!plan) return;
    free((void *)plan->first);
    *plan = (tac_bucket_plan){0, NULL, NULL, NULL};
}
