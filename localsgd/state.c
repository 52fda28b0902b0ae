/* state.c: everything that a bitwise continuation needs, shown item by item. */
#include <stdio.h>

#include "impl.h"

static tac_status show_i64(const tac_state_visitor *v, const char *name,
                           int64_t *x)
{
    return tac_state_visit(v, name, TAC_I64, 0, NULL, x);
}

static tac_status show_f32(const tac_state_visitor *v, const char *name,
                           float *x, size_t n)
{
    return x && n > 0 ? tac_state_visit(v, name, TAC_F32, 1, &n, x) : TAC_OK;
}

/* ---- clocks ---------------------------------------------------------------
 */

static tac_status show_clock(tac__clock *k, const tac_state_visitor *v)
{
    TAC_TRY(show_i64(v, "attempts", &k->attempts));
    TAC_TRY(show_i64(v, "begin", &k->begin));
    TAC_TRY(show_i64(v, "length", &k->length));
    TAC_TRY(show_i64(v, "clean", &k->clean));
    TAC_TRY(show_i64(v, "last", &k->last));
    TAC_TRY(tac_state_visit_f64(v, "lr", &k->lr));
    TAC_TRY(tac_state_visit_f64(v, "lr_first", &k->lr_first));
    TAC_TRY(tac_state_visit_f64(v, "loss", &k->loss));
    TAC_TRY(tac_state_visit_f64(v, "loss_first", &k->loss_first));
    return tac_state_visit_f64(v, "attempt_s", &k->attempt_s);
}

static tac_status show_interval(tac_localsgd *l, const tac_state_visitor *v)
{
    TAC_TRY(tac_state_visit_f64(v, "loss_sum", &l->loss_sum));
    TAC_TRY(tac_state_visit_f64(v, "loss_count", &l->loss_count));
    TAC_TRY(tac_state_visit_f64(v, "busy_s", &l->busy_s));
    TAC_TRY(show_i64(v, "interval_attempts", &l->interval_attempts));
    TAC_TRY(tac_state_visit_f64(v, "samples", &l->samples));
    TAC_TRY(tac_state_visit_f64(v, "steps", &l->steps));
    TAC_TRY(show_i64(v, "last_sync", &l->last_sync));
    TAC_TRY(tac_state_visit_f64(v, "distance2", &l->figures.distance2));
    TAC_TRY(tac_state_visit_f64(v, "dot", &l->figures.dot));
    return tac_state_visit_f64(v, "own2", &l->figures.own2);
}

static tac_status show_stats(tac_localsgd *l, const tac_state_visitor *v)
{
    tac_localsgd_stats *s = &l->stats;
    const size_t levels = TAC_LOCALSGD_LEVELS, roles = TAC_TENSOR_ROLES;
    TAC_TRY(show_i64(v, "micro_steps", &s->micro_steps));
    TAC_TRY(show_i64(v, "skipped", &s->skipped));
    TAC_TRY(show_i64(v, "syncs", &s->syncs));
    TAC_TRY(show_i64(v, "dropped", &s->dropped));
    TAC_TRY(show_i64(v, "last_interval", &s->last_interval));
    TAC_TRY(tac_state_visit_f64(v, "sync_s", &s->sync_s));
    TAC_TRY(tac_state_visit_f64(v, "consensus", &s->consensus_distance));
    TAC_TRY(tac_state_visit_f64(v, "delta_norm", &s->delta_norm));
    TAC_TRY(tac_state_visit_f64(v, "cosine", &s->cosine));
    TAC_TRY(
        tac_state_visit(v, "syncs_level", TAC_I64, 1, &levels, s->syncs_level));
    return tac_state_visit(v, "bytes_role", TAC_I64, 1, &roles, s->bytes_role);
}

/* ---- fragments, levels, flights -------------------------------------------
 */

static tac_status show_fragment(tac__fragment *f, const tac_state_visitor *v)
{
    TAC_TRY(tac_state_visit_f64(v, "samples", &f->samples));
    TAC_TRY(tac_state_visit_f64(v, "steps", &f->steps));
    TAC_TRY(tac_state_visit_u64(v, "outer_steps", &f->outer_steps));
    return show_i64(v, "sent", &f->sent);
}

static tac_status walk_fragment(void *f, const tac_state_visitor *v)
{
    return show_fragment(f, v);
}

static tac_status walk_codec(void *c, const tac_state_visitor *v)
{
    return tac_codec_visit(c, v);
}

