/* ring_message.c: which elements a message of the ring is, and where they are
 * (see ring.h). */
#include "algs/partial.h"
#include "algs/ring.h"

tac__ring *tac__ring_of(const tac_req *req)
{
    return tac__direct_program(req);
}

size_t tac__ring_a_chunk(const tac__ring *g)
{
    return (size_t)g->rounds * TAC__RING_SEGMENTS;
}

/* Elements of a block (or of the buffer) that all chunks before this have. */
static size_t chunk_begin(const tac_req *req, const tac__ring *g, size_t chunk)
{
    const size_t slices =
        g->kind == TAC__RING_ALL ? (size_t)req->comm->size : 1;
    return tac__min(req->count,
                    chunk * slices * TAC__RING_SEGMENTS * g->segment);
}

/* Segment s of slice j of a chunk. */
static tac__range place(const tac_req *req, size_t chunk, int j, int s)
{
    const tac__ring *g = tac__ring_of(req);
    const size_t unit = tac__direct_unit(req);
    const size_t from = chunk_begin(req, g, chunk);
    const size_t n = chunk_begin(req, g, chunk + 1) - from;
    size_t base = (size_t)j * req->count + from;
    tac__range slice = {0, n};
    if (g->kind == TAC__RING_ALL) {
        slice = tac__part(n, unit, req->comm->size, j);
        base = from + slice.begin;
    }
    const tac__range seg =
        tac__part(slice.end - slice.begin, unit, TAC__RING_SEGMENTS, s);
    return (tac__range){base + seg.begin, base + seg.end};
}

/* behind: 0 what is sent as message m, 1 what is received. */
tac__ring_message tac__ring_message_at(const tac_req *req, size_t m, int behind)
{
    const tac__ring *g = tac__ring_of(req);
    const int p = req->comm->size;
    const size_t in_chunk = m % tac__ring_a_chunk(g);
    const int t = g->first + (int)(in_chunk / TAC__RING_SEGMENTS);
    const int j = (g->v - t - behind + 3 * p) % p;
    const tac__range r = place(req, m / tac__ring_a_chunk(g), j,
                               (int)(in_chunk % TAC__RING_SEGMENTS));
    return (tac__ring_message){t, r.begin, r.end - r.begin};
}

int tac__ring_is_first(const tac__ring *g, size_t m)
{
    return m % tac__ring_a_chunk(g) < TAC__RING_SEGMENTS;
}

/* Is what round t carries complete? */
int tac__ring_is_result(const tac_req *req, int t)
{
    return t >= req->comm->size - 1;
}

size_t tac__ring_bytes(const tac_req *req, const tac__ring_message *m)
{
    if (req->wire) return tac__wire_bytes(req, m->n);
    return m->n * (tac__ring_is_result(req, m->round)
                       ? req->esize
                       : tac__partial_of(req).esize);
}

/* The halves' shorter buffer is the rank's own block. */
char *tac__ring_dst(const tac_req *req, size_t at)
{
    const int own = tac__ring_of(req)->kind == TAC__RING_REDUCE;
    if (own) at -= (size_t)req->comm->rank * req->count;
    return req->dst + at * req->esize;
}

const char *tac__ring_src(const tac_req *req, size_t at)
{
    const int own = tac__ring_of(req)->kind == TAC__RING_GATHER;
    if (own) at -= (size_t)req->comm->rank * req->count;
    return req->src + at * req->esize;
}

char *tac__ring_in_slot(const tac_req *req, size_t m)
{
    return req->comm->scratch.staging +
           m % TAC__RING_SLOTS * tac__ring_of(req)->slot_bytes;
}

char *tac__ring_out_slot(const tac_req *req, size_t m)
{
    return req->comm->scratch.staging +
           (TAC__RING_SLOTS + m % TAC__RING_SLOTS) *
               tac__ring_of(req)->slot_bytes;
}

/* Received where it belongs. */
int tac__ring_lands(const tac_req *req, const tac__ring_message *m)
{
    return !req->wire && tac__ring_is_result(req, m->round);
}
