/* hierarchical.c: allreduce within hosts and between them.
 *
 * In chunks: the ranks of a host reduce-scatter, so that each of them has a
 * slice of the host's sum; each slice is allreduced across hosts by the ranks
 * with the same place (cross); the ranks of a host all-gather. So every local
 * rank carries a slice across the network, each byte crosses as often as with
 * one rank a host, and the work in memory hides behind the wire: on the local
 * communicator the order is IN 0, IN 1, OUT 0, IN 2, OUT 1, ..., the same on
 * all ranks of a host, while the cross allreduces follow one another.
 *
 * Hosts with different numbers of ranks: the first L places, which all hosts
 * have, carry; a host with more ranks allreduces locally, and each carrier
 * broadcasts its slice. What does not divide by the slices (the tail) is
 * allreduced locally and carried by the last carrier behind its own slice.
 *
 * Steps: those of the three parts. Bytes sent to other hosts by a host of h:
 * 2 n (h-1)/h, whatever the number of its ranks. Scratch: the children's.
 * Order: ranks of a host in rank order, then hosts as the cross algorithm does
 * (direct: in the order of their lowest ranks). Rounding: f16 and bf16 once a
 * level. avg of f16 and bf16 averages at both levels (hosts with equally many
 * ranks only); else sums are divided at the end, in f32 before the first
 * rounding on a wire if the number of ranks is a power of two. Wire formats and
 * error feedback apply to the cross level: one rounding of each host's slice
 * and one of the result.
 *
 * Failures of the children become the parent's; see levels.h. */
#include "algs/hierarchical.h"

#include <limits.h>

#include "algs/partial.h"
#include "cost.h"

/* Cross allreduces that may wait while the first runs. */
enum { AHEAD = 1, CROSSING = 4 };

/* Only the parent's timeout counts. */
#define NO_TIMEOUT (INT_MAX / 2)

typedef struct program {
    tac__hier cut;
    size_t at;                /* local: 2i: IN i, 2i+1: OUT i-AHEAD */
    int item;                 /* ... and its part */
    size_t crossed;           /* cross allreduces submitted */
    size_t returned;          /* ... and complete */
    tac_req *local;           /* under way, or NULL */
    tac_req *cross[CROSSING]; /* of chunk k: [k % CROSSING] */
} program;

static program *program_of(const tac_req *req)
{
    return tac__direct_program(req);
}

/* ---- what it can do, and what it costs -------------------------------------
 */

static int applicable(const tac_comm *c, const tac_req *req)
{
    const int scaled = req->prescale != 1.0 || req->postscale != 1.0;
    const int narrow = req->dtype == TAC_I32 || req->dtype == TAC_U8;
    const int half = req->dtype == TAC_F16 || req->dtype == TAC_BF16;
    if (!c->levels || req->codec) return 0;
    if (narrow && (scaled || req->op == TAC_AVG)) return 0;
    return !half || req->op != TAC_AVG || c->levels->even;
}

static double cost(const tac_comm *c, const tac_req *req)
{
    const tac__cost_params *p = tac__cost_of(c);
    const double n = (double)(req->count * req->esize), h = c->hosts;
    const double wire = (double)tac__cost_bytes(req);
    const double k = tac__cost_ranks_a_host(c);
    /* The local parts of the first and the last chunk are not hidden. */
    const double shown = n < 2e6 ? n : 2e6;
    return p->network.alpha * 3 + p->network.beta * 2 * wire * (h - 1) / h +
           p->local.alpha * 4 * k + p->local.beta * 2 * shown;
}

static tac_coll_opt options(const tac_req *req, double prescale,
                            double postscale)
{
    tac_coll_opt o = TAC_COLL_OPT_INIT;
    o.prescale = prescale;
    o.postscale = postscale;
    o.tag = req->tag;
    o.timeout_ms = NO_TIMEOUT;
    return o;
}

