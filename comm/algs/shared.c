/* shared.c: opening an operation on a shared-memory domain, and its chunks (see
 * shared.h). */
#include "algs/shared.h"

#include <string.h>

#include "cost.h"

/* Shorter messages are staged even where they could be read in place: a phase
 * takes as long as this much copying. */
#define DIRECT_BYTES         ((size_t)16 << 10)
#define DIRECT_BYTES_CROWDED ((size_t)64 << 10)

static tac__entry *entry_of(const tac_req *req, int r)
{
    return &req->comm->domain->line[r]->entry[req->turn_id & 1u];
}

static int is_worthwhile(const tac_req *req, size_t bytes)
{
    return bytes >=
           (req->comm->domain->crowded ? DIRECT_BYTES_CROWDED : DIRECT_BYTES);
}

static int64_t locate(const tac_req *req, const void *p, size_t bytes,
                      uint64_t *offset)
{
    const tac_comm *c = req->comm;
    *offset = 0;
    if (bytes == 0 || !is_worthwhile(req, bytes) || req->wire)
        return TAC__UNUSED;
    if (c->domain->regions.kind == TAC__REGION_PRIVATE) {
        *offset = (uint64_t)(uintptr_t)p;
        return TAC__HERE;
    }
    const tac__segment *g = tac__segment_find(c, p, bytes);
    if (!g) return TAC__PLAIN;
    *offset = (uint64_t)((const char *)p - g->own);
    return g->id;
}

static int is_symmetric(const tac__entry *e)
{
    return e->src_segment != TAC__PLAIN && e->dst_segment != TAC__PLAIN &&
           (e->src_segment >= 0 || e->dst_segment >= 0);
}

static void stage_first(tac_req *req, const tac__shared_plan *plan)
{
    const size_t n = tac__shared_length(req, 0);
    if (n == 0) return;
    const tac__work w = tac__shared_work(req, n);
    plan->stage(req, 0, n);
    tac__shared_worked(req, w);
}

tac_status tac__shared_enter(tac_req *req, tac__shared_need need, size_t most,
                             const tac__shared_plan *plan)
{
    tac_comm *c = req->comm;
    /* Only what runs here counts: messages let ranks run ahead of each other
     * by any number of operations. */
    req->turn_id = c->turns++;
    tac__entry e = {.sig = tac__req_sig(req)};
    e.src_segment = locate(req, req->src, need.src_bytes, &e.src_offset);
    e.dst_segment = locate(req, req->dst, need.dst_bytes, &e.dst_offset);
    *entry_of(req, c->rank) = e;
    req->mine_symmetric = is_symmetric(&e);
    req->chunk = most;
    if (!req->mine_symmetric) stage_first(req, plan);
    tac__domain_publish(c->domain);
    req->stage = TAC__ENTERED;
    req->moved = 1;
    return TAC_OK;
}

static tac_status compare(tac_req *req)
{
    const tac__sig *mine = &entry_of(req, req->comm->rank)->sig;
    for (int r = 0; r < req->comm->size; r++)
        if (memcmp(&entry_of(req, r)->sig, mine, sizeof *mine) != 0)
            return tac__sig_mismatch(req, r, &entry_of(req, r)->sig);
    return TAC_OK;
}

void tac__shared_announce(tac_req *req)
{
    tac_comm *c = req->comm;
    req->turn_id = c->turns++;
    *entry_of(req, c->rank) = (tac__entry){.sig = tac__req_sig(req)};
    tac__domain_publish(c->domain);
    req->moved = 1;
}

tac_status tac__shared_agreed(tac_req *req)
{
    return tac__shared_arrived(req) ? compare(req) : TAC_INPROGRESS;
}

/* All ranks' buffers, in the same segments; *any: one at least. */
static int all_symmetric(const tac_req *req, int *any)
{
    const tac__entry *first = entry_of(req, 0);
    int all = 1;
    *any = 0;
    for (int r = 0; r < req->comm->size; r++) {
        const tac__entry *e = entry_of(req, r);
        const int sym = is_symmetric(e);
        *any |= sym;
        all &= sym && e->src_segment == first->src_segment &&
               e->dst_segment == first->dst_segment;
    }
    return all;
}

static void decide(tac_req *req, const tac__shared_plan *plan)
{
    int any;
    req->symmetric = all_symmetric(req, &any);
    req->stage = TAC__OPEN;
    if (req->symmetric || !any) return;
    if (req->mine_symmetric) stage_first(req, plan);
    tac__shared_publish(req, TAC__LATE);
}

