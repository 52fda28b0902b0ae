/* regroup_adopt.c: what all ranks share becomes that of one of them. Those that
 * have it already receive the same bits once more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"

tac_status tac__regroup_send(tac_localsgd *l, int from, void *data,
                             size_t bytes)
{
    tac_req *req = NULL;
    if (bytes == 0) return TAC_OK;
    TAC_TRY(tac_broadcast(l->levels[l->n_levels - 1].data, data, bytes, TAC_U8,
                          from, NULL, &req));
    return tac_wait(req, 0);
}

/* ---- clocks and counters --------------------------------------------------
 */

typedef struct words {
    tac__clock clock;
    tac__turn turn;
    int64_t done, last_sync, last_interval, syncs, dropped;
    int64_t syncs_level[TAC_LOCALSGD_LEVELS];
    double lr;
} words;

static words words_of(const tac_localsgd *l)
{
    words w = {.clock = l->clock,
               .turn = l->turn,
               .done = l->done,
               .last_sync = l->last_sync,
               .last_interval = l->stats.last_interval,
               .syncs = l->stats.syncs,
               .dropped = l->stats.dropped,
               .lr = l->lr};
    memcpy(w.syncs_level, l->stats.syncs_level, sizeof w.syncs_level);
    w.clock.config = NULL;
    return w;
}

/* A new interval, or a first one: nothing was told of it. */
static void forget_interval(tac_localsgd *l)
{
    l->loss_sum = l->loss_count = l->busy_s = 0;
    l->interval_attempts = 0;
    for (int i = 0; i < l->n_levels; i++) {
        l->levels[i].samples = l->samples;
        l->levels[i].steps = l->steps;
    }
}

static void take_words(tac_localsgd *l, const words *w, tac_regroup *out)
{
    out->attempts = w->clock.attempts;
    out->forward = w->clock.attempts - l->clock.attempts;
    if (!l->started || w->clock.begin != l->clock.begin) forget_interval(l);
    if (out->forward > 0) l->lr = w->lr;
    l->clock = w->clock;
    l->clock.config = &l->config;
    l->turn = w->turn;
    l->done = w->done;
    l->last_sync = w->last_sync;
    l->stats.attempts = w->clock.attempts;
    l->stats.last_interval = w->last_interval;
    l->stats.syncs = w->syncs;
    l->stats.dropped = w->dropped;
    memcpy(l->stats.syncs_level, w->syncs_level, sizeof w->syncs_level);
    l->figures = (tac__card){.distance2 = NAN, .dot = NAN, .own2 = NAN};
}

static tac_status adopt_words(tac_localsgd *l, int lead, tac_regroup *out)
{
    words w = words_of(l);
    TAC_TRY(tac__regroup_send(l, lead, &w, sizeof w));
    take_words(l, &w, out);
    return TAC_OK;
}

/* ---- anchors --------------------------------------------------------------
 */

typedef struct version {
    int64_t version, sent;
    uint64_t outer_steps;
} version;

/* The bytes of an anchor and its outer state. What is half written when that
 * fails is nobody's state. */
static tac_status send_anchor(tac_localsgd *l, int lead, tac__fragment *f,
                              int lacks)
{
    const size_t bytes = f->n * sizeof(float);
    if (lacks) f->version = -1;
    TAC_TRY(tac__regroup_send(l, lead, l->anchor + f->at, bytes));
    for (int i = 0; i < l->n_outer; i++)
        TAC_TRY(tac__regroup_send(l, lead, l->outer[i] + f->at, bytes));
    return TAC_OK;
}

static double mixing(const tac_localsgd *l)
{
    const int plain = l->clock.attempts <= l->config.schedule.start;
    return !l->started || plain ? 0 : l->config.alpha;
}

static void take_version(tac_localsgd *l, tac__fragment *f, const version *v)
{
    f->version = v->version;
    f->sent = v->sent;
    f->outer_steps = v->outer_steps;
    f->samples = l->samples;
    f->steps = l->steps;
}