static tac_status child_failed(tac_req *req, tac_comm *child)
{
    char text[TAC__ERROR];
    const tac_status s = tac_comm_error(child, text, sizeof text);
    return tac__comm_poison(req->comm, s, "%s", text);
}

static tac_status submit(tac_req *req, tac_comm *child, tac_req *want,
                         const tac_coll_opt *o, tac_req **out)
{
    const size_t bytes = want->count * tac_dtype_size(want->dtype);
    const int all = want->coll == TAC_COLL_REDUCE_SCATTER;
    want->bytes_logical = all ? bytes * (size_t)child->size : bytes;
    const tac_status s = tac__coll_submit(child, want, o, out);
    return s < 0 && tac__comm_status(child) < 0 ? child_failed(req, child) : s;
}

static tac_status submit_in(tac_req *req, tac_req *want)
{
    const double by =
        tac__hier_division(req) == TAC__DIVIDE_BEFORE ? req->comm->size : 1;
    const tac_coll_opt o = options(req, req->prescale, 1.0 / by);
    return submit(req, req->comm->levels->local, want, &o,
                  &program_of(req)->local);
}

static tac_status submit_out(tac_req *req, tac_req *want)
{
    const tac_coll_opt o = options(req, 1.0, 1.0);
    return submit(req, req->comm->levels->local, want, &o,
                  &program_of(req)->local);
}

static tac_status submit_cross(tac_req *req, size_t i)
{
    program *g = program_of(req);
    const tac__levels *l = req->comm->levels;
    const int after = tac__hier_division(req) == TAC__DIVIDE_AFTER;
    const tac_coll_opt o = options(req, 1.0, after ? 1.0 : req->postscale);
    tac_req want = tac__hier_cross(req, g->cut, i);
    return submit(req, l->cross, &want, &o, &g->cross[i % CROSSING]);
}

/* ---- taking the children on ------------------------------------------------
 */

/* OK: *r is complete, released and NULL (a NULL one is complete). */
static tac_status take(tac_req *req, tac_comm *child, tac_req **r, int counts)
{
    tac_req *part_of = *r;
    if (!part_of) return TAC_OK;
    if (!atomic_load(&part_of->done)) return TAC_INPROGRESS;
    *r = NULL;
    req->moved = 1;
    req->between_hosts += part_of->between_hosts;
    req->cpu_ns += part_of->cpu_ns;
    if (counts) req->wait_ns += part_of->wait_ns;
    if (tac_wait(part_of, 0) == TAC_OK) return TAC_OK;
    return child_failed(req, child);
}

/* The slice is complete: what was left to be done to it. */
static void divide(tac_req *req, size_t i)
{
    const tac__range r = tac__hier_carried(req, program_of(req)->cut, i,
                                           req->comm->levels->local->rank);
    char *x = req->dst + r.begin * req->esize;
    const tac__work w = tac__work_begin((r.end - r.begin) * req->esize);
    tac__partial_store(req, x, r.end - r.begin, x);
    tac__work_end(req, w);
}

static tac_status take_cross(tac_req *req, int *did)
{
    program *g = program_of(req);
    const tac__levels *l = req->comm->levels;
    while (g->returned < g->crossed) {
        const size_t i = g->returned;
        const tac_status s = take(req, l->cross, &g->cross[i % CROSSING], 1);
        if (s < 0) return s;
        if (s == TAC_INPROGRESS) return TAC_OK;
        if (tac__hier_division(req) == TAC__DIVIDE_AFTER) divide(req, i);
        g->returned++;
        *did = 1;
    }
    return TAC_OK;
}

static int carries(const tac__levels *l)
{
    return l->cross != NULL;
}

/* IN i is complete. */
static tac_status cross(tac_req *req, size_t i)
{
    program *g = program_of(req);
    const tac__levels *l = req->comm->levels;
    if (!carries(l)) return TAC_OK;
    const tac__range r = tac__hier_carried(req, g->cut, i, l->local->rank);
    g->crossed++;
    return r.begin == r.end ? TAC_OK : submit_cross(req, i);
}

