/* alg_table.c: the algorithms, and the choice between them.
 *
 * A new algorithm is one file in algs/ and one line here; the tests run every
 * line. The cheapest applicable one is taken: applicable and cost see only what
 * is equal on all ranks. */
#include <string.h>

#include "algs/algs.h"
#include "comm_impl.h"

const tac__alg *const tac__algs[] = {
    &tac__alg_self_allreduce,
    &tac__alg_self_reduce_scatter,
    &tac__alg_self_allgather,
    &tac__alg_self_broadcast,
    &tac__alg_self_barrier,
    &tac__alg_shared_flat,
    &tac__alg_shared_allreduce,
    &tac__alg_shared_reduce_scatter,
    &tac__alg_shared_allgather,
    &tac__alg_shared_broadcast,
    &tac__alg_shared_barrier,
    &tac__alg_direct_allreduce,
    &tac__alg_direct_reduce_scatter,
    &tac__alg_direct_allgather,
    &tac__alg_tree_broadcast,
    &tac__alg_dissemination_barrier,
    NULL,
};

static const tac__alg *by_name(const tac_comm *c, const tac_req *req,
                               const char *name)
{
    for (size_t i = 0; tac__algs[i]; i++)
        if (tac__algs[i]->coll == req->coll &&
            strcmp(tac__algs[i]->name, name) == 0 &&
            tac__algs[i]->applicable(c, req))
            return tac__algs[i];
    return NULL;
}

static const tac__alg *cheapest(const tac_comm *c, const tac_req *req)
{
    const tac__alg *best = NULL;
    double least = 0;
    for (size_t i = 0; tac__algs[i]; i++) {
        const tac__alg *a = tac__algs[i];
        if (a->coll != req->coll || !a->applicable(c, req)) continue;
        const double cost = a->cost(c, req);
        if (best && cost >= least) continue;
        best = a;
        least = cost;
    }
    return best;
}

tac_status tac__alg_choose(tac_comm *c, const tac_req *req, const char *name,
                           const tac__alg **out)
{
    *out = name ? by_name(c, req, name) : cheapest(c, req);
    if (*out) return TAC_OK;
    return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                    "%s: no algorithm%s%s on transport %s",
                    tac_coll_name(req->coll), name ? " " : "", name ? name : "",
                    c->transport->name);
}
