/* shared_broadcast.c: staged broadcast in shared memory.
 *
 * For each chunk: the root copies in; wait for all; the others copy out. One
 * phase a chunk (the other ranks' part of it is what lets the root reuse a
 * slot); the root reads and writes n bytes, and so does each other rank. A
 * symmetric buffer of the root is read where it is, and one more phase tells
 * the root. */
#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    return tac__shared_cost(c, 1, 2.0 * (double)(req->count * req->esize));
}

static void stage(tac_req *req, size_t at, size_t n)
{
    if (req->comm->rank == req->root) tac__shared_stage_src(req, at, n);
}

static void consume(tac_req *req, size_t at, size_t n)
{
    if (req->comm->rank == req->root) return;
    tac__shared_copy_out(req, req->dst + at * req->esize,
                         tac__shared_slot(req, req->root, at), n * req->esize);
}

static void direct(tac_req *req)
{
    if (req->comm->rank == req->root) return;
    tac__shared_copy_out(req, req->dst, tac__shared_src(req, req->root),
                         req->count * req->esize);
}

static const tac__shared_plan plan = {stage, consume, direct};

static tac_status start(tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0},
                             tac__shared_fit(req, 1), &plan);
}

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