static tac_status walk_level(void *p, const tac_state_visitor *v)
{
    tac__level *x = p;
    TAC_TRY(tac_state_visit_f64(v, "samples", &x->samples));
    TAC_TRY(tac_state_visit_f64(v, "steps", &x->steps));
    TAC_TRY(tac_state_visit_u64(v, "bytes_logical", &x->bytes_logical));
    TAC_TRY(tac_state_visit_u64(v, "bytes_wire", &x->bytes_wire));
    TAC_TRY(tac_state_visit_u64(v, "bytes_control", &x->bytes_control));
    return x->codec ? tac_state_walk(v, "codec.", walk_codec, x->codec)
                    : TAC_OK;
}

static tac_status walk_flight(void *p, const tac_state_visitor *v)
{
    tac__flight *g = p;
    TAC_TRY(show_i64(v, "active", &g->active));
    TAC_TRY(show_i64(v, "fragment", &g->fragment));
    TAC_TRY(show_i64(v, "sent", &g->sent));
    TAC_TRY(show_i64(v, "dropped", &g->dropped));
    TAC_TRY(show_i64(v, "nobody", &g->nobody));
    TAC_TRY(tac_state_visit_f64(v, "lr", &g->lr));
    TAC_TRY(tac_state_visit_f64(v, "own2", &g->own2));
    return show_f32(v, "delta", g->buf, g->room);
}

static tac_status walk_nth(const tac_state_visitor *v, const char *what,
                           int64_t i, tac_state_walk_fn *walk, void *object)
{
    char prefix[48];
    snprintf(prefix, sizeof prefix, "%s%lld.", what, (long long)i);
    return tac_state_walk(v, prefix, walk, object);
}

/* Counters of communicators are told as sums, and go on from there. */
static void sum_bytes(tac_localsgd *l, int back)
{
    for (int i = 0; i < l->n_levels; i++) {
        tac__level *x = &l->levels[i];
        const tac__level before = *x;
        const uint64_t logical = tac__stats_logical(l, i) - x->bytes_logical;
        const uint64_t wire = tac__stats_wire(l, i) - x->bytes_wire;
        const uint64_t control = tac__stats_control(l, i) - x->bytes_control;
        const uint64_t sign = back ? UINT64_MAX : 1; /* -1 modulo 2^64 */
        x->bytes_logical = before.bytes_logical + sign * logical;
        x->bytes_wire = before.bytes_wire + sign * wire;
        x->bytes_control = before.bytes_control + sign * control;
    }
}

static tac_status show_arrays(tac_localsgd *l, const tac_state_visitor *v)
{
    char name[24];
    TAC_TRY(show_f32(v, "anchor", l->anchor, l->elements));
    TAC_TRY(show_f32(v, "own", l->own, l->elements));
    for (int i = 0; i < l->n_outer; i++) {
        snprintf(name, sizeof name, "outer%d", i);
        TAC_TRY(show_f32(v, name, l->outer[i], l->elements));
    }
    return TAC_OK;
}

static tac_status show_all(tac_localsgd *l, const tac_state_visitor *v)
{
    TAC_TRY(tac_state_visit_u64(v, "config", &l->hash_loaded));
    TAC_TRY(show_clock(&l->clock, v));
    TAC_TRY(show_interval(l, v));
    TAC_TRY(show_stats(l, v));
    for (int i = 0; i < l->n_levels; i++)
        TAC_TRY(walk_nth(v, "level", i, walk_level, &l->levels[i]));
    for (int64_t p = 0; p < l->n_fragments; p++)
        TAC_TRY(walk_nth(v, "fragment", p, walk_fragment, &l->fragments[p]));
    for (int64_t i = 0; i < l->n_flights; i++)
        TAC_TRY(walk_nth(v, "flight", i, walk_flight, &l->flights[i]));
    return show_arrays(l, v);
}

static tac_status walk_all(void *p, const tac_state_visitor *v)
{
    tac_localsgd *l = p;
    if (l->started) l->hash_loaded = l->hash_config;
    sum_bytes(l, 0);
    const tac_status s = show_all(l, v);
    sum_bytes(l, 1);
    l->stats.attempts = l->clock.attempts;
    return s;
}

tac_status tac_localsgd_walk(void *localsgd, const tac_state_visitor *v)
{
    tac_localsgd *l = localsgd;
    if (!l || !v) return TAC_ERR_ARG;
    TAC_TRY(tac__lsgd_open(l));
    for (int64_t i = 0; i < l->n_flights; i++)
        if (l->flights[i].req)
            return tac_fail(l->ctx, TAC_ERR_STATE,
                            "localsgd: a delta is under way; call "
                            "tac_localsgd_settle before its state is walked");
    return tac_state_walk(v, "localsgd.", walk_all, l);
}

tac_status tac_localsgd_settle(tac_localsgd *l)
{
    if (!l) return TAC_ERR_ARG;
    if (l->failed < 0) return l->failed;
    for (int64_t i = 0; i < l->n_flights; i++)
        TAC_TRY(tac__flight_await(l, &l->flights[i]));
    return TAC_OK;
}
