/* flight.c: deltas under way while training goes on.
 *
 * Sent at attempt t, applied at t + delay; the communication has that long, and
 * only what is not complete by then is waited for. With a delay of a whole
 * interval the fragment's new delta is taken first, then the old result moves
 * the anchor, then the new delta is sent; parameters start again from the
 * anchor each time, or what was sent would be sent twice. */
#include <math.h>
#include <string.h>

#include "impl.h"

int tac__is_whole(const tac_localsgd_config *c)
{
    const int64_t every =
        c->n_levels > 0 ? c->levels[c->n_levels - 1].every : c->schedule.every;
    return c->delay > 0 && c->delay >= every;
}

static tac__flight *flight_of(tac_localsgd *l, int64_t fragment)
{
    for (int64_t i = 0; i < l->n_flights; i++)
        if (l->flights[i].active && l->flights[i].fragment == fragment)
            return &l->flights[i];
    return NULL;
}

/* One for each fragment: its own, as large as it; else any. */
static tac__flight *free_flight(tac_localsgd *l, int64_t fragment)
{
    if (l->n_flights == l->n_fragments) return &l->flights[fragment];
    for (int64_t i = 0; i < l->n_flights; i++)
        if (!l->flights[i].active) return &l->flights[i];
    return NULL;
}

tac_status tac__flight_await(tac_localsgd *l, tac__flight *g)
{
    const tac_status s = tac__await(l, &g->req);
    g->lost = s < 0;
    return s;
}

/* The delta is in the flight's buffer, unscaled. */
static tac_status send(tac_localsgd *l, tac__flight *g, int64_t fragment,
                       const tac__told *told)
{
    tac__fragment *f = &l->fragments[fragment];
    *g = (tac__flight){.active = 1,
                       .fragment = fragment,
                       .sent = l->clock.attempts,
                       .dropped = told->dropped,
                       .nobody = told->nobody,
                       .lr = told->lr,
                       .own2 = tac__sum_squares(g->buf, f->n),
                       .buf = g->buf,
                       .room = g->room};
    if (!told->uniform)
        tac__copy_scaled(g->buf, g->buf, (float)told->share, f->n);
    const tac_status s = tac__exchange_begin(l, l->n_levels - 1, f, NULL,
                                             g->buf, told->uniform, 1, &g->req);
    g->lost = s < 0;
    return s;
}

static void figures(tac_localsgd *l, const tac__flight *g)
{
    const double norm2 = tac__sum_squares(g->buf, l->fragments[g->fragment].n);
    tac__stats_figures(l, g->own2 - norm2, NAN, NAN, norm2);
}

/* ---- within an interval ---------------------------------------------------
 */

tac_status tac__flight_send(tac_localsgd *l, int64_t fragment,
                            const tac__told *told)
{
    tac__flight *g = free_flight(l, fragment);
    if (!g)
        return tac__lsgd_poison(
            l, tac_fail(l->ctx, TAC_ERR_INTERNAL,
                        "localsgd: %lld deltas are under way already",
                        (long long)l->n_flights));
    tac__gather_delta(l, &l->fragments[fragment], g->buf, 1);
    return send(l, g, fragment, told);
}

static tac_status arrive(tac_localsgd *l, tac__flight *g)
{
    tac__fragment *f = &l->fragments[g->fragment];
    TAC_TRY(tac__flight_await(l, g));
    figures(l, g);
    g->active = 0;
    l->done++;
    if (g->nobody) return TAC_OK;
    tac__outer_step(l, f, g->buf, g->lr);
    if (!g->dropped) tac__scatter(l, f, l->anchor + f->at, l->config.alpha);
    return TAC_OK;
}

tac_status tac__flight_arrive(tac_localsgd *l, int64_t fragment, int *arrived)
{
    tac__flight *g = flight_of(l, fragment);
    if (!g || tac__is_whole(&l->config)) return TAC_OK;
    ++*arrived;
    return arrive(l, g);
}

