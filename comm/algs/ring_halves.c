/* ring_halves.c: "ring": the halves of the pipelined ring as reduce-scatter and
 * all-gather.
 *
 * Steps: p-1. Bytes sent a rank: n (p-1) (n: one block), all to the successor.
 * Order of the reduction: block r is added from rank r+1 on, rank r's own
 * elements last. Rounding: one, at the end (partial.h); with a wire format one
 * a hop. */
#include "algs/ring.h"
#include "cost.h"

static int applicable(const tac_comm *c, const tac_req *req)
{
    return tac__direct_wire_applicable(c, req) && !tac__has_feedback(req);
}

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    const int adds = req->coll == TAC_COLL_REDUCE_SCATTER;
    const double wider = adds && req->esize == 2 ? 2 : 1;
    if (req->wire) return TAC__COST_NEVER;
    return tac__cost_ring(c, p - 1, wider * n * (p - 1)) +
           (adds ? tac__cost_reduce(c, p * n) : 0);
}

static tac_status start_reduce(tac_req *req)
{
    return tac__ring_start(req, TAC__RING_REDUCE);
}

static tac_status start_gather(tac_req *req)
{
    return tac__ring_start(req, TAC__RING_GATHER);
}

const tac__alg tac__alg_ring_reduce_scatter = {
    .name = "ring",
    .doc = "messages: blocks are added on their way around",
    .coll = TAC_COLL_REDUCE_SCATTER,
    .applicable = applicable,
    .cost = cost,
    .start = start_reduce,
    .step = tac__ring_step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
    .reorders = 1,
};

const tac__alg tac__alg_ring_allgather = {
    .name = "ring",
    .doc = "messages: blocks are passed on to the successor",
    .coll = TAC_COLL_ALLGATHER,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = start_gather,
    .step = tac__ring_step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
