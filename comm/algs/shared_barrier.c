/* shared_barrier.c: one empty phase. */
#include "algs/shared.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    (void)req;
    return tac__shared_cost(c, 1, 0);
}

static const tac__shared_plan plan = {NULL, NULL, NULL};

static tac_status start(tac_req *req)
{
    return tac__shared_enter(req, (tac__shared_need){0, 0}, 1, &plan);
}

static tac_status step(tac_req *req)
{
    return tac__shared_open(req, &plan);
}

const tac__alg tac__alg_shared_barrier = {
    .name = "phase",
    .doc = "shared memory: one empty phase",
    .coll = TAC_COLL_BARRIER,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
