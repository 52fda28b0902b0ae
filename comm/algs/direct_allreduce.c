/* direct_allreduce.c: "direct": reduce-scatter by direct exchange, then
 * all-gather by direct exchange, in chunks that overlap.
 *
 * For each chunk: send every peer its slice of the source and receive its
 * version of mine; add all versions in rank order; send the result to all.
 * Chunks are under way in the order RS0 RS1 AG0 RS2 AG1 ..., the same on all
 * ranks, so both directions of a wire always have something to do.
 *
 * Steps: 2. Messages: 2(p-1) a chunk. Bytes sent a rank: 2 n (p-1)/p. Scratch:
 * the staging, 2p pieces (6p with a wire format).
 * Order: rank order. Rounding: one, at the end (f16 and bf16 add in f32). With
 * a wire format: one of each contribution on its way out, the owner's own
 * included, and one of the result; error feedback covers the first.
 * In place works, because a slice of the source is overwritten only after it
 * has been sent. */
#include "algs/direct.h"
#include "cost.h"

/* Chunks whose pieces are reduced later than those of the next are sent. */
enum { AHEAD = 1, SLOTS_PLAIN = AHEAD + 1, SLOTS_WIRE = AHEAD + 2 };

typedef struct program {
    size_t piece;   /* elements of a slice of a full chunk */
    size_t bytes;   /* of its place in the staging */
    size_t chunks;  /* in all */
    size_t at;      /* next of the sequence: 2i: RS i, 2i+1: AG i-AHEAD */
    size_t reduced; /* chunks that this rank has reduced its slice of */
    size_t landed;  /* chunks whose gathered messages are decoded (wire) */
} program;

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)tac__cost_bytes(req), p = c->size;
    return tac__cost_spread(c, 2 * (p - 1), 2 * n * (p - 1) / p) +
           tac__cost_reduce(c, (double)(req->count * req->esize));
}

/* ---- where things are ------------------------------------------------------
 */

static program *program_of(const tac_req *req)
{
    return tac__direct_program(req);
}

static size_t chunk_begin(const tac_req *req, size_t chunk)
{
    return chunk * program_of(req)->piece * (size_t)req->comm->size;
}

/* Rank r's slice of a chunk, as elements of the buffer. */
static tac__range slice_of(const tac_req *req, size_t chunk, int r)
{
    const program *g = program_of(req);
    const size_t from = chunk_begin(req, chunk);
    const size_t to = tac__min(req->count, chunk_begin(req, chunk + 1));
    tac__range s =
        tac__part(to - from, tac__direct_unit(req), req->comm->size, r);
    TAC_ASSERT(s.end - s.begin <= g->piece);
    s.begin += from;
    s.end += from;
    return s;
}

static int is_empty(const tac_req *req, size_t chunk, int r)
{
    const tac__range s = slice_of(req, chunk, r);
    return s.begin == s.end;
}

/* A chunk's messages: out[r], with a wire format, then in[r]. */
static char *staged(const tac_req *req, size_t chunk, int in, int r)
{
    const program *g = program_of(req);
    const size_t p = (size_t)req->comm->size;
    const size_t slots = req->wire ? SLOTS_WIRE : SLOTS_PLAIN;
    const size_t rows = req->wire ? 2 : 1;
    const size_t row = chunk % slots * rows + (in && req->wire ? 1 : 0);
    return req->comm->scratch.staging + (row * p + (size_t)r) * g->bytes;
}

/* ---- counting: the k-th message of a lane ----------------------------------
 */

static size_t before(size_t chunk)
{
    return chunk > AHEAD ? chunk - AHEAD : 0;
}

/* Messages of a lane up to and with chunk's scatter piece, if it is not empty
 * (only those of the last chunk may be). */
static size_t through_scatter(const tac_req *req, size_t chunk, int owner)
{
    return chunk + !is_empty(req, chunk, owner) + before(chunk);
}

/* ... with chunk's gather piece. */
static size_t through_gather(const tac_req *req, size_t chunk, int scattered,
                             int gathered)
{
    const size_t last = program_of(req)->chunks - 1;
    const size_t to = tac__min(chunk + AHEAD, last);
    return to + !is_empty(req, to, scattered) + chunk +
           !is_empty(req, chunk, gathered);
}

static int all_scattered(const tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        if (r != c->rank &&
            tac__direct_got(req, r) < through_scatter(req, chunk, c->rank))
            return 0;
    return 1;
}

static int all_sent(const tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        if (r != c->rank &&
            tac__direct_sent(req, r) < through_scatter(req, chunk, r))
            return 0;
    return 1;
}

static int all_gathered(const tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++)
        if (r != c->rank &&
            (tac__direct_got(req, r) < through_gather(req, chunk, c->rank, r) ||
             tac__direct_sent(req, r) < through_gather(req, chunk, r, c->rank)))
            return 0;
    return 1;
}

/* ---- the two halves --------------------------------------------------------
 */

/* Peers in an order that differs by rank: everybody sends to another. */
static int peer_at(const tac_comm *c, int i, int sends)
{
    return sends ? (c->rank + i) % c->size : (c->rank - i + c->size) % c->size;
}

static tac_status receive_all(tac_req *req, size_t chunk, int gather)
{
    const tac_comm *c = req->comm;
    for (int i = 1; i < c->size; i++) {
        const int r = peer_at(c, i, 0);
        const tac__range s = slice_of(req, chunk, gather ? r : c->rank);
        const size_t n = s.end - s.begin;
        void *to = gather && !req->wire ? req->dst + s.begin * req->esize
                                        : staged(req, chunk, 1, r);
        if (n > 0)
            TAC_TRY(tac__direct_recv(req, r, to, tac__wire_bytes(req, n)));
    }
    return TAC_OK;
}