static tac_status with_anchor(tac_localsgd *l, int lead, tac__fragment *f,
                              const version *v, tac_regroup *out)
{
    const int lacks = !l->started || f->version != v->version;
    TAC_TRY(send_anchor(l, lead, f, lacks));
    if (!lacks) return TAC_OK;
    tac__scatter(l, f, l->anchor + f->at, mixing(l));
    take_version(l, f, v);
    out->adopted++;
    return TAC_OK;
}

/* The parameters themselves, for newcomers. */
static tac_status without_anchor(tac_localsgd *l, int lead, tac__fragment *f,
                                 const version *v)
{
    tac__gather_params(l, f, l->staging, 1);
    TAC_TRY(tac__regroup_send(l, lead, l->staging, f->n * sizeof(float)));
    if (!l->started) tac__scatter(l, f, l->staging, 0);
    if (!l->started || f->sent != v->sent) take_version(l, f, v);
    return TAC_OK;
}

/* Does any rank lack this fragment? */
static tac_status anybody(tac_localsgd *l, int mine, int *any)
{
    unsigned char lacks = (unsigned char)mine;
    unsigned char *all = (unsigned char *)(void *)l->cards; /* large enough */
    TAC_TRY(tac__lsgd_gather(l->comm, &lacks, all, 1));
    *any = 0;
    for (int r = 0; r < l->size; r++) *any |= all[r];
    return TAC_OK;
}

static tac_status adopt_fragment(tac_localsgd *l, int lead, tac__fragment *f,
                                 int any_joins, tac_regroup *out)
{
    version v = {f->version, f->sent, f->outer_steps};
    int any;
    TAC_TRY(tac__regroup_send(l, lead, &v, sizeof v));
    TAC_TRY(anybody(l, !l->started || f->version != v.version, &any));
    if (l->anchor) return any ? with_anchor(l, lead, f, &v, out) : TAC_OK;
    if (any_joins) return without_anchor(l, lead, f, &v);
    if (f->sent != v.sent) take_version(l, f, &v);
    return TAC_OK;
}

/* ---- a newcomer's other tensors -------------------------------------------
 */

static int is_given(const tac_localsgd_tensor *t)
{
    const int averaged =
        t->role == TAC_ROLE_PARAM && t->merge == TAC_MERGE_AVERAGE;
    return !averaged && t->role != TAC_ROLE_BUFFER &&
           t->merge != TAC_MERGE_FROZEN;
}

static size_t bytes_of(const tac_localsgd_tensor *t)
{
    return t->count * tac_dtype_size(t->dtype);
}

static size_t most_given(const tac_localsgd *l)
{
    size_t most = 0;
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        if (is_given(t) && bytes_of(t) > most) most = bytes_of(t);
    }
    return most;
}

static tac_status give_tensors(tac_localsgd *l, int lead)
{
    const size_t most = most_given(l);
    char *scratch = malloc(most + 1);
    tac_status s = scratch ? TAC_OK : tac__lsgd_no_memory(l, most);
    s = tac__lsgd_agree(l, s);
    for (size_t i = 0; i < l->n_tensors && s == TAC_OK; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        if (!is_given(t) || t->count == 0) continue;
        memcpy(scratch, t->data, bytes_of(t));
        s = tac__regroup_send(l, lead, scratch, bytes_of(t));
        if (s == TAC_OK && !l->started) memcpy(t->data, scratch, bytes_of(t));
    }
    free(scratch);
    return s;
}

tac_status tac__regroup_adopt(tac_localsgd *l, int lead, int any_joins,
                              tac_regroup *out)
{
    TAC_TRY(adopt_words(l, lead, out));
    for (int64_t p = 0; p < l->n_fragments; p++)
        TAC_TRY(adopt_fragment(l, lead, &l->fragments[p], any_joins, out));
    TAC_TRY(tac__regroup_flights(l, lead, out));
    TAC_TRY(tac__regroup_calls(l, lead));
    return any_joins ? give_tensors(l, lead) : TAC_OK;
}
