/* ring_allreduce.c: "ring": pipelined ring, reduce-scatter and all-gather.
 *
 * Steps: 2(p-1). Bytes sent a rank: 2 n (p-1)/p, all to the successor, so only
 * one rank of each host sends across. Scratch: the staging, 16 segments of at
 * most 256 KiB.
 * Order: slice j is added from rank j on: x_j + x_(j+1) + ... + x_(j-1).
 * Rounding: one, at the end: f16, bf16 and averaged or scaled integers travel
 * as wider partial sums in the first half (see partial.h: f16 sends 1.5 times
 * the bytes). With a wire format: one of the first contribution and one a hop,
 * p in all; no error feedback. */
#include "algs/ring.h"
#include "cost.h"

static int applicable(const tac_comm *c, const tac_req *req)
{
    return tac__direct_wire_applicable(c, req) && !tac__has_feedback(req);
}

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    const double wider = req->esize == 2 ? 1.5 : 1;
    if (req->wire) return TAC__COST_NEVER;
    return tac__cost_ring(c, 2 * (p - 1), 2 * wider * n * (p - 1) / p) +
           tac__cost_reduce(c, n);
}

static tac_status start(tac_req *req)
{
    return tac__ring_start(req, TAC__RING_ALL);
}

const tac__alg tac__alg_ring_allreduce = {
    .name = "ring",
    .doc = "messages: pipelined ring, 2(p-1) steps",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = applicable,
    .cost = cost,
    .start = start,
    .step = tac__ring_step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
    .reorders = 1,
};
