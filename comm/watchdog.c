/* watchdog.c: what to say and do when an operation does not move.
 *
 * Two thresholds: stall_warn_ms warns, once an operation, timeout_ms ends it.
 * Looked at only by a rank that finds nothing to do, so it costs a healthy run
 * one clock reading a rest. */
#include <stdio.h>

#include "comm_impl.h"
#include "tacit/clock.h"

/* All ranks of an operation that stays away from one time out together; a few
 * milliseconds apart, the first to say so can tell the others. */
#define STAGGER_NS    UINT64_C(5000000)
#define MOST_STAGGERS 10

static uint64_t stagger_ns(const tac_comm *c)
{
    const int n = c->rank < MOST_STAGGERS ? c->rank : MOST_STAGGERS;
    return (uint64_t)n * STAGGER_NS;
}

/* " 1, 5": ranks without which the operation can't go on, as far as this one
 * sees; " none" if it sees none. Whoever it waits for may itself wait for
 * another: if all those have entered, the ones meant are those that have not.
 */
static void name_missing(const tac_req *req, char *buf, size_t bytes)
{
    const tac_comm *c = req->comm;
    const int n = c->size < TAC__RANKS_SHOWN ? c->size : TAC__RANKS_SHOWN;
    unsigned char in[TAC__RANKS_SHOWN] = {0}, out[TAC__RANKS_SHOWN] = {0};
    int direct = 0, absent = 0;
    for (int r = 0; r < n; r++) {
        if (r == c->rank) continue;
        in[r] = req->alg->waits_for(req, r) != 0;
        out[r] = !tac__req_is_p2p(req) && !tac__doing_entered(c, r, req->seq);
        direct |= in[r] && out[r];
        absent |= out[r];
    }
    tac__name_ranks(direct || !absent ? in : out, n, buf, bytes);
    if (!*buf) snprintf(buf, bytes, " none");
}

static void report_timeout(tac_req *req, int timeout_ms, uint64_t now)
{
    tac_comm *c = req->comm;
    char what[160], missing[120] = " unknown", doing[256], stopped[64];
    const uint64_t from = req->started ? req->started_ns : now;
    tac__req_describe(req, what, sizeof what);
    if (req->started) name_missing(req, missing, sizeof missing);
    tac__doing_all(c, doing, sizeof doing);
    tac__liveness_stopped(&c->liveness, stopped, sizeof stopped);
    tac__comm_poison(c, TAC_ERR_TIMEOUT,
                     "%s timed out on rank %d after %.3f s (timeout %d ms); "
                     "ranks waited for:%s; %s%s; look for a rank that is "
                     "stopped, slow or elsewhere in the program",
                     what, c->rank, (double)(now - from) * 1e-9, timeout_ms,
                     missing, doing, stopped);
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
    char what[160], missing[120], doing[256], stopped[64];
    req->warned = 1;
    tac__req_describe(req, what, sizeof what);
    name_missing(req, missing, sizeof missing);
    tac__doing_all(c, doing, sizeof doing);
    tac__liveness_stopped(&c->liveness, stopped, sizeof stopped);
    tac_log(c->ctx, TAC_LOG_WARN,
            "%s has waited for %.1f s on rank %d (timeout %d ms); ranks waited "
            "for:%s; %s%s",
            what, (double)waited_ns * 1e-9, c->rank, req->timeout_ms, missing,
            doing, stopped);
}

/* Where words are messages, a rank that waits tells its own early enough for
 * the others' reports. */
static void tell_stalled(tac_req *req, uint64_t waited_ns)
{
    const tac_comm *c = req->comm;
    const tac_transport *t = c->transport;
    int after_ms = req->timeout_ms / 4;
    if (req->told || !t->tell || (t->flags & TAC_TRANSPORT_TELLS)) return;
    if (c->config.stall_warn_ms > 0 && c->config.stall_warn_ms / 2 < after_ms)
        after_ms = c->config.stall_warn_ms / 2;
    if (waited_ns < (uint64_t)after_ms * 1000000u) return;
    req->told = 1;
    t->tell(c->link, atomic_load(&((tac_comm *)(uintptr_t)c)->doing));
}

static void check_peers(tac_req *req, uint64_t now)
{
    tac_comm *c = req->comm;
    char what[160], doing[256];
    const int r = tac__liveness_check(&c->liveness, req, now);
    if (r < 0 || tac__comm_listen(c)) return;
    tac__req_describe(req, what, sizeof what);
    tac__doing_all(c, doing, sizeof doing);
    tac__comm_poison(c, TAC_ERR_PEER,
                     "rank %d (process %lld) died: rank %d found out in %s; "
                     "%s; look at that rank's own output, or for the kernel's "
                     "out-of-memory killer (dmesg)",
                     r, (long long)c->peers[r].pid, c->rank, what, doing);
}

/* A rank that has destroyed its communicator will never publish again. */
static void check_left(tac_req *req, uint64_t now)
{
    tac_comm *c = req->comm;
    if (!c->under) return;
    for (int r = 0; r < c->size; r++) {
        if (!atomic_load(&c->under->line[r]->left)) continue;
        if (tac__req_is_p2p(req) ? !tac__p2p_misses(req, r, now)
                                 : tac__doing_finished(c, r, req->seq))
            continue;
        if (tac__comm_listen(c)) return;
        tac__comm_poison(c, TAC_ERR_PEER,
                         "rank %d has left the communicator (destroyed it), "
                         "and rank %d waits for it in %s #%llu",
                         r, c->rank, tac_coll_name(req->coll),
                         (unsigned long long)req->seq);
        return;
    }
}

/* What a peer has told goes before what this rank concludes: a rank that gave
 * up may also have left, or died, meanwhile. */
static void watch_head(tac_req *req)
{
    tac_comm *c = req->comm;
    const uint64_t now = tac_clock_ns();
    const uint64_t waited = now - req->started_ns;
    if (waited > (uint64_t)req->timeout_ms * 1000000u + stagger_ns(c)) {
        if (!tac__comm_listen(c)) report_timeout(req, req->timeout_ms, now);
        return;
    }
    tell_stalled(req, waited);
    if (c->config.stall_warn_ms > 0 && !req->warned &&
        waited > (uint64_t)c->config.stall_warn_ms * 1000000u)
        warn_stalled(req, waited);
    check_left(req, now);
    check_peers(req, now);
}

void tac__watch(tac_comm *c)
{
    if (c->outer_rank) return; /* a hierarchy's child: the parent watches */
    if (pthread_mutex_trylock(&c->lock) != 0) return;
    if (c->head && c->head->started && tac__comm_status(c) == TAC_OK)
        watch_head(c->head);
    for (tac_req *req = c->p2p.first; req && tac__comm_status(c) == TAC_OK;
         req = req->next)
        watch_head(req);
    pthread_mutex_unlock(&c->lock);
}
