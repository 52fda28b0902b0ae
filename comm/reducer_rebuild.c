/* reducer_rebuild.c: the buckets once more, in the order of readiness.
 *
 * After the first step with sync rank 0's order is broadcast, with the number
 * and sizes of the buckets that it makes; every rank derives the layout on its
 * own, and all compare its hash before anything moves. Contents, and with them
 * what was accumulated, are copied to the new arena. Once in a reducer's life;
 * 8 (2n + 1) bytes broadcast, two arenas alive for the time of the copy. */
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "reducer_impl.h"

static size_t message_count(const tac_reducer *r)
{
    return 2 * r->n + 1;
}

/* Rank 0: its order, and the buckets that follow from it. */
static tac_status write_message(tac_reducer *r)
{
    int64_t *m = r->control.order;
    tac__layout l;
    TAC_TRY(tac__layout_make(r, r->last_order, &l));
    memset(m, 0, message_count(r) * sizeof *m);
    for (size_t i = 0; i < r->n; ++i) m[i] = (int64_t)r->last_order[i];
    m[r->n] = (int64_t)l.n_buckets;
    for (size_t k = 0; k < l.n_buckets; ++k)
        m[r->n + 1 + k] = (int64_t)l.buckets[k].bytes;
    tac__layout_free(&l);
    return TAC_OK;
}

/* The layout that rank 0's message asks for; MISMATCH if this rank's rules
 * give another one. */
static tac_status read_message(tac_reducer *r, tac__layout *l)
{
    const int64_t *m = r->control.order;
    size_t *order = malloc((r->n + 1) * sizeof *order);
    if (!order) return TAC_ERR_NOMEM;
    for (size_t i = 0; i < r->n; ++i) order[i] = (size_t)m[i];
    const tac_status s = tac__layout_make(r, order, l);
    free(order);
    if (s) return s;
    int same = (size_t)m[r->n] == l->n_buckets;
    for (size_t k = 0; k < l->n_buckets && same; ++k)
        same = (size_t)m[r->n + 1 + k] == l->buckets[k].bytes;
    if (same) return TAC_OK;
    tac__layout_free(l);
    return TAC_ERR_MISMATCH;
}

static tac_status broadcast_message(tac_reducer *r)
{
    tac_req *req;
    if (r->world == 1) return TAC_OK;
    TAC_TRY(tac_broadcast(r->comm, r->control.order, message_count(r), TAC_I64,
                          0, NULL, &req));
    return tac_wait(req, 0);
}

/* The lowest rank whose layout is not rank 0's, or 0. */
static tac_status compare_layouts(tac_reducer *r, uint64_t hash)
{
    if (r->world == 1) return TAC_OK;
    uint64_t *all = calloc((size_t)r->world, sizeof *all);
    tac_status s = tac__comm_agree(r->comm, all ? TAC_OK : TAC_ERR_NOMEM,
                                   "reducer: out of memory at the rebuild");
    if (!s) s = tac__comm_exchange(r->comm, &hash, all, sizeof hash);
    for (int q = 1; q < r->world && !s; ++q)
        if (all[q] != all[0])
            s = tac_fail(r->ctx, TAC_ERR_MISMATCH,
                         "reducer: after the rebuild rank %d's buckets differ "
                         "from rank 0's; please report it",
                         q);
    free(all);
    return s;
}

static tac_status agree_layout(tac_reducer *r, tac__layout *l)
{
    tac_status s = r->rank ? TAC_OK : write_message(r);
    if (r->world > 1)
        s = tac__comm_agree(r->comm, s, "reducer: rank 0 can't rebuild");
    if (!s) s = broadcast_message(r);
    if (s) return s;
    s = read_message(r, l);
    const int made = !s;
    if (r->world > 1)
        s = tac__comm_agree(r->comm, s, "reducer: a rank can't rebuild");
    if (!s) s = compare_layouts(r, l->hash);
    if (s && made) tac__layout_free(l);
    return s;
}

static tac_status move_in(tac_reducer *r, tac__layout *l)
{
    void *arena;
    int plain;
    TAC_TRY(tac__arena_alloc(r, l->bytes, &arena, &plain));
    for (size_t i = 0; i < r->n; ++i) {
        const tac__param *p = &r->params[i];
        if (p->count) memcpy((char *)arena + l->place[i], p->grad, p->bytes);
    }
    tac__arena_free(r, r->arena, r->arena_plain);
    tac__layout_free(&r->layout);
    r->layout = *l;
    r->arena = arena;
    r->arena_plain = plain;
    tac__layout_bind(r, arena);
    tac__reducer_note_buckets(r);
    if (r->codec) return tac__layouts_fill(r);
    return TAC_OK;
}

tac_status tac__reducer_rebuild(tac_reducer *r)
{
    tac__layout l;
    tac_status s = agree_layout(r, &l);
    if (!s && l.hash == r->layout.hash) {
        tac__layout_free(&l); /* nothing changes, on any rank */
    } else if (!s) {
        s = move_in(r, &l);
        if (s) tac__layout_free(&l);
    }
    if (s)
        return r->world > 1 && tac_comm_error(r->comm, NULL, 0)
                   ? tac__reducer_break(r, s, "the rebuild failed")
                   : s;
    r->rebuild_due = 0;
    r->rebuilt = 1;
    return TAC_OK;
}
