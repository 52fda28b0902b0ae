/* reducer_step.c: one step: begin, ready or unused for each gradient, finish.
 *
 * Invariant: buckets start in the order of their indices, each when all its
 * gradients are resolved (ready or unused) and all earlier ones have started;
 * the last resolution also posts the step's verdict. So the sequence of
 * operations is the same on all ranks, whatever the order of readiness.
 * Cost of ready: O(1), two clock reads and one test of the oldest operation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"
#include "reducer_impl.h"

/* ---- begin ----------------------------------------------------------------
 */

static void reset_step(tac_reducer *r)
{
    for (size_t i = 0; i < r->n; ++i) {
        r->params[i].mark = TAC__ABSENT;
        r->params[i].kept = 0;
    }
    for (size_t k = 0; k < r->layout.n_buckets; ++k) {
        r->layout.buckets[k].pending = r->layout.buckets[k].n_params;
        r->layout.buckets[k].stream = NULL;
    }
    r->next = r->resolved = r->head = r->tail = 0;
    r->tail_posted = 0;
    memset(&r->now, 0, sizeof r->now);
    tac__verdict_clear(r);
}

tac_status tac__step_begin(tac_reducer *r, int sync, double grad_scale)
{
    if (r->rebuild_due) TAC_TRY(tac__reducer_rebuild(r));
    reset_step(r);
    r->begun = r->in_step = 1;
    r->sync = sync;
    r->grad_scale = grad_scale;
    return sync && r->config.join ? tac__join_post(r) : TAC_OK;
}

tac_status tac_reducer_begin(tac_reducer *r, int require_sync,
                             double grad_scale)
{
    if (!r) return TAC_ERR_ARG;
    if (r->status) return r->status;
    if (r->in_step)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: begin in the middle of a step; call "
                        "tac_reducer_finish first");
    if (r->joined)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: this rank has joined; call tac_reducer_join "
                        "until it sets more to 0");
    if (!isfinite(grad_scale) || grad_scale <= 0)
        return tac_fail(r->ctx, TAC_ERR_ARG,
                        "reducer: grad_scale is %g; it must be positive and "
                        "finite (1 without loss scaling)",
                        grad_scale);
    return tac__step_begin(r, require_sync != 0, grad_scale);
}

/* ---- ready, unused --------------------------------------------------------
 */

static tac_status check_call(tac_reducer *r, size_t i, const char *call)
{
    if (r->status) return r->status;
    if (i >= r->n)
        return tac_fail(r->ctx, TAC_ERR_ARG,
                        "reducer: %s of parameter %zu, but there are %zu", call,
                        i, r->n);
    if (!r->in_step)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: %s of '%s' outside a step; call "
                        "tac_reducer_begin first",
                        call, r->params[i].name);
    const tac__mark mark = r->params[i].mark;
    if (mark != TAC__ABSENT)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: %s of '%s', which is already marked %s in "
                        "this step; mark each parameter once, when all its "
                        "uses have added to its gradient",
                        call, r->params[i].name,
                        mark == TAC__READY ? "ready" : "unused");
    return TAC_OK;
}

static tac_status start_complete_buckets(tac_reducer *r)
{
    const tac__layout *l = &r->layout;
    while (r->next < l->n_buckets && !l->buckets[r->next].pending)
        TAC_TRY(tac__bucket_start(r, r->next++));
    return r->resolved == r->n && !r->tail_posted ? tac__verdict_post(r)
                                                  : TAC_OK;
}

/* Looks after what is under way, but not at every turn: a weight and its bias
 * get ready within microseconds, and each look may cost a system call. (A start
 * has just looked.) */
#define POLL_GAP_NS UINT64_C(20000)

static tac_status move_along(tac_reducer *r)
{
    const uint64_t now = tac_clock_ns();
    if (now - r->polled_ns < POLL_GAP_NS) return TAC_OK;
    r->polled_ns = now;
    return tac__flight_poll(r);
}

/* Parameter i has its final contents for this step. */
static tac_status resolve(tac_reducer *r, size_t i, tac__mark mark,
                          void *stream)
{
    tac__bucket *b = &r->layout.buckets[r->layout.bucket_of[i]];
    r->params[i].mark = mark;
    if (!r->sync) return TAC_OK;
    r->order[r->resolved++] = i;
    if (stream) b->stream = stream;
    --b->pending;
    const size_t before = r->tail;
    TAC_TRY(start_complete_buckets(r));
    return r->tail == before ? move_along(r) : TAC_OK;
}

