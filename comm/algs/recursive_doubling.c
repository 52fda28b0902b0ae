/* recursive_doubling.c: allreduce in log2 p rounds: in round k ranks whose
 * numbers differ in bit k exchange all they have and add it.
 *
 * Any number of ranks: the extra ones are folded away first (fold.h). Steps:
 * ceil(log2 p), one or two more if p is no power of two. Bytes sent a rank: n a
 * step. Scratch: one or two chunks. For short messages.
 * Order: a balanced tree over the ranks in rank order, lower ranks on the left,
 * the same on every rank: identical bits. Rounding: one, at the end: f16, bf16
 * and averaged or scaled integers travel as wider partial sums (partial.h: f16
 * sends twice the bytes). No wire formats.
 * Reference: Thakur, Rabenseifner, Gropp, 2005. */
#include "algs/folded.h"
#include "cost.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const tac__fold f = tac__fold_of(c);
    const double n = (double)(req->count * req->esize);
    const double wide = req->esize == 2 ? 2 * n : n;
    double t = 0;
    for (int m = 1; m < f.p2; m *= 2)
        t += tac__cost_pair(c, m, wide) + tac__cost_reduce(c, 2 * wide);
    if (f.extra > 0) t += tac__cost_pair(c, 1, wide) + tac__cost_pair(c, 1, n);
    return t;
}

/* mask: of the round under way; 0: none has been. */
static tac_status round_of(tac_req *req, int *whole)
{
    const tac__fold f = tac__fold_of(req->comm);
    tac__folded *g = tac__folded_program(req);
    const size_t bytes = g->n * tac__partial_of(req).esize;
    if (g->mask > 0)
        tac__folded_add(req, 0, g->n, tac__fold_rank(f, f.id ^ g->mask));
    g->mask = g->mask ? g->mask * 2 : 1;
    if (g->mask >= f.p2) {
        tac__folded_finish(req, 0, g->n);
        *whole = 1;
        return TAC_OK;
    }
    const int peer = tac__fold_rank(f, f.id ^ g->mask);
    TAC_TRY(tac__direct_recv(req, peer, tac__folded_arrivals(req), bytes));
    return tac__direct_send(req, peer, tac__folded_sums(req), bytes);
}

static tac_status step(tac_req *req)
{
    return tac__folded_step(req, round_of);
}

const tac__alg tac__alg_recursive_doubling = {
    .name = "recursive_doubling",
    .doc = "messages: log2 p exchanges of everything, for short messages",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = tac__folded_start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
    .reorders = 1,
};
