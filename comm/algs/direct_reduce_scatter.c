/* direct_reduce_scatter.c: "direct": reduce-scatter by direct exchange.
 *
 * A chunk is a stretch of every block: send each peer its stretch, receive its
 * version of mine, add all in rank order. Three chunks are under way at a time.
 *
 * Steps: 1. Messages: p-1 a chunk. Bytes sent a rank: n (p-1) (n: one block).
 * Scratch: the staging. Order: rank order. Rounding: one, at the end; with a
 * wire format one of each contribution, the own one included, and one of the
 * result, as in allreduce. */
#include "algs/direct.h"
#include "cost.h"

enum { SLOTS = 3 };

typedef struct program {
    size_t piece, bytes; /* elements of a full chunk, of its place */
    size_t chunks, started, reduced;
} program;

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)tac__cost_bytes(req);
    return tac__cost_spread(c, p - 1, n * (p - 1)) +
           tac__cost_reduce(c, p * (double)(req->count * req->esize));
}

static program *program_of(const tac_req *req)
{
    return tac__direct_program(req);
}

static size_t length(const tac_req *req, size_t chunk)
{
    const program *g = program_of(req);
    return tac__min(g->piece, req->count - chunk * g->piece);
}

static size_t place(const tac_req *req, size_t chunk, int block)
{
    return (size_t)block * req->count + chunk * program_of(req)->piece;
}

static char *staged(const tac_req *req, size_t chunk, int in, int r)
{
    const program *g = program_of(req);
    const size_t row = chunk % SLOTS * 2 + (size_t)in;
    return req->comm->scratch.staging +
           (row * (size_t)req->comm->size + (size_t)r) * g->bytes;
}

static const void *contribution(tac_req *req, size_t chunk, int r)
{
    const size_t at = place(req, chunk, r);
    if (!req->wire) return req->src + at * req->esize;
    char *msg = staged(req, chunk, 0, r);
    tac__wire_out(req, at, length(req, chunk), msg);
    return msg;
}

static tac_status exchange(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    const size_t bytes = tac__wire_bytes(req, length(req, chunk));
    for (int i = 1; i < c->size; i++) {
        const int r = (c->rank - i + c->size) % c->size;
        TAC_TRY(tac__direct_recv(req, r, staged(req, chunk, 1, r), bytes));
    }
    for (int i = 1; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        TAC_TRY(tac__direct_send(req, r, contribution(req, chunk, r), bytes));
    }
    if (req->wire) contribution(req, chunk, c->rank);
    return TAC_OK;
}

/* Everything of this chunk has arrived, and left. */
static int is_complete(const tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && (tac__direct_got(req, r) <= chunk ||
                             tac__direct_sent(req, r) <= chunk))
            return 0;
    return 1;
}

static void reduce(tac_req *req, size_t chunk)
{
    tac_comm *c = req->comm;
    const size_t n = length(req, chunk), at = place(req, chunk, 0);
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = staged(req, chunk, 1, r);
    if (req->wire) {
        char *own = staged(req, chunk, 0, c->rank);
        c->scratch.srcs[c->rank] = own;
        tac__wire_reduce(req, place(req, chunk, c->rank), n, own);
        tac__wire_in(req, at, n, own);
        return;
    }
    c->scratch.srcs[c->rank] =
        req->src + place(req, chunk, c->rank) * req->esize;
    tac__reduce_srcs(req, req->dst + at * req->esize, n);
}

static tac_status advance(tac_req *req, int *done)
{
    program *g = program_of(req);
    for (;;) {
        if (g->reduced < g->started && is_complete(req, g->reduced))
            reduce(req, g->reduced++);
        else if (g->started < g->chunks && g->started < g->reduced + SLOTS)
            TAC_TRY(exchange(req, g->started++));
        else
            break;
    }
    *done = g->reduced == g->chunks;
    return TAC_OK;
}

static tac_status start(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t places = 2 * SLOTS * (size_t)c->size;
    TAC_TRY(tac__direct_start(req));
    program *g = program_of(req);
    g->piece =
        tac__direct_piece(req, req->esize, req->count,
                          tac__lines_down(c->scratch.staging_bytes / places));
    g->bytes = tac__lines_up(tac__wire_bytes(req, g->piece));
    g->chunks = (req->count + g->piece - 1) / g->piece;
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    return tac__direct_run(req, advance);
}

const tac__alg tac__alg_direct_reduce_scatter = {
    .name = "direct",
    .doc = "messages: every peer sends its version of my block",
    .coll = TAC_COLL_REDUCE_SCATTER,
    .applicable = tac__direct_wire_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
