/* rabenseifner.c: allreduce by recursive halving and doubling.
 *
 * Ranks whose numbers differ in the highest bit each give the other half of
 * what they have, and add; then the same with a half, a quarter ...; what is
 * then complete is collected in the opposite order.
 *
 * Any number of ranks: the extra ones are folded away first (fold.h). Steps:
 * 2 log2 p, two more if p is no power of two. Bytes sent a rank: 2 n (p-1)/p
 * for a power of two, else up to n more. Scratch: one or two chunks. Order: a
 * tree that joins ranks differing in the highest bit first, lower rank on the
 * left. Rounding: one, at the end (partial.h). No wire formats. Reference:
 * Rabenseifner, 2004; Thakur, Rabenseifner, Gropp, 2005. */
#include "algs/folded.h"
#include "cost.h"

static double cost(const tac_comm *c, const tac_req *req)
{
    const tac__fold f = tac__fold_of(c);
    const double n = (double)(req->count * req->esize);
    const double wide = req->esize == 2 ? 2 * n : n;
    double t = 0, part = 0.5;
    for (int m = f.p2 / 2; m > 0; m /= 2, part /= 2)
        t += tac__cost_pair(c, m, wide * part) +
             tac__cost_pair(c, m, n * part) +
             tac__cost_reduce(c, 2 * wide * part);
    if (f.extra > 0)
        t += tac__cost_pair(c, 1, wide) + tac__cost_pair(c, 1, n) +
             tac__cost_reduce(c, wide);
    return t;
}

/* What number `id` has before the round of `mask`: all before that of p2 / 2.
 */
static tac__range share(const tac_req *req, int id, int mask)
{
    const size_t unit = tac__direct_unit(req);
    tac__range r = {0, tac__folded_program(req)->n};
    for (int m = tac__fold_of(req->comm).p2 / 2; m > mask; m /= 2) {
        const tac__range half =
            tac__part(r.end - r.begin, unit, 2, (id & m) != 0);
        r = (tac__range){r.begin + half.begin, r.begin + half.end};
    }
    return r;
}

static tac_status exchange_halves(tac_req *req, int id, int peer_id)
{
    const tac__folded *g = tac__folded_program(req);
    const int peer = tac__fold_rank(tac__fold_of(req->comm), peer_id);
    const size_t esize = tac__partial_of(req).esize;
    const tac__range mine = share(req, id, g->mask / 2);
    const tac__range theirs = share(req, peer_id, g->mask / 2);
    TAC_TRY(tac__direct_recv(req, peer, tac__folded_arrivals(req),
                             (mine.end - mine.begin) * esize));
    return tac__direct_send(req, peer,
                            tac__folded_sums(req) + theirs.begin * esize,
                            (theirs.end - theirs.begin) * esize);
}

static tac_status exchange_results(tac_req *req, int id, int peer_id)
{
    const tac__folded *g = tac__folded_program(req);
    const int peer = tac__fold_rank(tac__fold_of(req->comm), peer_id);
    const tac__range mine = share(req, id, g->mask / 2);
    const tac__range theirs = share(req, peer_id, g->mask / 2);
    char *dst = tac__folded_result(req);
    TAC_TRY(tac__direct_recv(req, peer, dst + theirs.begin * req->esize,
                             (theirs.end - theirs.begin) * req->esize));
    return tac__direct_send(req, peer, dst + mine.begin * req->esize,
                            (mine.end - mine.begin) * req->esize);
}

static void add_half(tac_req *req, tac__fold f)
{
    const tac__folded *g = tac__folded_program(req);
    const tac__range mine = share(req, f.id, g->mask / 2);
    tac__folded_add(req, mine.begin, mine.end - mine.begin,
                    tac__fold_rank(f, f.id ^ g->mask));
}

/* Masks go down to 1 in the first half and up in the second. */
static tac_status round_of(tac_req *req, int *whole)
{
    const tac__fold f = tac__fold_of(req->comm);
    tac__folded *g = tac__folded_program(req);
    if (!g->half && g->mask > 0) add_half(req, f);
    if (g->half)
        g->mask *= 2;
    else
        g->mask = g->mask ? g->mask / 2 : f.p2 / 2;
    if (!g->half && g->mask == 0) {
        const tac__range mine = share(req, f.id, 0);
        tac__folded_finish(req, mine.begin, mine.end - mine.begin);
        g->half = 1;
        g->mask = 1;
    }
    *whole = g->half && g->mask >= f.p2;
    if (*whole) return TAC_OK;
    return g->half ? exchange_results(req, f.id, f.id ^ g->mask)
                   : exchange_halves(req, f.id, f.id ^ g->mask);
}

static tac_status step(tac_req *req)
{
    return tac__folded_step(req, round_of);
}

const tac__alg tac__alg_rabenseifner = {
    .name = "rabenseifner",
    .doc = "messages: recursive halving, then recursive doubling",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__direct_applicable,
    .cost = cost,
    .start = tac__folded_start,
    .step = step,
    .finish = tac__direct_finish,
    .waits_for = tac__direct_waits_for,
    .reorders = 1,
};
