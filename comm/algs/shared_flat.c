/* shared_flat.c: "flat": every rank reduces everything.
 *
 * For each chunk: copy in; wait for all; reduce all slots, in rank order,
 * straight into the destination. One phase a chunk: best for small messages
 * and for two ranks. Bytes a rank: reads (p + 1) n, writes 2 n, of which n and
 * n are memory, the rest cache. Rounding: one. No wire formats: a result that
 * every rank forms for itself is not sent. */
#include "algs/shared_symmetric.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize);
    return tac__shared_cost(c, 1, (1.0 + c->size) * n);
}

/* Its own input a rank reads where it is: in place is fine, element by
 * element. */
static void reduce_chunk(tac_req *req, size_t at, size_t n)
{
    tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_slot(req, r, at);
    c->scratch.srcs[c->rank] = req->src + at * req->esize;
    tac__reduce_into(req, req->dst + at * req->esize, n, NULL, 0,
                     tac__shared_stream_dst(req));
}

static const tac__shared_plan plan = {tac__shared_stage_src, reduce_chunk,
                                      tac__shared_reduce_symmetric};

static tac_status start(tac_req *req)
{
    return tac__shared_enter(req, tac__shared_need_both(req),
                             tac__shared_fit(req, 1), &plan);
}

static tac_status step(tac_req *req)
{
    return tac__shared_run(req, &plan);
}

const tac__alg tac__alg_shared_flat = {
    .name = "flat",
    .doc = "shared memory: each rank reduces everything, one phase a chunk",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
