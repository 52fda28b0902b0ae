/* regroup_flights.c: deltas under way when ranks change. The average of one is
 * the same on all ranks that have it completely, so one of them is enough. */
#include <stdlib.h>

#include "impl.h"

/* What a rank knows of a slot. */
typedef struct slot {
    int64_t fragment, sent, nobody;
    int64_t active, complete;
    double lr;
} slot;

static slot slot_of(const tac__flight *g)
{
    return (slot){.fragment = g->fragment,
                  .sent = g->sent,
                  .nobody = g->nobody,
                  .active = g->active,
                  .complete = g->active && !g->lost,
                  .lr = g->lr};
}

static int is_same(const slot *a, const slot *b)
{
    return a->active && b->active && a->fragment == b->fragment &&
           a->sent == b->sent;
}

/* The lowest rank that has what `lead` has, completely; -1: none. */
static int who_has(const slot *all, int size, int lead)
{
    for (int r = 0; r < size; r++)
        if (all[r].complete && is_same(&all[r], &all[lead])) return r;
    return -1;
}

/* Those that do not have it have no delta of their own in it. */
static tac_status take(tac_localsgd *l, tac__flight *g, int from,
                       const slot *mine, const slot *theirs)
{
    TAC_TRY(tac__regroup_send(
        l, from, g->buf, l->fragments[theirs->fragment].n * sizeof(float)));
    if (!is_same(mine, theirs)) g->own2 = 0, g->dropped = 0;
    g->active = 1;
    g->lost = 0;
    g->fragment = theirs->fragment;
    g->sent = theirs->sent;
    g->nobody = theirs->nobody;
    g->lr = theirs->lr;
    return TAC_OK;
}

static tac_status adopt(tac_localsgd *l, tac__flight *g, int lead, slot *all,
                        tac_regroup *out)
{
    const slot mine = slot_of(g);
    TAC_TRY(tac__lsgd_gather(l->comm, &mine, all, sizeof mine));
    const int from = who_has(all, l->size, lead);
    if (from >= 0) return take(l, g, from, &mine, &all[from]);
    out->dropped += all[lead].active;
    g->active = g->lost = 0;
    return TAC_OK;
}

tac_status tac__regroup_flights(tac_localsgd *l, int lead, tac_regroup *out)
{
    const size_t bytes = (size_t)l->size * sizeof(slot);
    if (l->n_flights == 0) return TAC_OK; /* by configuration: on all ranks */
    slot *all = malloc(bytes);
    tac_status s = all ? TAC_OK : tac__lsgd_no_memory(l, bytes);
    s = tac__lsgd_agree(l, s);
    for (int64_t i = 0; i < l->n_flights && s == TAC_OK; i++)
        s = adopt(l, &l->flights[i], lead, all, out);
    free(all);
    return s;
}