tac_status tac__shared_open(tac_req *req, const tac__shared_plan *plan)
{
    if (req->stage == TAC__ENTERED) {
        if (!tac__shared_arrived(req)) return TAC_INPROGRESS;
        TAC_TRY(compare(req));
        decide(req, plan);
    }
    if (req->stage == TAC__LATE) {
        if (!tac__shared_arrived(req)) return TAC_INPROGRESS;
        req->stage = TAC__OPEN;
    }
    return TAC_OK;
}

/* If a rank has left, the failure that made it leave is about to be heard. */
tac_status tac__shared_direct(tac_req *req, const tac__shared_plan *plan)
{
    tac__domain *d = req->comm->domain;
    if (req->stage != TAC__DIRECT) {
        if (!tac__domain_borrow(d)) return TAC_INPROGRESS;
        const tac__work w = tac__work_begin(req->bytes_logical);
        plan->direct(req);
        tac__work_end(req, w);
        tac__domain_give_back(d);
        tac__shared_publish(req, TAC__DIRECT);
    }
    return tac__shared_arrived(req) ? TAC_OK : TAC_INPROGRESS;
}

void tac__shared_publish(tac_req *req, int stage)
{
    tac__domain_publish(req->comm->domain);
    req->stage = stage;
}

int tac__shared_arrived(tac_req *req)
{
    if (!tac__domain_arrived(req->comm->domain, &req->wait_ns)) return 0;
    req->moved = 1;
    return 1;
}

void tac__shared_advance(tac_req *req)
{
    req->pos += req->chunk;
    req->comm->domain->step++;
}

/* Takes a chunk that is staged everywhere; OK: it was the last. */
static tac_status next_chunk(tac_req *req, const tac__shared_plan *plan)
{
    const size_t ahead = req->pos + req->chunk;
    const size_t n = tac__shared_length(req, ahead);
    const tac__work w = tac__shared_work(req, req->chunk);
    if (n > 0) {
        plan->stage(req, ahead, n);
        tac__shared_publish(req, TAC__STAGED);
    }
    plan->consume(req, req->pos, tac__shared_length(req, req->pos));
    tac__shared_worked(req, w);
    tac__shared_advance(req);
    return n > 0 ? TAC_INPROGRESS : TAC_OK;
}

tac_status tac__shared_run(tac_req *req, const tac__shared_plan *plan)
{
    if (req->stage < TAC__OPEN) {
        const tac_status s = tac__shared_open(req, plan);
        if (s != TAC_OK || req->count == 0) return s;
    }
    if (req->symmetric) return tac__shared_direct(req, plan);
    if (req->stage == TAC__OPEN && next_chunk(req, plan) == TAC_OK)
        return TAC_OK;
    while (tac__shared_arrived(req))
        if (next_chunk(req, plan) == TAC_OK) return TAC_OK;
    return TAC_INPROGRESS;
}

const char *tac__shared_src(const tac_req *req, int r)
{
    const tac__entry *e = entry_of(req, r);
    if (e->src_segment == TAC__HERE)
        return (const char *)(uintptr_t)e->src_offset;
    const tac__segment *g = tac__segment_by_id(req->comm, e->src_segment);
    return g->regions.base[r] + e->src_offset;
}

char *tac__shared_dst(const tac_req *req, int r)
{
    const tac__entry *e = entry_of(req, r);
    if (e->dst_segment == TAC__HERE) return (char *)(uintptr_t)e->dst_offset;
    const tac__segment *g = tac__segment_by_id(req->comm, e->dst_segment);
    return g->regions.base[r] + e->dst_offset;
}

int tac__shared_wire_applicable(const tac_comm *c, const tac_req *req)
{
    return c->domain != NULL && !req->codec;
}

int tac__shared_applicable(const tac_comm *c, const tac_req *req)
{
    return tac__shared_wire_applicable(c, req) && !req->wire;
}

/* The slots are the domain's and the requests hold nothing. */
void tac__shared_finish(tac_req *req)
{
    (void)req;
}

int tac__shared_waits_for(const tac_req *req, int r)
{
    return !tac__domain_has(req->comm->domain, r);
}

/* Where ranks share cores a phase costs a turn of each of them on a core, and
 * so would a message: bytes count for less, everything else stays as it is. */
double tac__shared_cost(const tac_comm *c, double phases, double bytes)
{
    const double weight = c->domain->crowded ? 6.0 * c->size : 1.0;
    return tac__cost_shared(c, phases, bytes / weight);
}
