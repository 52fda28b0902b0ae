/* memory.c: symmetric memory.
 *
 * Each rank's part is a region of its own, mapped by all (transports/region.h);
 * on transports without shared memory it is ordinary memory. Segments have the
 * same number on all ranks, because allocation is collective. */
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"

const tac__segment *tac__segment_find(const tac_comm *c, const void *p,
                                      size_t bytes)
{
    for (const tac__segment *g = c->segments; g; g = g->next) {
        const uintptr_t base = (uintptr_t)g->own, at = (uintptr_t)p;
        if (!g->regions.base || at < base || at - base > g->bytes) continue;
        return bytes <= g->bytes - (at - base) ? g : NULL;
    }
    return NULL;
}

const tac__segment *tac__segment_by_id(const tac_comm *c, int64_t id)
{
    const tac__segment *g = c->segments;
    while (g && g->id != id) g = g->next;
    return g;
}

static tac_status get_ordinary(tac__boot *b, tac__segment *g)
{
    const size_t bytes = (g->bytes + 63u) & ~(size_t)63u;
    TAC_TRY(tac__region_check_memory(b, g->bytes));
    g->own = aligned_alloc(64, bytes);
    if (!g->own)
        return tac__boot_note(b, TAC_ERR_NOMEM, "no memory for %zu bytes",
                              g->bytes);
    memset(g->own, 0, bytes);
    return TAC_OK;
}

static tac_status get_memory(tac__boot *b, tac_comm *c, tac__segment *g)
{
    if (!c->domain) return tac__boot_agree(b, get_ordinary(b, g));
    const int threads = c->domain->regions.kind == TAC__REGION_PRIVATE;
    TAC_TRY(tac__regions_share(b, threads, g->bytes, &g->regions));
    g->own = g->regions.base[c->rank];
    return TAC_OK;
}

static tac_status agree_on_bytes(tac__boot *b, uint64_t bytes)
{
    tac_status s = TAC_OK;
    uint64_t *all = calloc((size_t)b->size, sizeof *all);
    if (!all) s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory");
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = tac__boot_exchange(b, &bytes, all, sizeof bytes);
    for (int r = 1; r < b->size && s == TAC_OK; r++)
        if (all[r] != all[0])
            s = tac__boot_note(b, TAC_ERR_MISMATCH,
                               "rank %d asks for %llu bytes, rank 0 for %llu",
                               r, (unsigned long long)all[r],
                               (unsigned long long)all[0]);
    free(all);
    return s;
}

/* After a failure MPI may still send from memory that a request was given, and
 * so may a peer that reads it: that memory stays. */
static int is_in_use(const tac_comm *c)
{
    return tac__comm_status(c) < 0 && c->transport && !c->domain &&
           !(c->transport->flags & TAC_TRANSPORT_CLEAN);
}

static void free_segment(const tac_comm *c, tac__segment *g)
{
    if (is_in_use(c) && !g->regions.base) {
        free(g);
        return;
    }
    if (g->regions.base)
        tac__regions_release(&g->regions);
    else
        free(g->own);
    free(g);
}

static void keep(tac_comm *c, tac__segment *g)
{
    pthread_mutex_lock(&c->lock);
    g->next = c->segments;
    c->segments = g;
    pthread_mutex_unlock(&c->lock);
}

static tac_status allocate(tac__boot *b, tac_comm *c, size_t bytes,
                           tac__segment **out)
{
    tac__segment *g = calloc(1, sizeof *g);
    tac_status s = g ? TAC_OK : tac__boot_note(b, TAC_ERR_NOMEM, "no memory");
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = agree_on_bytes(b, bytes);
    if (s == TAC_OK) {
        g->bytes = bytes ? bytes : 1;
        s = get_memory(b, c, g);
    }
    if (s == TAC_OK)
        *out = g;
    else if (g)
        free_segment(c, g);
    return s;
}

tac_status tac_mem_alloc(tac_comm *c, size_t bytes, void **out)
{
    tac__boot b;
    tac__segment *g = NULL;
    const tac_oob oob = tac__oob_over_comm(c);
    TAC_TRY(tac__comm_status(c));
    TAC_TRY(tac__boot_init(&b, c->ctx, c->rank, c->size, &oob,
                           c->config.timeout_ms));
    b.reports = 1;
    const tac_status s = allocate(&b, c, bytes, &g);
    const int64_t id = c->next_segment++;
    if (s == TAC_OK) {
        g->id = id;
        keep(c, g);
        *out = g->own;
    } else if (tac__comm_status(c) == TAC_OK) {
        tac__report_shared(c, s, "symmetric memory", b.text);
    }
    tac__boot_free(&b);
    return s;
}

void tac_mem_free(tac_comm *c, void *p)
{
    tac__segment *g = NULL;
    if (!p) return;
    pthread_mutex_lock(&c->lock);
    for (tac__segment **at = &c->segments; *at; at = &(*at)->next)
        if ((*at)->own == p) {
            g = *at;
            *at = g->next;
            break;
        }
    pthread_mutex_unlock(&c->lock);
    TAC_ASSERT(g != NULL);
    if (g) free_segment(c, g);
}

void tac__segments_free(tac_comm *c)
{
    while (c->segments) {
        tac__segment *g = c->segments;
        c->segments = g->next;
        free_segment(c, g);
    }
}
