/* step.c: attempts, one after the other, and the end. */
#include <math.h>

#include "impl.h"
#include "tacit/clock.h"

/* ---- what is due ----------------------------------------------------------
 */

static tac_status sync_one(tac_localsgd *l, int level, int64_t fragment,
                           tac__turn *t)
{
    tac__told told;
    const int outermost = level == l->n_levels - 1;
    TAC_TRY(tac__sync_fragment(l, level, fragment, &t->due, &told));
    if (fragment == 0 && outermost) {
        t->told = told;
        t->has_told = 1;
    }
    t->synced = 1;
    t->outermost |= outermost;
    t->inner |= !outermost;
    t->fragment = fragment;
    t->fragments++;
    return TAC_OK;
}

static tac_status sync_all(tac_localsgd *l, tac__turn *t)
{
    const int64_t n = l->clock.attempts;
    if (t->due.end) TAC_TRY(tac__flights_arrive(l, 1, &t->arrived));
    for (; t->next < l->n_fragments; t->next++) {
        const int64_t p = t->next;
        if (tac__clock_is_due(&l->clock, &t->due, n, p)) {
            TAC_TRY(tac__flight_arrive(l, p, &t->arrived));
            TAC_TRY(sync_one(l, l->n_levels - 1, p, t));
        } else if (t->due.inner >= 0) {
            TAC_TRY(sync_one(l, t->due.inner, p, t));
        }
    }
    if (t->inner) {
        l->levels[t->due.inner].samples = l->samples;
        l->levels[t->due.inner].steps = l->steps;
    }
    tac__clock_note_clean(&l->clock, &t->due);
    return TAC_OK;
}

/* ---- after it -------------------------------------------------------------
 */

static void next_interval(tac_localsgd *l, const tac__told *told)
{
    tac__clock_next(&l->clock, told->lr, told->loss, told->attempt_s);
    l->loss_sum = l->loss_count = l->busy_s = 0;
    l->interval_attempts = 0;
}

static void count(tac_localsgd *l, const tac__turn *t)
{
    const int64_t n = l->clock.attempts;
    if (!t->synced) return;
    l->stats.syncs++;
    if (t->outermost) l->stats.syncs_level[l->n_levels - 1]++;
    if (t->inner) l->stats.syncs_level[t->due.inner]++;
    l->stats.last_interval = n - l->last_sync;
    l->last_sync = n;
    l->interval_began = tac_clock_s();
}

static void fill_event(const tac_localsgd *l, const tac__turn *t,
                       tac_sync_event *e)
{
    const tac_localsgd_config *c = &l->config;
    *e = (tac_sync_event){
        .synced = t->synced,
        .level = t->outermost ? l->n_levels - 1
                 : t->inner   ? t->due.inner
                              : 0,
        .fragment = t->fragments == 1 && l->n_fragments > 1 ? t->fragment : -1,
        .interval = t->synced ? l->stats.last_interval : 0,
        .arrived = t->arrived,
        .late = c->late == TAC_LATE_DROP &&
                tac_clock_s() - l->interval_began > c->deadline_s};
}

/* ---- an attempt -----------------------------------------------------------
 */

static tac_status check_step(tac_localsgd *l, const tac_local_step *s)
{
    const int64_t total = l->config.total;
    if (l->failed < 0) return l->failed;
    if (!l->started || l->finished)
        return tac_fail(l->ctx, TAC_ERR_STATE, "localsgd: a step %s",
                        l->finished ? "after tac_localsgd_finish"
                                    : "before tac_localsgd_start");
    if (total > 0 && l->clock.attempts >= total)
        return tac_fail(l->ctx, TAC_ERR_STATE,
                        "localsgd: more than the %lld attempts of `total`; "
                        "raise it, or leave it 0",
                        (long long)total);
    if (!(s->samples >= 0))
        return tac_fail(l->ctx, TAC_ERR_ARG,
                        "localsgd: %g samples in an attempt; a rank without "
                        "data says 0",
                        s->samples);
    return TAC_OK;
}

