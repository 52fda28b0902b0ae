/* scatter_broadcast.c: "scatter": broadcast of long messages: the root gives
 * each other rank a part, which that rank passes on to the rest.
 *
 * In chunks, three under way. Steps: 2. Bytes sent: n by the root, n
 * (p-2)/(p-1) by the others. No scratch: everything is received where it
 * belongs. */
#include "algs/direct.h"
#include "cost.h"

enum { UNDER_WAY = 3 };

typedef struct program {
    size_t piece, chunks;
    size_t started; /* chunks sent by the root; receives begun by others */
    size_t passed;  /* chunks whose part this rank has passed on */
} program;

static int applicable(const tac_comm *c, const tac_req *req)
{
    return tac__direct_applicable(c, req) && c->size > 2;
}

static double cost(const tac_comm *c, const tac_req *req)
{
    const double p = c->size, n = (double)(req->count * req->esize);
    const double first = n < 1e6 ? n : 1e6; /* on its way to be passed on */
    return tac__cost_spread(c, 2 * (p - 1), n + first);
}

static program *program_of(const tac_req *req)
{
    return tac__direct_program(req);
}

/* The part of rank r, which is not the root. */
static tac__range part_of(const tac_req *req, size_t chunk, int r)
{
    const program *g = program_of(req);
    const int parts = req->comm->size - 1;
    const size_t whole = g->piece * (size_t)parts;
    const size_t from = chunk * whole;
    tac__range s =
        tac__part(tac__min(whole, req->count - from), tac__direct_unit(req),
                  parts, r < req->root ? r : r - 1);
    s.begin += from;
    s.end += from;
    return s;
}

static tac_status move(tac_req *req, int peer, tac__range s, int sends)
{
    char *at = req->dst + s.begin * req->esize;
    const size_t bytes = (s.end - s.begin) * req->esize;
    return sends ? tac__direct_send(req, peer, at, bytes)
                 : tac__direct_recv(req, peer, at, bytes);
}

static int has_room(const tac_req *req)
{
    const unsigned least = TAC__LANE - UNDER_WAY;
    for (int r = 0; r < req->comm->size; r++)
        if (tac__direct_send_room(req, r) <= least ||
            tac__direct_recv_room(req, r) <= least)
            return 0;
    return 1;
}

/* Empty parts travel too: the k-th message of a lane is chunk k's. */
static tac_status begin_chunk(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    const int me = c->rank, root = req->root;
    if (me == root) {
        for (int i = 1; i < c->size; i++) {
            const int r = (me + i) % c->size;
            TAC_TRY(move(req, r, part_of(req, chunk, r), 1));
        }
        return TAC_OK;
    }
    TAC_TRY(move(req, root, part_of(req, chunk, me), 0));
    for (int i = 1; i < c->size; i++) {
        const int r = (me - i + c->size) % c->size;
        if (r != root) TAC_TRY(move(req, r, part_of(req, chunk, r), 0));
    }
    return TAC_OK;
}

static tac_status pass_on(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int i = 1; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        if (r != req->root)
            TAC_TRY(move(req, r, part_of(req, chunk, c->rank), 1));
    }
    return TAC_OK;
}

static tac_status advance(tac_req *req, int *done)
{
    program *g = program_of(req);
    const int is_root = req->comm->rank == req->root;
    for (;;) {
        if (g->started < g->chunks && has_room(req))
            TAC_TRY(begin_chunk(req, g->started++));
        else if (!is_root && g->passed < g->started &&
                 tac__direct_got(req, req->root) > g->passed)
            TAC_TRY(pass_on(req, g->passed++));
        else
            break;
    }
    *done = g->started == g->chunks && (is_root || g->passed == g->chunks);
    return TAC_OK;
}

static tac_status start(tac_req *req)
{
    const size_t parts = (size_t)req->comm->size - 1;
    TAC_TRY(tac__direct_start(req));
    program *g = program_of(req);
    g->piece = tac__direct_piece(req, req->esize, req->count / parts + 1,
                                 (size_t)1 << 20);
    const size_t whole = g->piece * parts;
    g->chunks = (req->count + whole - 1) / whole;
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    return tac__direct_run(req, advance);
}

const tac__alg tac__alg_scatter_broadcast = {
    .name = "scatter",
    .doc = "messages: every rank passes a part on to all, for long messages",
    .coll = TAC_COLL_BROADCAST,
    .applicable = applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