/* Starts the next part of IN or OUT; *began 0: it has to wait; position at the
 * end of the sequence: nothing is left. */
static tac_status next_local(tac_req *req, int *began)
{
    program *g = program_of(req);
    const tac__levels *l = req->comm->levels;
    const size_t i = g->at / 2;
    tac_req want;
    *began = 1;
    if (g->at % 2 == 0) {
        if (i < g->cut.chunks && tac__hier_in(req, g->cut, i, g->item, &want)) {
            g->item++;
            return submit_in(req, &want);
        }
        if (i < g->cut.chunks) TAC_TRY(cross(req, i));
    } else if (i >= AHEAD) {
        if (carries(l) && g->returned <= i - AHEAD) {
            *began = 0;
            return TAC_OK;
        }
        if (tac__hier_out(req, g->cut, i - AHEAD, g->item, &want)) {
            g->item++;
            return submit_out(req, &want);
        }
    }
    g->at++;
    g->item = 0;
    return TAC_OK;
}

static tac_status advance(tac_req *req)
{
    program *g = program_of(req);
    const tac__levels *l = req->comm->levels;
    const size_t end = 2 * (g->cut.chunks + AHEAD);
    for (int did = 1; did;) {
        did = 0;
        if (carries(l)) TAC_TRY(take_cross(req, &did));
        const tac_status s = take(req, l->local, &g->local, !carries(l));
        if (s < 0) return s;
        if (s == TAC_OK && g->at < end) {
            int began = 0;
            TAC_TRY(next_local(req, &began));
            did |= began;
        }
    }
    return g->at == end && !g->local ? TAC_OK : TAC_INPROGRESS;
}

static tac_status start(tac_req *req)
{
    TAC_TRY(tac__direct_start(req));
    program_of(req)->cut = tac__hier_cut(req);
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    const tac__levels *l = req->comm->levels;
    if (req->stage < TAC__DIRECT_BEGIN) {
        const tac_status s = tac__direct_check(req);
        if (s != TAC_OK) return s;
        req->stage = TAC__DIRECT_BEGIN;
        if (req->count == 0) return TAC_OK;
        TAC_TRY(advance(req));
    }
    if (l->cross && tac__comm_step(l->cross)) req->moved = 1;
    if (tac__comm_step(l->local)) req->moved = 1;
    return advance(req);
}

/* ---- ending ----------------------------------------------------------------
 */

static void release(tac_req **r)
{
    if (*r) tac_wait(*r, 0);
    *r = NULL;
}

/* With requests under way the parent has failed: they fail too. */
static void finish(tac_req *req)
{
    program *g = program_of(req);
    if (tac__comm_status(req->comm) < 0) tac__levels_fail(req->comm);
    release(&g->local);
    for (int i = 0; i < CROSSING; i++) release(&g->cross[i]);
    tac__direct_finish(req);
}

static int child_waits_for(tac_comm *child, const int *ranks, int r)
{
    int waits = 0;
    if (!child || pthread_mutex_trylock(&child->lock) != 0) return 0;
    for (int i = 0; i < child->size && child->head; i++)
        if (ranks[i] == r && i != child->rank && child->head->started)
            waits = child->head->alg->waits_for(child->head, i);
    pthread_mutex_unlock(&child->lock);
    return waits;
}

static int waits_for(const tac_req *req, int r)
{
    const tac__levels *l = req->comm->levels;
    return tac__direct_waits_for(req, r) ||
           child_waits_for(l->local, l->local_ranks, r) ||
           child_waits_for(l->cross, l->cross_ranks, r);
}

const tac__alg tac__alg_hierarchical_allreduce = {
    .name = "hierarchical",
    .doc = "messages: within each host, a slice a rank between hosts, within",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = finish,
    .waits_for = waits_for,
    .reorders = 1,
};