tac_status tac_reducer_ready(tac_reducer *r, size_t i, void *stream)
{
    if (!r) return TAC_ERR_ARG;
    TAC_TRY(check_call(r, i, "ready"));
    r->params[i].produced = 1;
    tac__watch_enter(r);
    const tac_status s = resolve(r, i, TAC__READY, stream);
    tac__watch_leave(r);
    return s;
}

/* With find_unused the place's contents come back if no rank has a gradient,
 * so they are kept; the copy's memory stays for later steps. */
static tac_status keep_contents(tac_reducer *r, tac__param *p)
{
    if (!p->count || !r->config.find_unused) return TAC_OK;
    if (!p->saved) p->saved = malloc(p->bytes);
    if (!p->saved)
        return tac_fail(r->ctx, TAC_ERR_NOMEM,
                        "reducer: no memory to keep %zu bytes of the unused "
                        "gradient of '%s'",
                        p->bytes, p->name);
    memcpy(p->saved, p->grad, p->bytes);
    p->kept = 1;
    return TAC_OK;
}

tac_status tac__step_unused(tac_reducer *r, size_t i)
{
    tac__param *p = &r->params[i];
    if (r->sync && !p->produced) {
        TAC_TRY(keep_contents(r, p));
        if (p->count) memset(p->grad, 0, p->bytes);
    }
    return resolve(r, i, TAC__UNUSED, NULL);
}

tac_status tac_reducer_unused(tac_reducer *r, size_t i)
{
    if (!r) return TAC_ERR_ARG;
    TAC_TRY(check_call(r, i, "unused"));
    tac__watch_enter(r);
    const tac_status s = tac__step_unused(r, i);
    tac__watch_leave(r);
    return s;
}

tac_status tac_reducer_progress(tac_reducer *r)
{
    if (!r) return TAC_ERR_ARG;
    if (r->status) return r->status;
    tac__watch_enter(r);
    const tac_status s = tac__flight_poll(r);
    tac__watch_leave(r);
    return s;
}

/* ---- finish ---------------------------------------------------------------
 */

/* Some gradients are missing: what is left starts all the same, so that no
 * other rank waits in vain. */
static tac_status start_incomplete(tac_reducer *r)
{
    tac__verdict_missing(r);
    while (r->next < r->layout.n_buckets)
        TAC_TRY(tac__bucket_start(r, r->next++));
    return tac__verdict_post(r);
}

static void restore_untouched(tac_reducer *r)
{
    for (size_t i = 0; i < r->n; ++i) {
        const tac__param *p = &r->params[i];
        if (p->kept && !tac__used_anywhere(r, i))
            memcpy(p->grad, p->saved, p->bytes);
    }
}

/* The step is over on all ranks; what it was is in the verdicts. */
static tac_status close_step(tac_reducer *r)
{
    size_t *const t = r->last_order;
    if (r->config.find_unused) restore_untouched(r);
    tac__stats_close(r);
    r->last_order = r->order;
    r->n_last_order = r->resolved;
    r->order = t;
    for (size_t i = 0; i < r->n; ++i) r->params[i].produced = 0;
    r->in_step = 0;
    const tac_status s = tac__verdict_read(r);
    if (s == TAC_ERR_INCOMPLETE) return s;
    if (!r->rebuilt && !r->config.no_rebuild) r->rebuild_due = 1;
    return s;
}

static tac_status finish_sync(tac_reducer *r, int timeout_ms)
{
    if (!r->tail_posted)
        TAC_TRY(r->resolved < r->n ? start_incomplete(r)
                                   : start_complete_buckets(r));
    return tac__flight_wait_all(r, timeout_ms);
}

tac_status tac__step_finish(tac_reducer *r, int timeout_ms)
{
    if (!r->sync) {
        r->in_step = 0;
        return TAC_OK;
    }
    tac__watch_enter(r);
    const tac_status s = finish_sync(r, timeout_ms);
    tac__watch_leave(r);
    return s ? s : close_step(r);
}

tac_status tac_reducer_finish(tac_reducer *r, int timeout_ms)
{
    if (!r) return TAC_ERR_ARG;
    if (r->status) return r->status;
    if (!r->in_step)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: finish outside a step; call "
                        "tac_reducer_begin first");
    return tac__step_finish(r, timeout_ms);
}
