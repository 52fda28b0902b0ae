/* shared_allgather.c: staged all-gather in shared memory.
 *
 * For each chunk of every block: copy in; wait for all; copy everybody's out.
 * One phase a chunk; a rank reads (p + 1) n, writes (p + 1) n bytes. Symmetric
 * sources are read where they are, and one more phase tells their owners. */
#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize);
    return tac__shared_cost(c, 1, (1.0 + c->size) * n);
}

/* Elements [at, at + n) of every rank's block; rank r's are at from(r). */
typedef const char *from_fn(const tac_req *req, int r, size_t at);
static void copy_out(tac_req *req, size_t at, size_t n, from_fn *from)
{
    const tac_comm *c = req->comm;
    const int stream =
        tac__shared_streams(req, req->count * req->esize * (size_t)c->size);
    for (int i = 0; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        char *dst = req->dst + ((size_t)r * req->count + at) * req->esize;
        const char *src = from(req, r, at);
        if (dst != src) c->kernels->copy(dst, src, n * req->esize, stream);
    }
}

static const char *from_slot(const tac_req *req, int r, size_t at)
{
    return r == req->comm->rank ? req->src + at * req->esize
                                : tac__shared_slot(req, r, at);
}

static void consume(tac_req *req, size_t at, size_t n)
{
    copy_out(req, at, n, from_slot);
}

static const char *from_source(const tac_req *req, int r, size_t at)
{
    return tac__shared_src(req, r) + at * req->esize;
}

static void direct(tac_req *req)
{
    copy_out(req, 0, req->count, from_source);
}

static const tac__shared_plan plan = {tac__shared_stage_src, consume, direct};

static tac_status start(tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0},
                             tac__shared_fit(req, 1), &plan);
}

static tac_status step(tac_req *req)
{
    return tac__shared_run(req, &plan);
}

const tac__alg tac__alg_shared_allgather = {
    .name = "staged",
    .doc = "shared memory: copy in, copy everybody's out, one phase a chunk",
    .coll = TAC_COLL_ALLGATHER,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
