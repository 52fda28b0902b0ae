/* shared_allgather.c: staged all-gather in shared memory.
 *
 * For each chunk: copy in; wait for all; copy everybody's out. One phase a
 * chunk; reads (p + 1) n, writes (p + 1) n bytes. Symmetric sources are read
 * where they are, and one more phase tells their owners. */
#include <string.h>

#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const double n = (double)(req->count * req->esize);
    return tac__shared_cost(1, (1.0 + c->size) * n);
}

static tac_status start(tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return tac__shared_enter(req, (tac__shared_need){bytes, 0},
                             tac__shared_stage_src);
}

/* `bytes` of each rank, at byte `at` of its block; rank r's are at from(r). */
typedef const char *from_fn(const tac_req *req, int r);
static void copy_out(tac_req *req, size_t at, size_t bytes, from_fn *from)
{
    tac_comm *c = req->comm;
    if (bytes == 0) return;
    const tac__work w = tac__work_begin(bytes * (size_t)c->size);
    for (int i = 0; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        char *dst = req->dst + (size_t)r * req->count * req->esize + at;
        const char *src = from(req, r);
        if (dst != src) memcpy(dst, src, bytes);
    }
    tac__work_end(req, w);
}

static const char *from_slot(const tac_req *req, int r)
{
    return r == req->comm->rank ? req->src + req->pos * req->esize
                                : tac__domain_slot(req->comm->domain, r);
}

static void consume(tac_req *req)
{
    copy_out(req, req->pos * req->esize, req->chunk * req->esize, from_slot);
}

static void direct(tac_req *req)
{
    copy_out(req, 0, req->count * req->esize, tac__shared_src);
}

static const tac__shared_plan plan = {tac__shared_stage_src, consume, direct};

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
