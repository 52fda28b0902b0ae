/* alg_table.c: the algorithms, and the choice between them.
 *
 * A new algorithm is one file in algs/ and one line here; the tests run every
 * line. The configuration's overrides come first (override.h), then the
 * cheapest applicable one is taken: applicable and cost see only what is equal
 * on all ranks. */
#include <string.h>

#include "algs/algs.h"
#include "choice.h"
#include "comm_impl.h"

const tac__alg *const tac__algs[] = {
    &tac__alg_codec_allreduce,
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
    &tac__alg_recursive_doubling,
    &tac__alg_rabenseifner,
    &tac__alg_ring_allreduce,
    &tac__alg_hierarchical_allreduce,
    &tac__alg_direct_reduce_scatter,
    &tac__alg_ring_reduce_scatter,
    &tac__alg_direct_allgather,
    &tac__alg_ring_allgather,
    &tac__alg_tree_broadcast,
    &tac__alg_scatter_broadcast,
    &tac__alg_dissemination_barrier,
    NULL,
};

static int fits(const tac_comm *c, const tac_req *req, const tac__alg *a)
{
    return a->coll == req->coll && !(c->config.deterministic && a->reorders) &&
           a->applicable(c, req);
}

static const tac__alg *by_name(const tac_comm *c, const tac_req *req,
                               const char *name)
{
    for (size_t i = 0; tac__algs[i]; i++)
        if (strcmp(tac__algs[i]->name, name) == 0 && fits(c, req, tac__algs[i]))
            return tac__algs[i];
    return NULL;
}

/* By the configuration; a rule that can't be followed is passed over. */
static const tac__alg *overridden(const tac_comm *c, const tac_req *req)
{
    const tac__overrides *o = &c->choice->overrides;
    const size_t bytes = req->count * req->esize;
    for (int i = 0; i < o->n; i++) {
        const tac__override *rule = &o->rule[i];
        if (rule->coll != req->coll || bytes < rule->from || bytes > rule->to)
            continue;
        const tac__alg *a = by_name(c, req, rule->algorithm);
        if (a) return a;
    }
    return NULL;
}

static const tac__alg *cheapest(const tac_comm *c, const tac_req *req)
{
    const tac__alg *best = NULL;
    double least = 0;
    for (size_t i = 0; tac__algs[i]; i++) {
        const tac__alg *a = tac__algs[i];
        if (!fits(c, req, a)) continue;
        if (a->reorders && c->domain) continue; /* one host: rank order */
        const double cost = a->cost(c, req);
        if (best && cost >= least) continue;
        best = a;
        least = cost;
    }
    return best;
}

static const tac__alg *best(const tac_comm *c, const tac_req *req)
{
    const tac__alg *a = overridden(c, req);
    return a ? a : cheapest(c, req);
}

/* Why not: there is none, or it can't do this. */
static tac_status refuse(const tac_comm *c, const tac_req *req,
                         const char *name)
{
    int known = 0;
    for (size_t i = 0; name && tac__algs[i]; i++)
        known |= tac__algs[i]->coll == req->coll &&
                 strcmp(tac__algs[i]->name, name) == 0;
    return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                    "%s: no algorithm%s%s on transport %s%s",
                    tac_coll_name(req->coll), name ? " " : "", name ? name : "",
                    c->transport->name,
                    known ? " for this call (dtype, op, wire format, "
                            "deterministic or the placement of ranks)"
                          : "");
}

tac_status tac__alg_choose(tac_comm *c, const tac_req *req, const char *name,
                           const tac__alg **out)
{
    *out = name ? by_name(c, req, name) : best(c, req);
    return *out ? TAC_OK : refuse(c, req, name);
}

tac_status tac_algorithm_list(size_t i, tac_algorithm_info *out)
{
    for (size_t k = 0; k < i; k++)
        if (!tac__algs[k]) return TAC_ERR_ARG;
    if (!tac__algs[i] || !out) return TAC_ERR_ARG;
    *out = (tac_algorithm_info){tac__algs[i]->coll, tac__algs[i]->name,
                                tac__algs[i]->doc};
    return TAC_OK;
}
