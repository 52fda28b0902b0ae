/* What follows each attempt in the local modes, and the end. */
#include "local.h"

#include <math.h>

#include "replica_impl.h"
#include "tacit/clock.h"
#include "tacit/trace.h"

/* What a leader tells its worker after an attempt. */
typedef struct news {
    int32_t status, changed, late, clean;
} news;

static tac_status broadcast(tac_replica *r, void *p, size_t n, tac_dtype dtype)
{
    tac_req *req = NULL;

    TAC_TRY(tac_broadcast(r->worker, p, n, dtype, 0, NULL, &req));
    return tac_wait(req, 0);
}

/* ---- what localsgd is told ------------------------------------------------
 */

/* Intervals by the learning rate go by attempts, as all clocks do, so that they
 * are known in advance; else it is the rate of this attempt. */
static double rate(const tac_replica *r)
{
    const tac__local *l = r->local;
    const int applied = r->scaling.skipped == l->skipped;
    const uint64_t steps = tac__replica_applied(r);

    if (l->config.schedule.kind == TAC_SYNC_QSR)
        return tac__replica_rate(r, r->attempts);
    return tac__replica_rate(r, applied && steps > 0 ? steps : steps + 1);
}

/* Only one schedule looks at losses, and to know one the host has to wait. */
static tac_status loss_of(tac_replica *r, int computed, double *out)
{
    *out = NAN;
    if (!computed || r->config->skip_compute ||
        r->local->config.schedule.kind != TAC_SYNC_ADACOMM)
        return TAC_OK;
    return tac__history_last(r, out);
}

static tac_status lead(tac_replica *r, double samples, int computed, news *n)
{
    tac__local *l = r->local;
    tac_local_step s = {.lr = rate(r),
                        .samples = samples,
                        .skipped =
                            !computed || r->scaling.skipped != l->skipped};
    tac_sync_event e = {0};

    TAC_TRY(loss_of(r, computed, &s.loss));
    TAC_TRY(tac_localsgd_step(l->lsgd, &s, &e));
    n->changed = e.synced || e.arrived;
    n->late = e.late;
    n->clean = tac_localsgd_is_clean(l->lsgd);
    return TAC_OK;
}

/* ---- and its worker -------------------------------------------------------
 */

/* The leader's parameters and merged moments are everybody's. */
static tac_status follow(tac_replica *r)
{
    const tac__local *l = r->local;

    if (r->worker) {
        TAC_TRY(broadcast(r, tac_params_values(r->params),
                          tac_params_padded(r->params), TAC_F32));
        for (size_t i = 0; i < l->n_moments; i++)
            TAC_TRY(
                broadcast(r, l->moments[i].data, l->moments[i].count, TAC_F32));
    }
    return tac_replica_refresh(r);
}

/* And why. */
static tac_status share_failure(tac_replica *r, tac_status theirs,
                                tac_status mine)
{
    char text[256] = "";

    if (mine < 0) tac_context_error(r->ctx, text, sizeof text);
    const tac_status s = broadcast(r, text, sizeof text, TAC_U8);
    if (mine < 0) return mine;
    TAC_TRY(s);
    return tac_fail_quiet(r->ctx, theirs, "%.255s", text);
}

/* All ranks of a worker learn how its leader fared before any of them leaves.
 */
static tac_status share(tac_replica *r, news *n, tac_status mine)
{
    n->status = (int32_t)mine;
    if (!r->worker) return mine;
    const tac_status s = broadcast(r, n, sizeof *n / 4, TAC_I32);
    if (mine >= 0) TAC_TRY(s);
    return n->status < 0 ? share_failure(r, (tac_status)n->status, mine)
                         : TAC_OK;
}

static void account(tac_replica *r, uint64_t began, int changed)
{
    const uint64_t now = tac_clock_ns();

    if (!changed) return;
    r->local->sync_s += (double)(now - began) * 1e-9;
    tac_trace_span(r->ctx, TAC_LANE_STEP, "average", began, now,
                   (int64_t)r->attempts);
}

tac_status tac__local_step(tac_replica *r, double samples, int computed)
{
    tac__local *l = r->local;
    const uint64_t began = tac_clock_ns();
    news n = {0};
    tac_status s = TAC_OK;

    if (!l) return TAC_OK;
    if (l->lsgd) s = lead(r, samples, computed, &n);
    TAC_TRY(share(r, &n, s));
    if (n.changed) TAC_TRY(follow(r));
    l->skipped = r->scaling.skipped;
    l->dropping = n.late;
    l->clean = n.clean;
    account(r, began, n.changed);
    return TAC_OK;
}

tac_status tac__local_finish(tac_replica *r)
{
    tac__local *l = r->local;
    const uint64_t began = tac_clock_ns();
    news n = {.changed = 1, .clean = 1};
    tac_status s = TAC_OK;

    if (!l || l->finished) return TAC_OK;
    l->finished = 1;
    if (l->lsgd) {
        n.changed = !tac_localsgd_is_clean(l->lsgd);
        s = tac_localsgd_finish(l->lsgd);
    }
    TAC_TRY(share(r, &n, s));
    if (n.changed) TAC_TRY(follow(r));
    l->clean = 1;
    account(r, began, n.changed);
    return TAC_OK;
}
