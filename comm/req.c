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

/* What a rank contributes, encoded. Codecs count their own. */
static size_t wire_bytes(const tac_req *req)
{
    return req->wire && req->comm->size > 1
               ? req->wire->bytes(req->bytes_logical / req->esize)
               : req->bytes_logical;
}

tac_req *tac__req_new(tac_comm *c, const tac_req *want)
{
    tac_req *req = c->store;
    if (req)
        c->store = req->next;
    else
        req = malloc(sizeof *req);
    if (!req) return NULL;
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
    if (c->head == req) tac__engine_activity(c->engine, 1);
    c->tail = req;
}

tac_status tac__req_submit(tac_req *req, tac_req **out)
{
    tac_comm *c = req->comm;
    const int first = c->head == NULL;
    req->seq = c->next_seq++;
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

static void detach_head(tac_comm *c)
{
    c->head = c->head->next;
    if (c->head) return;
    c->tail = NULL;
    tac__engine_activity(c->engine, -1);
}

void tac__req_complete(tac_req *req, tac_status s)
{
    tac_comm *c = req->comm;
    const uint64_t now = tac_clock_ns();
    TAC_ASSERT(c->head == req);
    if (req->started) {
        req->alg->finish(req);
        tac_trace_span(c->ctx, TAC_LANE_COMM, tac_coll_name(req->coll),
                       req->started_ns, now, (int64_t)req->bytes_logical);
    }
    if (s == TAC_OK) tac__stats_count(req, now);
    detach_head(c);
    req->status = s;
    atomic_store(&req->done, 1);
    tac__bell_ring(c->bell); /* a thread of this rank may sleep for it */
}

void tac__req_fail_all(tac_comm *c)
{
    while (c->head) tac__req_complete(c->head, tac__comm_status(c));
}

void tac__req_orphan_all(tac_comm *c)
{
    if (c->head) tac__req_fail_all(c);
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
        if (tac_clock_ns() >= until_ns) tac__report_timeout(req, timeout_ms);
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
    char what[48] = "", tag[32] = "";
    if (req->coll != TAC_COLL_BARRIER)
        snprintf(what, sizeof what, " (%s x %zu, %zu bytes",
                 tac_dtype_name(req->dtype), req->count, req->bytes_logical);
    if (req->tag && *what)
        snprintf(tag, sizeof tag, ", tag %" PRIu64, req->tag);
    snprintf(buf, bytes, "%s #%" PRIu64 "%s%s%s", tac_coll_name(req->coll),
             req->seq, what, tag, *what ? ")" : "");
}
