/* direct_allgather.c: "direct": all-gather by direct exchange: my block goes to
 * every peer, in messages of at most 1 MiB (and message_bytes), four of a pair
 * under way. Steps: 1. Bytes sent a rank: n (p-1) (n: one block). No scratch.
 */
#include <string.h>

#include "algs/direct.h"
#include "cost.h"

#define CHUNK_BYTES ((size_t)1 << 20)
enum { UNDER_WAY = 4 };

typedef struct program {
    size_t started; /* elements of every block */
    int copied;
} program;

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    return tac__cost_spread(c, p - 1, n * (p - 1));
}

static char *block(const tac_req *req, int r, size_t at)
{
    return req->dst + ((size_t)r * req->count + at) * req->esize;
}

static int has_room(const tac_req *req)
{
    const tac_comm *c = req->comm;
    const unsigned least = TAC__LANE - UNDER_WAY;
    for (int r = 0; r < c->size; r++)
        if (tac__direct_send_room(req, r) <= least ||
            tac__direct_recv_room(req, r) <= least)
            return 0;
    return 1;
}

static tac_status exchange(tac_req *req, size_t at, size_t n)
{
    const tac_comm *c = req->comm;
    const size_t bytes = n * req->esize;
    for (int i = 1; i < c->size; i++) {
        const int r = (c->rank - i + c->size) % c->size;
        TAC_TRY(tac__direct_recv(req, r, block(req, r, at), bytes));
    }
    for (int i = 1; i < c->size; i++)
        TAC_TRY(tac__direct_send(req, (c->rank + i) % c->size,
                                 req->src + at * req->esize, bytes));
    return TAC_OK;
}

static void copy_own(tac_req *req)
{
    char *own = block(req, req->comm->rank, 0);
    const size_t bytes = req->count * req->esize;
    if (bytes == 0 || own == req->src) return;
    const tac__work w = tac__work_begin(bytes);
    memcpy(own, req->src, bytes);
    tac__work_end(req, w);
}

/* The own block is copied while messages are under way. */
static tac_status advance(tac_req *req, int *done)
{
    program *g = tac__direct_program(req);
    const size_t most =
        tac__min(CHUNK_BYTES, req->comm->config.message_bytes) / req->esize;
    while (g->started < req->count && has_room(req)) {
        const size_t n = tac__min(most, req->count - g->started);
        TAC_TRY(exchange(req, g->started, n));
        g->started += n;
    }
    if (!g->copied) copy_own(req);
    g->copied = 1;
    *done = g->started == req->count;
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    return tac__direct_run(req, advance);
}

const tac__alg tac__alg_direct_allgather = {
    .name = "direct",
    .doc = "messages: every rank sends its block to every peer",
    .coll = TAC_COLL_ALLGATHER,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = tac__direct_start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
