/* region.c: every rank's region, mapped by every rank.
 *
 * Two exchanges: tickets (how to map mine), then the verdict. If anonymous
 * memory can't be passed on (no memfd_create, no access to /proc/<pid>/fd),
 * all ranks try again with POSIX shared memory. */
#include "transports/region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tac_status map_peers(tac__boot *b, tac__regions *g,
                            const tac__ticket *tickets, char *mine)
{
    for (int r = 0; r < b->size; r++) {
        char *header = mine;
        if (r != b->rank)
            TAC_TRY(
                tac__region_map(b, g->kind, g->bytes, &tickets[r], &header));
        g->base[r] = header + TAC__REGION_HEADER;
    }
    return TAC_OK;
}

static tac_status check_tickets(tac__boot *b, const tac__ticket *tickets)
{
    for (int r = 0; r < b->size; r++)
        if (tickets[r].status < 0)
            return tac__boot_note(b, (tac_status)tickets[r].status,
                                  "rank %d: %.131s", r, tickets[r].text);
    return TAC_OK;
}

static void discard_all(tac__regions *g, char *mine)
{
    for (int r = 0; r < g->size; r++) {
        if (!g->base[r] || r == g->rank) continue;
        tac__region_discard(g->kind, g->base[r] - TAC__REGION_HEADER, g->bytes,
                            0);
    }
    if (mine) tac__region_discard(g->kind, mine, g->bytes, 1);
    memset(g->base, 0, (size_t)g->size * sizeof *g->base);
}

static tac_status share_as(tac__boot *b, tac__regions *g, tac__ticket *tickets)
{
    tac__ticket t = {.fd = -1};
    char *mine = NULL;
    t.status = tac__region_make(b, g->kind, g->bytes, &t, &mine);
    if (t.status < 0) snprintf(t.text, sizeof t.text, "%.131s", b->text);
    tac_status s = tac__boot_exchange(b, &t, tickets, sizeof t);
    if (s == TAC_OK) s = check_tickets(b, tickets);
    if (s == TAC_OK) s = tac__boot_agree(b, map_peers(b, g, tickets, mine));
    /* Timed out: a thread rank that comes late may still touch my region, so
     * that one is left to it. */
    if (s != TAC_OK &&
        !(s == TAC_ERR_TIMEOUT && g->kind == TAC__REGION_PRIVATE))
        discard_all(g, mine);
    tac__region_seal(g->kind, &t);
    return s;
}

tac_status tac__regions_share(tac__boot *b, int threads, size_t bytes,
                              tac__regions *out)
{
    tac__regions g = {.rank = b->rank, .size = b->size};
    g.kind = threads ? TAC__REGION_PRIVATE : TAC__REGION_MEMFD;
    g.bytes = (bytes + 4095u) & ~(size_t)4095u;
    g.base = calloc((size_t)b->size, sizeof *g.base);
    tac__ticket *tickets = calloc((size_t)b->size, sizeof *tickets);
    tac_status s = TAC_OK;
    if (!g.base || !tickets || g.bytes < bytes)
        s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for %zu bytes", bytes);
    else
        s = tac__region_check_memory(b, g.bytes);
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = share_as(b, &g, tickets);
    if (s == TAC_ERR_UNSUPPORTED && g.kind == TAC__REGION_MEMFD) {
        g.kind = TAC__REGION_POSIX;
        s = share_as(b, &g, tickets);
    }
    free(tickets);
    if (s == TAC_OK)
        *out = g;
    else
        free(g.base);
    return s;
}

void tac__regions_release(tac__regions *g)
{
    if (!g->base) return;
    for (int r = 0; r < g->size; r++)
        tac__region_unmap(g->kind, g->base[r] - TAC__REGION_HEADER, g->bytes);
    free(g->base);
    g->base = NULL;
}
