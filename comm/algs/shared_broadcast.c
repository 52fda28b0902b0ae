/* shared_broadcast.c: staged broadcast in shared memory.
 *
 * For each chunk: the root copies in; wait for all; the others copy out. One
 * phase a chunk (the other ranks' part of it is what lets the root reuse a
 * slot); reads and writes 2 n bytes in all a pair of ranks. A symmetric buffer
 * of the root is read where it is, and one more phase tells the root. */
#include <string.h>

#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    (void)c;
    return tac__shared_cost(1, 2.0 * (double)(req->count * req->esize));
}

static void copy_in(tac_req *req)
{
    const size_t most = req->comm->domain->slot_bytes / req->esize;
    if (req->comm->rank == req->root)
        tac__shared_stage_src(req);
    else
        req->chunk = tac__min(most, req->count - req->pos);
}

static tac_status start(tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0}, copy_in);
}

static void copy_out(tac_req *req, const char *src, size_t count)
{
    if (req->comm->rank == req->root) return;
    const tac__work w = tac__work_begin(count * req->esize);
    memcpy(req->dst + req->pos * req->esize, src, count * req->esize);
    tac__work_end(req, w);
}

static void consume(tac_req *req)
{
    copy_out(req, tac__domain_slot(req->comm->domain, req->root), req->chunk);
}

static void direct(tac_req *req)
{
    copy_out(req, tac__shared_src(req, req->root), req->count);
}

static const tac__shared_plan plan = {copy_in, consume, direct};

static tac_status step(tac_req *req)
{
    return tac__shared_run(req, &plan);
}

const tac__alg tac__alg_shared_broadcast = {
    .name = "staged",
    .doc = "shared memory: the root copies in, all copy out",
    .coll = TAC_COLL_BROADCAST,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
