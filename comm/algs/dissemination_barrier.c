/* dissemination_barrier.c: ceil(log2 p) rounds; in round k a rank sends an
 * empty message to rank + 2^k and waits for one from rank - 2^k. */
#include "algs/direct.h"
#include "cost.h"

enum { ROUND = TAC__DIRECT_BEGIN };

static double cost(const tac_comm *c, const tac_req *req)
{
    (void)req;
    double t = 0;
    for (int b = 1; b < c->size; b *= 2) t += tac__cost_pair(c, b, 0);
    return t;
}

/* pos counts the distance: 1, 2, 4, ... */
static tac_status begin_round(tac_req *req)
{
    const tac_comm *c = req->comm;
    const int d = (int)req->pos;
    TAC_TRY(tac__direct_recv(req, (c->rank - d + c->size) % c->size, NULL, 0));
    return tac__direct_send(req, (c->rank + d) % c->size, NULL, 0);
}

static tac_status step(tac_req *req)
{
    for (;;) {
        const int checking = req->stage < TAC__DIRECT_BEGIN;
        const tac_status s =
            checking ? tac__direct_check(req) : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        req->pos = checking ? 1 : req->pos * 2;
        req->stage = ROUND;
        if (req->pos >= (size_t)req->comm->size) return TAC_OK;
        TAC_TRY(begin_round(req));
    }
}

const tac__alg tac__alg_dissemination_barrier = {
    .name = "dissemination",
    .doc = "messages: log2 p rounds of empty messages",
    .coll = TAC_COLL_BARRIER,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = tac__direct_start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
};
