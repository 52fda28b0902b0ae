/* folded.c: see folded.h. A chunk is as long as a message and half the staging
 * allow; chunks follow one another. */
#include "algs/folded.h"

/* Stages around the rounds. */
enum { NEXT = TAC__DIRECT_BEGIN, FOLD, ROUNDS, UNFOLD };

tac__folded *tac__folded_program(const tac_req *req)
{
    return tac__direct_program(req);
}

tac_status tac__folded_start(tac_req *req)
{
    const tac_comm *c = req->comm;
    TAC_TRY(tac__direct_start(req));
    tac__folded *g = tac__folded_program(req);
    const size_t room = tac__lines_down(c->scratch.staging_bytes / 2);
    g->most = tac__direct_fit(req, tac__partial_of(req).esize,
                              tac__min(room, c->config.message_bytes));
    return TAC_OK;
}

char *tac__folded_result(const tac_req *req)
{
    return req->dst + tac__folded_program(req)->pos * req->esize;
}

char *tac__folded_sums(const tac_req *req)
{
    return tac__partial_of(req).dtype == req->dtype
               ? tac__folded_result(req)
               : req->comm->scratch.staging;
}

char *tac__folded_arrivals(const tac_req *req)
{
    const tac__scratch *s = &req->comm->scratch;
    return s->staging + tac__lines_down(s->staging_bytes / 2);
}

void tac__folded_add(tac_req *req, size_t at, size_t n, int peer)
{
    const size_t esize = tac__partial_of(req).esize;
    char *sums = tac__folded_sums(req) + at * esize;
    const char *got = tac__folded_arrivals(req);
    const tac__work w = tac__work_begin(n * esize);
    if (peer < req->comm->rank)
        tac__partial_combine(req, sums, got, sums, n);
    else
        tac__partial_combine(req, sums, sums, got, n);
    tac__work_end(req, w);
}

void tac__folded_finish(tac_req *req, size_t at, size_t n)
{
    const size_t esize = tac__partial_of(req).esize;
    const tac__work w = tac__work_begin(n * esize);
    tac__partial_store(req, tac__folded_sums(req) + at * esize, n,
                       tac__folded_result(req) + at * req->esize);
    tac__work_end(req, w);
}

static void load(tac_req *req)
{
    const tac__folded *g = tac__folded_program(req);
    const tac__work w = tac__work_begin(g->n * req->esize);
    tac__partial_load(req, g->pos, g->n, tac__folded_sums(req));
    tac__work_end(req, w);
}

static tac_status begin_chunk(tac_req *req)
{
    const tac_comm *c = req->comm;
    const tac__fold f = tac__fold_of(c);
    tac__folded *g = tac__folded_program(req);
    const size_t bytes = g->n * tac__partial_of(req).esize;
    g->mask = g->half = 0;
    load(req);
    req->stage = FOLD;
    if (f.id < 0)
        return tac__direct_send(req, c->rank + 1, tac__folded_sums(req), bytes);
    if (tac__fold_doubled(c, f))
        return tac__direct_recv(req, c->rank - 1, tac__folded_arrivals(req),
                                bytes);
    return TAC_OK;
}

static tac_status after_fold(tac_req *req)
{
    const tac_comm *c = req->comm;
    const tac__fold f = tac__fold_of(c);
    const tac__folded *g = tac__folded_program(req);
    if (f.id < 0) {
        req->stage = UNFOLD;
        return tac__direct_recv(req, c->rank + 1, tac__folded_result(req),
                                g->n * req->esize);
    }
    if (tac__fold_doubled(c, f)) tac__folded_add(req, 0, g->n, c->rank - 1);
    req->stage = ROUNDS;
    return TAC_OK;
}

static tac_status unfold(tac_req *req)
{
    const tac_comm *c = req->comm;
    const tac__folded *g = tac__folded_program(req);
    req->stage = UNFOLD;
    if (!tac__fold_doubled(c, tac__fold_of(c))) return TAC_OK;
    return tac__direct_send(req, c->rank - 1, tac__folded_result(req),
                            g->n * req->esize);
}

/* Called when nothing is under way. */
static tac_status next(tac_req *req, int *done, tac__advance_fn *round)
{
    tac__folded *g = tac__folded_program(req);
    int whole = 0;
    switch (req->stage) {
    case FOLD: return after_fold(req);
    case ROUNDS:
        TAC_TRY(round(req, &whole));
        return whole ? unfold(req) : TAC_OK;
    case UNFOLD: g->pos += g->n; break;
    default: break; /* the first chunk */
    }
    g->n = tac__min(g->most, req->count - g->pos);
    *done = g->n == 0;
    return *done ? TAC_OK : begin_chunk(req);
}

tac_status tac__folded_step(tac_req *req, tac__advance_fn *round)
{
    for (int done = 0; !done;) {
        const tac_status s = req->stage < TAC__DIRECT_BEGIN
                                 ? tac__direct_check(req)
                                 : tac__direct_wait(req);
        if (s != TAC_OK) return s;
        if (req->stage < TAC__DIRECT_BEGIN) req->stage = NEXT;
        TAC_TRY(next(req, &done, round));
    }
    return TAC_OK;
}
