/* watchdog.c: what to say and do when an operation does not move.
 *
 * Looked at only by a rank that finds nothing to do, so it costs a healthy run
 * one clock reading a rest. */
#include <stdio.h>

#include "comm_impl.h"
#include "tacit/clock.h"

/* "ranks 1, 5 have not entered", cut after a dozen; "" if none is known. */
static void name_missing(const tac_req *req, char *buf, size_t bytes)
{
    const tac_comm *c = req->comm;
    int n = 0;
    size_t at = 0;
    buf[0] = '\0';
    for (int r = 0; r < c->size; r++) {
        if (r == c->rank || !req->alg->waits_for(req, r)) continue;
        if (n++ >= 12) continue;
        at += (size_t)snprintf(buf + at, bytes - at, "%s %d", n > 1 ? "," : "",
                               r);
    }
    if (n > 0)
        snprintf(buf + at, bytes - at, "%s", n > 12 ? ", ..." : "");
    else
        snprintf(buf, bytes, " none");
}

static void report_timeout(tac_req *req, int timeout_ms, uint64_t now)
{
    tac_comm *c = req->comm;
    char what[160], missing[160] = " unknown";
    const uint64_t from = req->started ? req->started_ns : now;
    tac__req_describe(req, what, sizeof what);
    if (req->started) name_missing(req, missing, sizeof missing);
    tac__comm_poison(c, TAC_ERR_TIMEOUT,
                     "%s timed out on rank %d after %.3f s (timeout %d ms); "
                     "ranks waited for:%s; look for a rank that is stopped, "
                     "slow or elsewhere in the program",
                     what, c->rank, (double)(now - from) * 1e-9, timeout_ms,
                     missing);
}

void tac__report_timeout(tac_req *req, int timeout_ms)
{
    tac_comm *c = req->comm;
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&req->done))
        report_timeout(req, timeout_ms, tac_clock_ns());
    pthread_mutex_unlock(&c->lock);
}

static void warn_stalled(tac_req *req, uint64_t waited_ns)
{
    tac_comm *c = req->comm;
    char what[160], missing[160];
    req->warned = 1;
    tac__req_describe(req, what, sizeof what);
    name_missing(req, missing, sizeof missing);
    tac_log(c->ctx, TAC_LOG_WARN,
            "%s has waited for %.1f s on rank %d; ranks waited for:%s", what,
            (double)waited_ns * 1e-9, c->rank, missing);
}

static void check_peers(tac_req *req, uint64_t now)
{
    tac_comm *c = req->comm;
    char what[160];
    const int r = tac__liveness_check(&c->liveness, req, now);
    if (r < 0) return;
    tac__req_describe(req, what, sizeof what);
    tac__comm_poison(c, TAC_ERR_PEER,
                     "rank %d (process %lld) died: rank %d found out in %s", r,
                     (long long)c->peers[r].pid, c->rank, what);
}

/* A rank that has destroyed its communicator will never publish again. */
static void check_left(tac_req *req)
{
    tac_comm *c = req->comm;
    if (!c->domain) return;
    for (int r = 0; r < c->size; r++) {
        if (!atomic_load(&c->domain->line[r]->left)) continue;
        if (!req->alg->waits_for(req, r)) continue;
        tac__comm_poison(c, TAC_ERR_PEER,
                         "rank %d has left the communicator (destroyed it), "
                         "and rank %d waits for it in %s #%llu",
                         r, c->rank, tac_coll_name(req->coll),
                         (unsigned long long)req->seq);
        return;
    }
}

static void watch_head(tac_req *req)
{
    const tac_comm *c = req->comm;
    const uint64_t now = tac_clock_ns();
    const uint64_t waited = now - req->started_ns;
    if (waited > (uint64_t)req->timeout_ms * 1000000u) {
        report_timeout(req, req->timeout_ms, now);
        return;
    }
    if (c->config.stall_warn_ms > 0 && !req->warned &&
        waited > (uint64_t)c->config.stall_warn_ms * 1000000u)
        warn_stalled(req, waited);
    check_left(req);
    check_peers(req, now);
}

void tac__watch(tac_comm *c)
{
    if (pthread_mutex_trylock(&c->lock) != 0) return;
    if (c->head && c->head->started && tac__comm_status(c) == TAC_OK)
        watch_head(c->head);
    pthread_mutex_unlock(&c->lock);
}
