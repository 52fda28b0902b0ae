/* shared.c: opening an operation on a shared-memory domain (see shared.h). */
#include "algs/shared.h"

#include <string.h>

static tac__entry *entry_of(const tac_req *req, int r)
{
    return &req->comm->domain->line[r]->entry[req->turn_id & 1u];
}

static int64_t locate(const tac_comm *c, const void *p, size_t bytes,
                      uint64_t *offset)
{
    *offset = 0;
    if (bytes == 0) return TAC__UNUSED;
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

tac_status tac__shared_enter(tac_req *req, tac__shared_need need,
                             tac__copy_in_fn *copy_in)
{
    tac_comm *c = req->comm;
    tac__entry e = {.sig = tac__req_sig(req)};
    e.src_segment = locate(c, req->src, need.src_bytes, &e.src_offset);
    e.dst_segment = locate(c, req->dst, need.dst_bytes, &e.dst_offset);
    *entry_of(req, c->rank) = e;
    req->mine_symmetric = is_symmetric(&e);
    if (!req->mine_symmetric) copy_in(req);
    tac__domain_publish(c->domain);
    req->stage = TAC__ENTERED;
    req->moved = 1;
    return TAC_OK;
}

static tac_status compare(tac_req *req)
{
    const tac__sig mine = tac__req_sig(req);
    for (int r = 0; r < req->comm->size; r++)
        if (memcmp(&entry_of(req, r)->sig, &mine, sizeof mine) != 0)
            return tac__sig_mismatch(req, r, &entry_of(req, r)->sig);
    return TAC_OK;
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

static void decide(tac_req *req, tac__copy_in_fn *copy_in)
{
    int any;
    req->symmetric = all_symmetric(req, &any);
    req->stage = TAC__OPEN;
    if (req->symmetric || !any) return;
    if (req->mine_symmetric) copy_in(req);
    tac__domain_publish(req->comm->domain);
    req->stage = TAC__LATE;
}

tac_status tac__shared_open(tac_req *req, tac__copy_in_fn *copy_in)
{
    if (req->stage == TAC__ENTERED) {
        if (!tac__shared_arrived(req)) return TAC_INPROGRESS;
        TAC_TRY(compare(req));
        decide(req, copy_in);
    }
    if (req->stage == TAC__LATE) {
        if (!tac__shared_arrived(req)) return TAC_INPROGRESS;
        req->stage = TAC__OPEN;
    }
    return TAC_OK;
}

void tac__shared_publish(tac_req *req, int stage)
{
    tac__domain_publish(req->comm->domain);
    req->stage = stage;
}

void tac__shared_stage_src(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t most = c->domain->slot_bytes / req->esize;
    req->chunk = tac__min(most, req->count - req->pos);
    if (req->chunk == 0) return;
    const tac__work w = tac__work_begin(req->chunk * req->esize);
    memcpy(tac__domain_slot(c->domain, c->rank),
           req->src + req->pos * req->esize, req->chunk * req->esize);
    tac__work_end(req, w);
}

static tac_status next_chunk(tac_req *req, const tac__shared_plan *plan)
{
    if (req->chunk > 0) plan->consume(req);
    tac__shared_next_slot(req);
    req->pos += req->chunk;
    if (req->pos == req->count) return TAC_OK;
    plan->copy_in(req);
    tac__shared_publish(req, TAC__STAGED);
    return TAC_INPROGRESS;
}

static tac_status first(tac_req *req, const tac__shared_plan *plan)
{
    const tac_status s = tac__shared_open(req, plan->copy_in);
    if (s != TAC_OK) return s;
    if (!req->symmetric) return next_chunk(req, plan);
    plan->direct(req);
    tac__shared_publish(req, TAC__DIRECT);
    return TAC_INPROGRESS;
}

tac_status tac__shared_run(tac_req *req, const tac__shared_plan *plan)
{
    if (req->stage < TAC__OPEN) {
        const tac_status s = first(req, plan);
        if (s != TAC_INPROGRESS || req->stage < TAC__OPEN) return s;
    }
    while (tac__shared_arrived(req)) {
        if (req->stage == TAC__DIRECT) {
            tac__shared_next_slot(req);
            return TAC_OK;
        }
        if (next_chunk(req, plan) == TAC_OK) return TAC_OK;
    }
    return TAC_INPROGRESS;
}

const char *tac__shared_src(const tac_req *req, int r)
{
    const tac__entry *e = entry_of(req, r);
    const tac__segment *g = tac__segment_by_id(req->comm, e->src_segment);
    return g->regions.base[r] + e->src_offset;
}

char *tac__shared_dst(const tac_req *req, int r)
{
    const tac__entry *e = entry_of(req, r);
    const tac__segment *g = tac__segment_by_id(req->comm, e->dst_segment);
    return g->regions.base[r] + e->dst_offset;
}

int tac__shared_arrived(tac_req *req)
{
    if (!tac__domain_arrived(req->comm->domain, &req->wait_ns)) return 0;
    req->moved = 1;
    return 1;
}

void tac__shared_next_slot(tac_req *req)
{
    req->comm->domain->step++;
}

int tac__shared_applicable(const tac_comm *c, const tac_req *req)
{
    return c->domain != NULL && !req->wire && !req->codec;
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

double tac__shared_cost(double phases, double bytes)
{
    return 2e-6 * phases + 1e-10 * bytes;
}
