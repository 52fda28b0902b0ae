/* reducer_layout.c: where the buckets are in memory.
 *
 * In the caller's memory buckets are runs of adjacent gradients
 * (reducer_adjacent.c). In the reducer's memory tensors are placed one behind
 * the other at multiples of 64 bytes, bucket after bucket. Either way a bucket
 * is one slice, and nothing is ever packed. Cost: O(n log n), at create and at
 * the rebuild only. */
#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"
#include "reducer_impl.h"

static size_t align_up(size_t x)
{
    return (x + TAC__ARENA_ALIGN - 1) & ~(size_t)(TAC__ARENA_ALIGN - 1);
}

void tac__layout_free(tac__layout *layout)
{
    free(layout->buckets);
    free(layout->members);
    free(layout->offsets);
    free(layout->bucket_of);
    free(layout->place);
    memset(layout, 0, sizeof *layout);
}

static tac_status layout_alloc(tac__layout *l, size_t n)
{
    const size_t m = n ? n : 1;
    l->buckets = calloc(m, sizeof *l->buckets);
    l->members = calloc(m, sizeof *l->members);
    l->offsets = calloc(m, sizeof *l->offsets);
    l->bucket_of = calloc(m, sizeof *l->bucket_of);
    l->place = calloc(m, sizeof *l->place);
    if (l->buckets && l->members && l->offsets && l->bucket_of && l->place)
        return TAC_OK;
    tac__layout_free(l);
    return TAC_ERR_NOMEM;
}

tac__bucket *tac__layout_open(tac__layout *l, size_t first, tac_dtype dtype)
{
    tac__bucket *b = &l->buckets[l->n_buckets++];
    memset(b, 0, sizeof *b);
    b->first = first;
    b->dtype = dtype;
    return b;
}

/* ---- the reducer's memory -------------------------------------------------
 */

static tac_status fill_ours(tac_reducer *r, const tac_bucket_plan *plan,
                            tac__layout *l)
{
    for (size_t k = 0; k < plan->buckets; ++k) {
        tac__bucket *b = tac__layout_open(
            l, plan->first[k], r->params[plan->params[plan->first[k]]].dtype);
        for (size_t m = plan->first[k]; m < plan->first[k + 1]; ++m) {
            l->members[m] = plan->params[m];
            b->bytes += r->params[plan->params[m]].bytes;
            ++b->n_params;
        }
    }
    return TAC_OK;
}

/* Places are given in the order of starting, so that a step walks through the
 * arena. */
static tac_status place_ours(tac_reducer *r, tac__layout *l)
{
    size_t at = 0;
    for (size_t k = 0; k < l->n_buckets; ++k) {
        tac__bucket *b = &l->buckets[k];
        size_t end = 0;
        b->place = at;
        for (size_t m = b->first; m < b->first + b->n_params; ++m) {
            const tac__param *p = &r->params[l->members[m]];
            if (p->bytes > SIZE_MAX - 4 * TAC__ARENA_ALIGN - at)
                return TAC_ERR_ARG;
            l->place[l->members[m]] = at;
            l->offsets[m] = (at - b->place) / tac_dtype_size(b->dtype);
            if (p->bytes) end = at - b->place + p->bytes;
            at = align_up(at + p->bytes);
        }
        b->count = end / tac_dtype_size(b->dtype);
    }
    l->bytes = at;
    return TAC_OK;
}

void tac__layout_bind(tac_reducer *r, char *arena)
{
    tac__layout *l = &r->layout;
    for (size_t k = 0; k < l->n_buckets; ++k)
        l->buckets[k].buffer = arena + l->buckets[k].place;
    for (size_t i = 0; i < r->n; ++i) r->params[i].grad = arena + l->place[i];
}

/* ---- both -----------------------------------------------------------------
 */

static void reverse_buckets(tac__layout *l)
{
    for (size_t i = 0, j = l->n_buckets; i + 1 < j; ++i) {
        --j;
        const tac__bucket t = l->buckets[i];
        l->buckets[i] = l->buckets[j];
        l->buckets[j] = t;
    }
}

/* Everything that all ranks must have in common. */
static uint64_t layout_hash(const tac__layout *l)
{
    uint64_t h = tac_hash_u64(TAC_HASH_INIT, l->n_buckets);
    for (size_t k = 0; k < l->n_buckets; ++k) {
        const tac__bucket *b = &l->buckets[k];
        h = tac_hash_u64(h, b->count);
        h = tac_hash_u64(h, (uint64_t)b->dtype);
        h = tac_hash_u64(h, b->n_params);
        for (size_t m = b->first; m < b->first + b->n_params; ++m) {
            h = tac_hash_u64(h, l->members[m]);
            h = tac_hash_u64(h, l->offsets[m]);
        }
    }
    return h;
}

static void index_buckets(tac__layout *l)
{
    l->last = l->n_buckets;
    for (size_t k = 0; k < l->n_buckets; ++k) {
        const tac__bucket *b = &l->buckets[k];
        if (b->count) l->last = k;
        for (size_t m = b->first; m < b->first + b->n_params; ++m)
            l->bucket_of[l->members[m]] = k;
    }
    l->hash = layout_hash(l);
}

static int starts_reversed(const tac_reducer *r)
{
    const tac_reducer_order order = r->config.order;
    if (order == TAC_REDUCER_ORDER_AUTO) return r->own_memory;
    return order == TAC_REDUCER_ORDER_REVERSE;
}

/* The plan of the first layout (`order` NULL) or of a rebuilt one. */
static tac_status make_plan(tac_reducer *r, const size_t *order, int reversed,
                            tac_bucket_plan *plan)
{
    tac_param_desc *descs = calloc(r->n + 1, sizeof *descs);
    size_t *given = malloc((r->n + 1) * sizeof *given);
    tac_status s = descs && given ? TAC_OK : TAC_ERR_NOMEM;
    for (size_t i = 0; i < r->n && !s; ++i) {
        descs[i].count = r->params[i].count;
        descs[i].dtype = r->params[i].dtype;
        given[i] = i;
    }
    if (!order && !reversed) order = given;
    if (!s)
        s = tac_reducer_assign_buckets(descs, r->n, order, r->limits,
                                       r->config.n_limits, plan);
    free(descs);
    free(given);
    return s;
}

tac_status tac__layout_make(tac_reducer *r, const size_t *order,
                            tac__layout *out)
{
    const int reversed = !order && starts_reversed(r);
    tac_bucket_plan plan;
    tac__layout l = {0};

    TAC_TRY(make_plan(r, order, reversed, &plan));
    tac_status s = layout_alloc(&l, r->n);
    if (!s)
        s = r->own_memory ? fill_ours(r, &plan, &l)
                          : tac__layout_fill_theirs(r, &plan, &l);
    if (!s && reversed) reverse_buckets(&l);
    if (!s && r->own_memory) s = place_ours(r, &l);
    tac_bucket_plan_free(&plan);
    if (s) {
        tac__layout_free(&l);
        return s;
    }
    index_buckets(&l);
    *out = l;
    return TAC_OK;
}

void tac__reducer_note_buckets(tac_reducer *r)
{
    for (size_t k = 0; k < r->layout.n_buckets; ++k)
        r->bucket_bytes[k] = r->layout.buckets[k].bytes;
}
