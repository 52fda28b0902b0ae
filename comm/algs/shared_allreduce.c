/* shared_allreduce.c: "sliced": staged allreduce in shared memory.
 *
 * A chunk is cut into p slices. Copy in what the others reduce; reduce this
 * rank's slice of all slots, in rank order, into the destination and into the
 * own slot; copy the other slices' results out of theirs. The three are done
 * for three chunks at a time, so that there is one phase a chunk:
 *
 *     wait until chunk k is staged and k-1 reduced on all ranks; stage k+1;
 *     reduce k; publish; copy out k-1.
 *
 * n bytes in C chunks: C + 1 phases; a rank reads n (memory), n (p-1)/p twice
 * (caches), and writes n (p-1)/p + n/p (caches), n (memory).
 *
 * With a wire format slots hold messages: a rank encodes all slices, also its
 * own, decodes and adds its slice of all slots, encodes the result in its own
 * slot's place, and decodes all results, also its own.
 *
 * Rounding: one, at the end, after accumulation in f32 (f64, 64-bit integers);
 * with a wire format two, one of each contribution and one of the result. */
#include "algs/shared_symmetric.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    return tac__shared_cost(c, 2, 3.5 * (double)(req->count * req->esize));
}

/* Slice r of a chunk of n elements: equal parts but for the last. */
typedef struct slice {
    size_t at, n;  /* elements of the buffer */
    size_t stride; /* bytes from one to the next in a slot */
} slice;

static slice slice_of(const tac_req *req, size_t at, size_t n, int r)
{
    const size_t unit = tac__shared_unit(req);
    const tac__range s = tac__slice(n, unit, req->comm->size, r);
    const tac__range first = tac__slice(n, unit, req->comm->size, 0);
    return (slice){at + s.begin, s.end - s.begin,
                   tac__shared_stride(req, first.end)};
}

static void stage(tac_req *req, size_t at, size_t n)
{
    const tac_comm *c = req->comm;
    for (int r = 0; r < c->size; r++) {
        const slice s = slice_of(req, at, n, r);
        char *part = tac__shared_part(req, c->rank, r, at, s.stride);
        if (s.n == 0) continue;
        if (req->wire)
            tac__wire_out(req, s.at, s.n, part);
        else if (r != c->rank)
            tac__shared_copy_in(req, part, req->src + s.at * req->esize,
                                s.n * req->esize);
    }
}

static void reduce(tac_req *req, size_t at, size_t n)
{
    tac_comm *c = req->comm;
    const slice s = slice_of(req, at, n, c->rank);
    void *result = tac__shared_part(req, c->rank, c->rank, at, s.stride);
    if (s.n == 0) return;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_part(req, r, c->rank, at, s.stride);
    if (req->wire) {
        tac__wire_reduce(req, s.at, s.n, result);
        return;
    }
    c->scratch.srcs[c->rank] = req->src + s.at * req->esize;
    tac__reduce_into(req, req->dst + s.at * req->esize, s.n, &result, 1,
                     tac__shared_stream_dst(req));
}

/* Starting behind this rank's own slice, so that ranks read different ones. */
static void copy_out(tac_req *req, size_t at, size_t n)
{
    const tac_comm *c = req->comm;
    for (int i = 0; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        const slice s = slice_of(req, at, n, r);
        const char *result = tac__shared_part(req, r, r, at, s.stride);
        if (s.n == 0) continue;
        if (req->wire)
            tac__wire_in(req, s.at, s.n, result);
        else if (i > 0)
            tac__shared_copy_out(req, req->dst + s.at * req->esize, result,
                                 s.n * req->esize);
    }
}

static const tac__shared_plan plan = {stage, NULL,
                                      tac__shared_reduce_symmetric};

static tac_status start(tac_req *req)
{
    return tac__shared_enter(req, tac__shared_need_both(req),
                             tac__shared_fit(req, (size_t)req->comm->size),
                             &plan);
}

/* Everything of a phase; OK: it was the last. */
static tac_status turn(tac_req *req)
{
    const size_t at = req->pos, n = tac__shared_length(req, at);
    const size_t ahead = tac__shared_length(req, at + req->chunk);
    const tac__work w = tac__shared_work(req, req->chunk);
    if (ahead > 0) stage(req, at + req->chunk, ahead);
    if (n > 0) {
        reduce(req, at, n);
        tac__shared_publish(req, TAC__STAGED);
    }
    if (at > 0)
        copy_out(req, at - req->chunk,
                 tac__shared_length(req, at - req->chunk));
    tac__shared_worked(req, w);
    if (n == 0) return TAC_OK;
    tac__shared_advance(req);
    return TAC_INPROGRESS;
}

static tac_status step(tac_req *req)
{
    if (req->stage < TAC__OPEN) {
        const tac_status s = tac__shared_open(req, &plan);
        if (s != TAC_OK || req->count == 0) return s;
        if (!req->symmetric) (void)turn(req);
    }
    if (req->symmetric) return tac__shared_direct(req, &plan);
    while (tac__shared_arrived(req))
        if (turn(req) == TAC_OK) return TAC_OK;
    return TAC_INPROGRESS;
}

const tac__alg tac__alg_shared_allreduce = {
    .name = "sliced",
    .doc = "shared memory: each rank reduces a slice, a phase a chunk and one",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__shared_wire_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
