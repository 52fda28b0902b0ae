/* reducer_adjacent.c: buckets in the caller's memory.
 *
 * A bucket of the plan becomes as many buckets as it has runs of adjacent
 * gradients: one, when the arena has the plan's order. Gaps are bridged only if
 * they are alignment padding inside the memory that the caller declared, so
 * that nothing else is ever written. Cost: O(n log n), once. */
#include <stdlib.h>
#include <string.h>

#include "reducer_impl.h"

typedef struct tac__place {
    char *at;
    size_t bytes, index;
} tac__place;

static int by_address(const void *x, const void *y)
{
    const tac__place *a = x, *b = y;
    return ((uintptr_t)a->at > (uintptr_t)b->at) -
           ((uintptr_t)a->at < (uintptr_t)b->at);
}

/* after[i]: the parameter that follows i in memory, or n. Overlaps are errors.
 * Only parameters with elements are in memory at all. */
static tac_status find_neighbours(tac_reducer *r, size_t *after)
{
    tac__place *places = malloc((r->n + 1) * sizeof *places);
    if (!places) return TAC_ERR_NOMEM;
    size_t m = 0;
    for (size_t i = 0; i < r->n; ++i) {
        const tac__param *p = &r->params[i];
        after[i] = r->n;
        if (p->count) places[m++] = (tac__place){p->grad, p->bytes, i};
    }
    qsort(places, m, sizeof *places, by_address);
    tac_status s = TAC_OK;
    for (size_t k = 0; k + 1 < m && !s; ++k) {
        const tac__place *a = &places[k], *b = &places[k + 1];
        if ((uintptr_t)b->at - (uintptr_t)a->at < a->bytes)
            s = tac_fail(r->ctx, TAC_ERR_ARG,
                         "reducer: the gradients of '%s' and '%s' overlap in "
                         "memory; list a shared parameter once",
                         r->params[a->index].name, r->params[b->index].name);
        after[a->index] = b->index;
    }
    free(places);
    return s;
}

static int in_arena(const tac_reducer *r, const tac__param *p)
{
    const uintptr_t a = (uintptr_t)r->config.arena, g = (uintptr_t)p->grad;
    const size_t bytes = r->config.arena_bytes;
    return r->config.arena && g >= a && g - a <= bytes &&
           p->bytes <= bytes - (g - a);
}

/* Can one slice go on from parameter i to parameter j? */
static int adjacent(const tac_reducer *r, const size_t *after, size_t i,
                    size_t j)
{
    const tac__param *a = &r->params[i], *b = &r->params[j];
    if (after[i] != j) return 0;
    const size_t gap = (size_t)(b->grad - a->grad) - a->bytes;
    if (!gap) return 1;
    return gap < TAC__ARENA_ALIGN && gap % tac_dtype_size(b->dtype) == 0 &&
           in_arena(r, a) && in_arena(r, b);
}

/* Adds parameter p to the last bucket, whose last parameter with elements is
 * *last (or n). */
static void extend(tac_reducer *r, tac__layout *l, size_t p, size_t at,
                   size_t *last)
{
    tac__bucket *b = &l->buckets[l->n_buckets - 1];
    const tac__param *d = &r->params[p];
    const size_t element = tac_dtype_size(d->dtype);
    if (d->count && *last == r->n) b->buffer = d->grad;
    l->members[at] = p;
    l->offsets[at] =
        d->count ? (size_t)(d->grad - b->buffer) / element : b->count;
    if (d->count) {
        b->count = l->offsets[at] + d->count;
        *last = p;
    }
    ++b->n_params;
    b->bytes += d->bytes;
}

tac_status tac__layout_fill_theirs(tac_reducer *r, const tac_bucket_plan *plan,
                                   tac__layout *l)
{
    size_t *after = malloc((r->n + 1) * sizeof *after);
    if (!after) return TAC_ERR_NOMEM;
    const tac_status s = find_neighbours(r, after);
    for (size_t k = 0; k < plan->buckets && !s; ++k) {
        size_t last = r->n; /* no parameter with elements yet */
        tac__layout_open(l, plan->first[k],
                         r->params[plan->params[plan->first[k]]].dtype);
        for (size_t m = plan->first[k]; m < plan->first[k + 1]; ++m) {
            const size_t p = plan->params[m];
            if (r->params[p].count && last != r->n &&
                !adjacent(r, after, last, p)) {
                tac__layout_open(l, m, r->params[p].dtype);
                last = r->n;
            }
            extend(r, l, p, m, &last);
        }
    }
    free(after);
    return s;
}
