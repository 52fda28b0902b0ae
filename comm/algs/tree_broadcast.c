/* tree_broadcast.c: broadcast along a binomial tree, in chunks, so that the
 * levels of the tree work at the same time.
 *
 * Rank v (counted from the root) receives from v without its lowest bit, and
 * sends to v + b for each b below that bit. ceil(log2 p) levels; a rank sends
 * at most n ceil(log2 p) bytes. No scratch. */
#include "algs/direct.h"
#include "cost.h"

#define CHUNK_BYTES ((size_t)1 << 20)

enum { RECEIVE = TAC__DIRECT_BEGIN, SEND };

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize);
    double t = 0;
    for (int b = 1; b < c->size; b *= 2) t += tac__cost_pair(c, b, n);
    return t;
}

static int virtual_rank(const tac_req *req)
{
    const int p = req->comm->size;
    return (req->comm->rank - req->root + p) % p;
}

static int real_rank(const tac_req *req, int v)
{
    return (v + req->root) % req->comm->size;
}

static tac_status begin_chunk(tac_req *req)
{
    const size_t most =
        tac__min(CHUNK_BYTES, req->comm->config.message_bytes) / req->esize;
    const int v = virtual_rank(req);
    req->chunk = tac__min(most, req->count - req->pos);
    req->stage = RECEIVE;
    if (v == 0) return TAC_OK;
    return tac__direct_recv(req, real_rank(req, v & (v - 1)),
                            req->dst + req->pos * req->esize,
                            req->chunk * req->esize);
}

static tac_status pass_on(tac_req *req)
{
    const int v = virtual_rank(req), p = req->comm->size;
    const int end = v == 0 ? p : v & -v;
    req->stage = SEND;
    for (int b = 1; b < end && v + b < p; b *= 2)
        TAC_TRY(tac__direct_send(req, real_rank(req, v + b),
                                 req->src + req->pos * req->esize,
                                 req->chunk * req->esize));
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    for (;;) {
        const int checking = req->stage < TAC__DIRECT_BEGIN;
        const tac_status s =
            checking ? tac__direct_check(req) : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        if (req->stage == RECEIVE) {
            TAC_TRY(pass_on(req));
            continue;
        }
        req->pos += req->chunk;
        if (req->pos == req->count) return TAC_OK;
        TAC_TRY(begin_chunk(req));
    }
}

const tac__alg tac__alg_tree_broadcast = {
    .name = "tree",
    .doc = "messages: binomial tree, in chunks of 1 MiB",
    .coll = TAC_COLL_BROADCAST,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = tac__direct_start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
