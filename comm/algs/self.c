/* self.c: a world of one: the reduction of one array, or a copy. */
#include <string.h>

#include "algs/algs.h"

static int applicable(const tac_comm *c, const tac_req *req)
{
    (void)req;
    return c->size == 1;
}

static double cost(const tac_comm *c, const tac_req *req)
{
    (void)c, (void)req;
    return 0;
}

static tac_status start(tac_req *req)
{
    (void)req;
    return TAC_OK;
}

static tac_status step_reduce(tac_req *req)
{
    req->comm->scratch.srcs[0] = req->src;
    tac__reduce_srcs(req, req->dst, req->count);
    return TAC_OK;
}

static tac_status step_copy(tac_req *req)
{
    if (req->count > 0 && req->src != req->dst)
        memcpy(req->dst, req->src, req->count * req->esize);
    return TAC_OK;
}

static void finish(tac_req *req)
{
    (void)req;
}

static int waits_for(const tac_req *req, int r)
{
    (void)req, (void)r;
    return 0;
}

#define SELF(what, kind, step_fn)            \
    const tac__alg tac__alg_self_##what = {  \
        .name = "self",                      \
        .doc = "one rank: no communication", \
        .coll = kind,                        \
        .applicable = applicable,            \
        .cost = cost,                        \
        .start = start,                      \
        .step = step_fn,                     \
        .finish = finish,                    \
        .waits_for = waits_for,              \
    }

SELF(allreduce, TAC_COLL_ALLREDUCE, step_reduce);
SELF(reduce_scatter, TAC_COLL_REDUCE_SCATTER, step_reduce);
SELF(allgather, TAC_COLL_ALLGATHER, step_copy);
SELF(broadcast, TAC_COLL_BROADCAST, step_copy);
SELF(barrier, TAC_COLL_BARRIER, step_copy);