/* In the order of fragments, so that all ranks add alike. */
tac_status tac__flights_arrive(tac_localsgd *l, int all, int *arrived)
{
    const int64_t now = l->clock.attempts;
    if (tac__is_whole(&l->config)) return TAC_OK;
    for (int64_t p = 0; p < l->n_fragments && l->n_flights > 0; p++) {
        const tac__flight *g = flight_of(l, p);
        if (g && (all || now - g->sent >= l->config.delay))
            TAC_TRY(tac__flight_arrive(l, p, arrived));
    }
    return TAC_OK;
}

int tac__flights_due(const tac_localsgd *l, int64_t attempt)
{
    if (tac__is_whole(&l->config)) return 0;
    for (int64_t i = 0; i < l->n_flights; i++)
        if (l->flights[i].active &&
            attempt - l->flights[i].sent >= l->config.delay)
            return 1;
    return 0;
}

/* ---- one interval late ----------------------------------------------------
 */

/* delta = present + (old average - own part of it), with this rank's share of
 * the present; own becomes that share. */
static void make_eager(tac_localsgd *l, const tac__fragment *f, float *average,
                       const float *present, const tac__told *told)
{
    float *own = l->own + f->at;
    const float share = (float)told->share;
    tac__add_scaled(average, own, -1, f->n);
    tac__copy_scaled(own, present, share, f->n);
    tac__add_scaled(average, own, 1, f->n);
}

tac_status tac__flight_exchange(tac_localsgd *l, int64_t fragment,
                                const tac__told *told)
{
    tac__fragment *f = &l->fragments[fragment];
    tac__flight *g = &l->flights[fragment];
    const int eager = l->config.stale == TAC_STALE_EAGER, old = (int)g->active;
    tac__gather_delta(l, f, l->staging, 1);
    if (old) {
        TAC_TRY(tac__flight_await(l, g));
        figures(l, g);
    } else if (f->n > 0) {
        memset(g->buf, 0, f->n * sizeof(float));
    }
    if (eager) make_eager(l, f, g->buf, l->staging, told);
    if (eager || (old && !g->nobody))
        tac__outer_step(l, f, g->buf, eager ? told->lr : g->lr);
    if (!told->dropped) tac__scatter(l, f, l->anchor + f->at, l->config.alpha);
    tac__copy_scaled(g->buf, l->staging, 1, f->n);
    return send(l, g, fragment, told);
}

/* Anchors of eager ranks have gone different ways; their mean ends it. */
static tac_status average_anchor(tac_localsgd *l, tac__fragment *f)
{
    TAC_TRY(tac__exchange(l, l->n_levels - 1, f, l->anchor + f->at, l->staging,
                          1, 0));
    tac__copy_scaled(l->anchor + f->at, l->staging, 1, f->n);
    return TAC_OK;
}

tac_status tac__flight_end(tac_localsgd *l, int64_t fragment,
                           const tac__told *told)
{
    tac__fragment *f = &l->fragments[fragment];
    tac__flight *g = &l->flights[fragment];
    const int eager = l->config.stale == TAC_STALE_EAGER;
    tac__gather_delta(l, f, l->staging,
                      told->uniform ? 1.0f : (float)told->share);
    if (g->active) TAC_TRY(tac__flight_await(l, g));
    TAC_TRY(tac__exchange(l, l->n_levels - 1, f, NULL, l->staging,
                          told->uniform, 1));
    if (g->active && !g->nobody) {
        if (eager) tac__add_scaled(g->buf, l->own + f->at, -1, f->n);
        tac__outer_step(l, f, g->buf, g->lr);
    }
    g->active = 0;
    tac__stats_figures(l, NAN, NAN, NAN, tac__sum_squares(l->staging, f->n));
    tac__outer_step(l, f, l->staging, told->lr);
    if (eager) TAC_TRY(average_anchor(l, f));
    tac__scatter(l, f, l->anchor + f->at, 0);
    return TAC_OK;
}
