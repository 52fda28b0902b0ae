/* req.c: the life of a request: submitted, driven, complete, released.
 *
 * Requests are kept for reuse, so that a run in steady state allocates
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm_impl.h"
#include "tacit/clock.h"
#include "tacit/trace.h"

#define AT_ONCE 32

/* What a rank contributes, encoded. Codecs count their own. */
static size_t wire_bytes(const tac_req *req)
{
    return req->wire && req->comm->size > 1
               ? req->wire->bytes(req->bytes_logical / req->esize)
               : req->bytes_logical;
}

/* Several at once: how many are under way together depends on who was how fast,
 * and a later step with one more of them shall not allocate. */
static void fill_store(tac_comm *c)
{
    for (int i = 0; i < AT_ONCE; i++) {
        tac_req *req = malloc(sizeof *req);
        if (!req) return;
        req->next = c->store;
        c->store = req;
    }
}

tac_req *tac__req_new(tac_comm *c, const tac_req *want)
{
    if (!c->store) fill_store(c);
    tac_req *req = c->store;
    if (!req) return NULL;
    c->store = req->next;
    *req = *want;
    if (!req->codec) req->bytes_wire = wire_bytes(req);
    req->older = c->live;
    if (c->live) c->live->newer = req;
    c->live = req;
    return req;
}

static void release(tac_req *req)
{
    tac_comm *c = req->comm;
    if (!c) { /* the communicator is gone */
        free(req);
        return;
    }
    pthread_mutex_lock(&c->lock);
    if (req->newer)
        req->newer->older = req->older;
    else
        c->live = req->older;
    if (req->older) req->older->newer = req->newer;
    req->next = c->store;
    c->store = req;
    pthread_mutex_unlock(&c->lock);
}

static void append(tac_comm *c, tac_req *req)
{
    if (c->tail)
        c->tail->next = req;
    else
        c->head = req;
    c->tail = req;
    tac__comm_activity(c);
}

tac_status tac__req_submit(tac_req *req, tac_req **out)
{
    tac_comm *c = req->comm;
    const int first = c->head == NULL;
    req->seq = c->next_seq++;
    tac__note_submitted(req);
    append(c, req);
    pthread_mutex_unlock(&c->lock);
    if (c->config.progress == TAC_PROGRESS_THREAD) {
        tac__engine_notify(c->engine);
        tac__bell_ring(c->bell);
    } else if (first) {
        tac__comm_step(c); /* those behind others are started by progress */
    }
    *out = req;
    return TAC_OK;
}

static void detach(tac_comm *c, tac_req *req)
{
    if (tac__req_is_p2p(req)) {
        tac__p2p_detach(c, req);
        return;
    }
    TAC_ASSERT(c->head == req);
    c->head = req->next;
    if (!c->head) c->tail = NULL;
    tac__comm_activity(c);
}

void tac__req_complete(tac_req *req, tac_status s)
{
    tac_comm *c = req->comm;
    const uint64_t now = tac_clock_ns();
    if (req->started) {
        req->alg->finish(req);
        tac_trace_span(c->ctx, TAC_LANE_COMM, tac_coll_name(req->coll),
                       req->started_ns, now, (int64_t)req->bytes_logical);
    }
    if (s == TAC_OK) tac__stats_count(req, now);
    tac__note_completed(req, s, now);
    detach(c, req);
    req->status = s;
    atomic_store(&req->done, 1);
    tac__bell_ring(c->bell); /* a thread of this rank may sleep for it */
}

void tac__req_fail_all(tac_comm *c)
{
    while (c->head) tac__req_complete(c->head, tac__comm_status(c));
    while (c->p2p.first) tac__req_complete(c->p2p.first, tac__comm_status(c));
}

void tac__req_orphan_all(tac_comm *c)
{
    if (c->busy) tac__req_fail_all(c);
    for (tac_req *req = c->live; req; req = req->older) req->comm = NULL;
    while (c->store) {
        tac_req *req = c->store;
        c->store = req->next;
        free(req);
    }
}

static int is_done(tac_req *req)
{
    return atomic_load(&req->done);
}

static void drive_once(tac_comm *c)
{
    const int own = c->config.progress == TAC_PROGRESS_CALLER;
    if (!(own && tac__comm_step(c)) && !tac__engine_step(c->engine, c))
        tac__watch(c);
}

tac_status tac_test(tac_req *req, int *done)
{
    if (!is_done(req) && req->comm) drive_once(req->comm);
    *done = is_done(req);
    return *done ? req->status : TAC_OK;
}

static void wait_until(tac_req *req, uint64_t until_ns, int timeout_ms)
{
    tac_comm *c = req->comm;
    const int drive = c->config.progress == TAC_PROGRESS_CALLER;
    tac__rest rest = {0};
    while (!is_done(req)) {
        if ((drive && tac__comm_step(c)) || tac__engine_step(c->engine, c)) {
            rest.n = 0;
            continue;
        }
        tac__comm_rest(c, &rest, req, drive, until_ns);
        if (until_ns != UINT64_MAX && tac_clock_ns() >= until_ns)
            tac__report_timeout(req, timeout_ms);
    }
}

tac_status tac_wait(tac_req *req, int timeout_ms)
{
    if (!req) return TAC_OK;
    if (req->comm && !is_done(req)) {
        const uint64_t from = tac_clock_ns();
        const uint64_t until = timeout_ms > 0
                                   ? from + (uint64_t)timeout_ms * 1000000u
                                   : UINT64_MAX;
        wait_until(req, until, timeout_ms);
        tac__stats_exposed(req, tac_clock_ns() - from);
    }
    const tac_status s = req->status;
    release(req);
    return s;
}

void tac__req_describe(const tac_req *req, char *buf, size_t bytes)
{
    char what[64] = "", tag[32] = "", peer[32] = "";
    const int sends = req->coll == TAC_COLL_SEND;
    if (req->coll != TAC_COLL_BARRIER)
        snprintf(what, sizeof what, " (%s x %zu, %zu bytes",
                 tac_dtype_name(req->dtype), req->count,
                 tac__req_is_p2p(req) ? req->count * req->esize
                                      : req->bytes_logical);
    if (tac__req_is_p2p(req))
        snprintf(peer, sizeof peer, " %s rank %d", sends ? "to" : "from",
                 req->root);
    if (req->tag && *what)
        snprintf(tag, sizeof tag, ", tag %" PRIu64, req->tag);
    snprintf(buf, bytes, "%s #%" PRIu64 "%s%s%s%s", tac_coll_name(req->coll),
             req->seq, peer, what, tag, *what ? ")" : "");
}
