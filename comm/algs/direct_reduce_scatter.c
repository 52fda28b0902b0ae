/* direct_reduce_scatter.c: reduce-scatter by direct exchange.
 *
 * A chunk is a stretch of every block: send each peer its stretch, receive its
 * version of mine, add all in rank order. p-1 messages a chunk, n (p-1)/p bytes
 * a rank. Rounding: one. */
#include "algs/direct.h"

enum { REDUCE = TAC__DIRECT_BEGIN };

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    return tac__direct_cost(p - 1, n * (p - 1));
}

static const char *mine_at(const tac_req *req, int block)
{
    return req->src + ((size_t)block * req->count + req->pos) * req->esize;
}

static tac__piece piece(tac_req *req, int peer)
{
    const size_t bytes = req->chunk * req->esize;
    return (tac__piece){mine_at(req, peer),
                        tac__direct_staging(req, peer, bytes), bytes, bytes};
}

static tac_status start(tac_req *req)
{
    req->stage = TAC__CHECK;
    return TAC_OK;
}

static tac_status begin_chunk(tac_req *req)
{
    const size_t most = tac__direct_slice(req->comm, req->esize);
    req->chunk = tac__min(most, req->count - req->pos);
    req->stage = REDUCE;
    return tac__direct_exchange(req, piece);
}

static void reduce(tac_req *req)
{
    tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] =
            tac__direct_staging(req, r, req->chunk * req->esize);
    c->scratch.srcs[c->rank] = mine_at(req, c->rank);
    tac__reduce_srcs(req, req->dst + req->pos * req->esize, req->chunk);
    req->pos += req->chunk;
}

static tac_status step(tac_req *req)
{
    for (;;) {
        const int checking = req->stage < TAC__DIRECT_BEGIN;
        const tac_status s =
            checking ? tac__direct_check(req) : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        if (!checking) reduce(req);
        if (req->pos == req->count) return TAC_OK;
        TAC_TRY(begin_chunk(req));
    }
}

const tac__alg tac__alg_direct_reduce_scatter = {
    .name = "direct",
    .doc = "messages: every peer sends its version of my block",
    .coll = TAC_COLL_REDUCE_SCATTER,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
