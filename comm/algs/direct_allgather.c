/* direct_allgather.c: all-gather by direct exchange: my block goes to every
 * peer, in messages of at most message_bytes. p-1 messages, n (p-1) bytes a
 * rank (n: one block). No scratch. */
#include <string.h>

#include "algs/direct.h"

enum { MOVE = TAC__DIRECT_BEGIN };

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    return tac__direct_cost(p - 1, n * (p - 1));
}

static char *block(const tac_req *req, int r)
{
    return req->dst + ((size_t)r * req->count + req->pos) * req->esize;
}

static tac__piece piece(tac_req *req, int peer)
{
    const size_t bytes = req->chunk * req->esize;
    return (tac__piece){req->src + req->pos * req->esize, block(req, peer),
                        bytes, bytes};
}

static tac_status start(tac_req *req)
{
    req->stage = TAC__CHECK;
    return TAC_OK;
}

static tac_status begin_chunk(tac_req *req)
{
    const size_t most = req->comm->config.message_bytes / req->esize;
    req->chunk = tac__min(most, req->count - req->pos);
    req->stage = MOVE;
    return tac__direct_exchange(req, piece);
}

static void copy_own(tac_req *req)
{
    char *own = block(req, req->comm->rank);
    const size_t bytes = req->count * req->esize;
    if (bytes == 0 || own == req->src) return;
    const tac__work w = tac__work_begin(bytes);
    memcpy(own, req->src, bytes);
    tac__work_end(req, w);
}

static tac_status step(tac_req *req)
{
    for (;;) {
        const int checking = req->stage < TAC__DIRECT_BEGIN;
        const tac_status s =
            checking ? tac__direct_check(req) : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        if (checking) copy_own(req);
        req->pos += req->chunk;
        if (req->pos == req->count) return TAC_OK;
        TAC_TRY(begin_chunk(req));
    }
}

const tac__alg tac__alg_direct_allgather = {
    .name = "direct",
    .doc = "messages: every rank sends its block to every peer",
    .coll = TAC_COLL_ALLGATHER,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
