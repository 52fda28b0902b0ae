/* direct_allreduce.c: "direct": reduce-scatter by direct exchange, then
 * all-gather by direct exchange.
 *
 * For each chunk: send every peer its slice of the source and receive its
 * version of mine; add all versions in rank order (f32, f64 or 64-bit
 * accumulation, one rounding) into my slice of the destination; send that to
 * all. 2(p-1) messages and 2 n (p-1)/p bytes a rank; scratch: the staging.
 * In place works, because a slice of the source is overwritten only after it
 * has been sent. */
#include "algs/direct.h"

enum { REDUCE = TAC__DIRECT_BEGIN, GATHER };

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    return tac__direct_cost(2 * (p - 1), 2 * n * (p - 1) / p);
}

static tac__range slice_of(const tac_req *req, int r)
{
    return tac__slice(req->chunk, req->esize, req->comm->size, r);
}

static size_t bytes_of(const tac_req *req, int r)
{
    const tac__range s = slice_of(req, r);
    return (s.end - s.begin) * req->esize;
}

static size_t offset_of(const tac_req *req, int r)
{
    return (req->pos + slice_of(req, r).begin) * req->esize;
}

static tac__piece scatter_piece(tac_req *req, int peer)
{
    const size_t mine = bytes_of(req, req->comm->rank);
    return (tac__piece){req->src + offset_of(req, peer),
                        tac__direct_staging(req, peer, mine),
                        bytes_of(req, peer), mine};
}

static tac__piece gather_piece(tac_req *req, int peer)
{
    const int me = req->comm->rank;
    return (tac__piece){req->dst + offset_of(req, me),
                        req->dst + offset_of(req, peer), bytes_of(req, me),
                        bytes_of(req, peer)};
}

static tac_status start(tac_req *req)
{
    req->stage = TAC__CHECK;
    return TAC_OK;
}

static tac_status begin_chunk(tac_req *req)
{
    const size_t p = (size_t)req->comm->size;
    const size_t most = tac__direct_slice(req->comm, req->esize) * p;
    req->chunk = tac__min(most, req->count - req->pos);
    req->stage = REDUCE;
    return tac__direct_exchange(req, scatter_piece);
}

static tac_status reduce(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t bytes = bytes_of(req, c->rank);
    const size_t at = offset_of(req, c->rank);
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__direct_staging(req, r, bytes);
    c->scratch.srcs[c->rank] = req->src + at;
    if (bytes > 0) tac__reduce_srcs(req, req->dst + at, bytes / req->esize);
    req->stage = GATHER;
    return tac__direct_exchange(req, gather_piece);
}

static tac_status advance(tac_req *req)
{
    if (req->stage == REDUCE) return reduce(req);
    req->pos += req->chunk;
    return begin_chunk(req);
}

static tac_status step(tac_req *req)
{
    for (;;) {
        const int checking = req->stage < TAC__DIRECT_BEGIN;
        const tac_status s =
            checking ? tac__direct_check(req) : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        if (req->pos + req->chunk == req->count && req->stage != REDUCE)
            return TAC_OK;
        TAC_TRY(checking ? begin_chunk(req) : advance(req));
    }
}

const tac__alg tac__alg_direct_allreduce = {
    .name = "direct",
    .doc = "messages: direct reduce-scatter, then direct all-gather",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