static const void *contribution(tac_req *req, size_t chunk, int r)
{
    const tac__range s = slice_of(req, chunk, r);
    if (!req->wire) return req->src + s.begin * req->esize;
    char *msg = staged(req, chunk, 0, r);
    tac__wire_out(req, s.begin, s.end - s.begin, msg);
    return msg;
}

static tac_status scatter(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    TAC_TRY(receive_all(req, chunk, 0));
    for (int i = 1; i < c->size; i++) {
        const int r = peer_at(c, i, 1);
        const tac__range s = slice_of(req, chunk, r);
        if (s.begin == s.end) continue;
        TAC_TRY(tac__direct_send(req, r, contribution(req, chunk, r),
                                 tac__wire_bytes(req, s.end - s.begin)));
    }
    if (req->wire && !is_empty(req, chunk, c->rank))
        contribution(req, chunk, c->rank);
    return TAC_OK;
}

static tac_status gather(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    const tac__range s = slice_of(req, chunk, c->rank);
    const void *from = req->wire ? staged(req, chunk, 0, c->rank)
                                 : req->dst + s.begin * req->esize;
    TAC_TRY(receive_all(req, chunk, 1));
    for (int i = 1; i < c->size && s.begin < s.end; i++)
        TAC_TRY(tac__direct_send(req, peer_at(c, i, 1), from,
                                 tac__wire_bytes(req, s.end - s.begin)));
    return TAC_OK;
}

static void reduce(tac_req *req, size_t chunk)
{
    tac_comm *c = req->comm;
    const tac__range s = slice_of(req, chunk, c->rank);
    const size_t n = s.end - s.begin;
    if (n == 0) return;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = staged(req, chunk, 1, r);
    if (req->wire) {
        char *own = staged(req, chunk, 0, c->rank);
        c->scratch.srcs[c->rank] = own;
        tac__wire_reduce(req, s.begin, n, own);
    } else {
        c->scratch.srcs[c->rank] = req->src + s.begin * req->esize;
        tac__reduce_srcs(req, req->dst + s.begin * req->esize, n);
    }
}

/* Everybody's result, the own one too, as it was sent. */
static void decode(tac_req *req, size_t chunk)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++) {
        const tac__range s = slice_of(req, chunk, r);
        if (s.begin < s.end)
            tac__wire_in(req, s.begin, s.end - s.begin,
                         staged(req, chunk, r != c->rank, r));
    }
}

/* ---- the sequence ----------------------------------------------------------
 */

/* May the gather of this chunk write where it will? */
static int may_gather(const tac_req *req, size_t chunk)
{
    const int overwrites = req->wire == NULL && req->src == req->dst;
    return program_of(req)->reduced > chunk &&
           (!overwrites || all_sent(req, chunk));
}

static int may_scatter(const tac_req *req, size_t chunk)
{
    const program *g = program_of(req);
    if (req->wire) return chunk < SLOTS_WIRE || g->landed + SLOTS_WIRE > chunk;
    return chunk < SLOTS_PLAIN || g->reduced + SLOTS_PLAIN > chunk;
}

/* 1: the next of the sequence has been started. */
static tac_status start_next(tac_req *req, int *started)
{
    program *g = program_of(req);
    const size_t i = g->at / 2;
    *started = 0;
    if (g->at % 2 == 0 && i < g->chunks) {
        if (!may_scatter(req, i)) return TAC_OK;
        TAC_TRY(scatter(req, i));
    } else if (g->at % 2 == 1 && i >= AHEAD) {
        if (!may_gather(req, i - AHEAD)) return TAC_OK;
        TAC_TRY(gather(req, i - AHEAD));
    }
    g->at++;
    *started = 1;
    return TAC_OK;
}

static tac_status advance(tac_req *req, int *done)
{
    program *g = program_of(req);
    const size_t end = 2 * (g->chunks + AHEAD);
    int more = g->chunks > 0;
    while (more) {
        more = 0;
        if (g->at < end) TAC_TRY(start_next(req, &more));
        /* Started: its scatter, and its gather. */
        if (g->reduced < g->chunks && g->at > 2 * g->reduced &&
            all_scattered(req, g->reduced)) {
            reduce(req, g->reduced++);
            more = 1;
        }
        if (req->wire && g->landed < g->reduced &&
            g->at > 2 * (g->landed + AHEAD) + 1 &&
            all_gathered(req, g->landed)) {
            decode(req, g->landed++);
            more = 1;
        }
        more &= g->at < end || g->reduced < g->chunks ||
                (req->wire && g->landed < g->chunks);
    }
    *done = g->chunks == 0 ||
            (g->at >= end && (!req->wire || g->landed == g->chunks));
    return TAC_OK;
}

static tac_status start(tac_req *req)
{
    tac_comm *c = req->comm;
    const size_t p = (size_t)c->size;
    const size_t places = p * (req->wire ? 2 * SLOTS_WIRE : SLOTS_PLAIN);
    TAC_TRY(tac__direct_start(req));
    program *g = program_of(req);
    g->piece =
        tac__direct_piece(req, req->esize, req->count / p + 1,
                          tac__lines_down(c->scratch.staging_bytes / places));
    g->bytes = tac__lines_up(tac__wire_bytes(req, g->piece));
    g->chunks = (req->count + g->piece * p - 1) / (g->piece * p);
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    return tac__direct_run(req, advance);
}

const tac__alg tac__alg_direct_allreduce = {
    .name = "direct",
    .doc = "messages: direct reduce-scatter, then direct all-gather",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__direct_wire_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
