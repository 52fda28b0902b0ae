/* shared_reduce_scatter.c: staged reduce-scatter in shared memory.
 *
 * A chunk is a stretch of every block. Copy in what the others want; wait for
 * all; reduce this rank's stretch of all slots, in rank order, straight into
 * the destination. One phase a chunk; a rank reads 2 n, writes n + n/p bytes
 * (n: the source). Symmetric sources are read where they are, and one more
 * phase tells their owners that they have been.
 *
 * With a wire format slots hold messages, of this rank's own block too; the
 * result is encoded and decoded once, as if it were sent on.
 *
 * Rounding: one; with a wire format two, as in shared_allreduce.c. */
#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize) * c->size;
    return tac__shared_cost(c, 1, 2.0 * n);
}

static void stage(tac_req *req, size_t at, size_t n)
{
    const tac_comm *c = req->comm;
    const size_t stride = tac__shared_stride(req, n);
    for (int i = 1; i <= c->size; i++) {
        const int q = (c->rank + i) % c->size;
        const size_t from = (size_t)q * req->count + at;
        char *part = tac__shared_part(req, c->rank, q, at, stride);
        if (req->wire)
            tac__wire_out(req, from, n, part);
        else if (q != c->rank)
            tac__shared_copy_in(req, part, req->src + from * req->esize,
                                n * req->esize);
    }
}

static void consume(tac_req *req, size_t at, size_t n)
{
    tac_comm *c = req->comm;
    const size_t stride = tac__shared_stride(req, n);
    const size_t mine = (size_t)c->rank * req->count + at;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_part(req, r, c->rank, at, stride);
    if (req->wire) {
        char *result = tac__shared_part(req, c->rank, c->rank, at, stride);
        tac__wire_reduce(req, mine, n, result);
        tac__wire_in(req, at, n, result);
        return;
    }
    c->scratch.srcs[c->rank] = req->src + mine * req->esize;
    tac__reduce_into(req, req->dst + at * req->esize, n, NULL, 0,
                     tac__shared_stream_dst(req));
}

static void direct(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t at = (size_t)c->rank * req->count * req->esize;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_src(req, r) + at;
    tac__reduce_into(req, req->dst, req->count, NULL, 0,
                     tac__shared_stream_dst(req));
}

static const tac__shared_plan plan = {stage, consume, direct};

static tac_status start(tac_req *req)
{
    const size_t p = (size_t)req->comm->size;
    const size_t bytes = req->count * req->esize * p;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0},
                             tac__shared_fit(req, p) / p, &plan);
}

static tac_status step(tac_req *req)
{
    return tac__shared_run(req, &plan);
}

const tac__alg tac__alg_shared_reduce_scatter = {
    .name = "sliced",
    .doc = "shared memory: each rank reduces its block, one phase a chunk",
    .coll = TAC_COLL_REDUCE_SCATTER,
    .applicable = tac__shared_wire_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
