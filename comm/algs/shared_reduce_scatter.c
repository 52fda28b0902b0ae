/* shared_reduce_scatter.c: staged reduce-scatter in shared memory.
 *
 * A chunk is a stretch of every block. Copy in what the others want; wait for
 * all; reduce this rank's stretch of all slots, in rank order, straight into
 * the destination. One phase a chunk; reads 2 n, writes n + n/p bytes (n: the
 * source). Symmetric sources are read where they are, and one more phase tells
 * their owners that they have been. Rounding: one. */
#include <string.h>

#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize) * c->size;
    return tac__shared_cost(1, 2.0 * n);
}

static size_t block_bytes(const tac_req *req)
{
    return req->count * req->esize;
}

static void copy_in(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t p = (size_t)c->size;
    const size_t most = c->domain->slot_bytes / (p * req->esize);
    req->chunk = tac__min(most, req->count - req->pos);
    const size_t bytes = req->chunk * req->esize;
    if (bytes == 0) return;
    char *slot = tac__domain_slot(c->domain, c->rank);
    const tac__work w = tac__work_begin(bytes * p);
    for (size_t q = 0; q < p; q++) {
        if (q == (size_t)c->rank) continue;
        memcpy(slot + q * bytes,
               req->src + q * block_bytes(req) + req->pos * req->esize, bytes);
    }
    tac__work_end(req, w);
}

static tac_status start(tac_req *req)
{
    const size_t bytes = block_bytes(req) * (size_t)req->comm->size;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0}, copy_in);
}

static void reduce_chunk(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t me = (size_t)c->rank, at = req->pos * req->esize;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] =
            tac__domain_slot(c->domain, r) + me * req->chunk * req->esize;
    c->scratch.srcs[me] = req->src + me * block_bytes(req) + at;
    tac__reduce_srcs(req, req->dst + at, req->chunk);
}

static void reduce_symmetric(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t at = (size_t)c->rank * block_bytes(req);
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_src(req, r) + at;
    tac__reduce_srcs(req, req->dst, req->count);
}

static const tac__shared_plan plan = {copy_in, reduce_chunk, reduce_symmetric};

static tac_status step(tac_req *req)
{
    return tac__shared_run(req, &plan);
}

const tac__alg tac__alg_shared_reduce_scatter = {
    .name = "sliced",
    .doc = "shared memory: each rank reduces its block, one phase a chunk",
    .coll = TAC_COLL_REDUCE_SCATTER,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