static void account(tac_localsgd *l, const tac_local_step *s, double now)
{
    l->busy_s += now - l->step_ended;
    l->interval_attempts++;
    l->samples += s->samples;
    l->steps += s->skipped ? 0 : 1;
    l->stats.skipped += s->skipped != 0;
    l->lr = s->lr;
    if (!isnan(s->loss)) {
        l->loss_sum += s->loss;
        l->loss_count++;
    }
    tac__clock_tick(&l->clock, s->lr);
    l->stats.attempts = l->clock.attempts;
}

/* What is under way moves at least once an attempt. */
static tac_status progress(tac_localsgd *l)
{
    for (int64_t i = 0; i < l->n_flights; i++)
        if (l->flights[i].req)
            return tac__lsgd_poison(
                l, tac_comm_progress(l->levels[l->n_levels - 1].data));
    return TAC_OK;
}

static tac_status take_turn(tac_localsgd *l)
{
    tac__turn *t = &l->turn;
    TAC_TRY(progress(l));
    TAC_TRY(tac__flights_arrive(l, 0, &t->arrived));
    t->due = tac__clock_due(&l->clock, l->clock.attempts);
    if (t->due.any) TAC_TRY(sync_all(l, t));
    count(l, t);
    if (t->has_told && tac__clock_ends(&l->clock)) next_interval(l, &t->told);
    t->open = 0;
    return TAC_OK;
}

tac_status tac__turn_resume(tac_localsgd *l)
{
    return l->turn.open && !l->turn.ending ? take_turn(l) : TAC_OK;
}

tac_status tac_localsgd_step(tac_localsgd *l, const tac_local_step *s,
                             tac_sync_event *event)
{
    if (!l || !s) return TAC_ERR_ARG;
    TAC_TRY(check_step(l, s));
    const double began = tac_clock_s();
    account(l, s, began);
    l->turn = (tac__turn){.open = 1, .fragment = -1};
    TAC_TRY(take_turn(l));
    if (event) fill_event(l, &l->turn, event);
    l->step_ended = tac_clock_s();
    if (l->turn.synced || l->turn.arrived)
        l->stats.sync_s += l->step_ended - began;
    return TAC_OK;
}

void tac_localsgd_micro_step(tac_localsgd *l)
{
    l->stats.micro_steps++;
}

int tac_localsgd_due(const tac_localsgd *l)
{
    const int64_t next = l->clock.attempts + 1;
    return tac__clock_due(&l->clock, next).any || tac__flights_due(l, next);
}

int tac_localsgd_is_clean(const tac_localsgd *l)
{
    return l->clock.clean == l->clock.attempts;
}

/* ---- the end --------------------------------------------------------------
 */

static tac_status finish(tac_localsgd *l)
{
    tac__turn *t = &l->turn;
    tac__told told;
    if (!t->open) *t = (tac__turn){.open = 1, .ending = 1, .fragment = -1};
    t->due = (tac__due){.end = 1, .any = 1, .inner = -1};
    if (l->clock.clean != l->clock.attempts) {
        TAC_TRY(sync_all(l, t));
        count(l, t);
    }
    return tac__lsgd_poison(l, tac__lsgd_cards(l, l->n_levels - 1,
                                               TAC__FRAGMENT_NONE, &t->due,
                                               &told));
}

tac_status tac_localsgd_finish(tac_localsgd *l)
{
    if (!l) return TAC_ERR_ARG;
    if (l->failed < 0) return l->failed;
    if (!l->started || l->finished)
        return tac_fail(l->ctx, TAC_ERR_STATE, "localsgd: finish %s",
                        l->finished ? "twice" : "before start");
    const double began = tac_clock_s();
    l->finished = 1;
    TAC_TRY(finish(l));
    l->stats.sync_s += tac_clock_s() - began;
    return TAC_OK;
}
