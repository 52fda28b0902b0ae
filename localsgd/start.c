/* start.c: everybody agrees, communicators, the first values. No rank returns
 * an error before all have agreed on it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "tacit/clock.h"
#include "tacit/hash.h"

typedef struct verdict {
    int32_t status;
    char text[252];
} verdict;

typedef struct digest {
    uint64_t config, tensors, state, how;
    char text[224];
} digest;

/* Rank 0 speaks for all. */
static tac_status say(tac_localsgd *l, tac_status s, const char *text)
{
    return l->rank == 0 ? tac_fail(l->ctx, s, "%s", text)
                        : tac_fail_quiet(l->ctx, s, "%s", text);
}

static void *gather_all(tac_localsgd *l, const void *mine, size_t bytes,
                        tac_status *s)
{
    void *all = malloc((size_t)l->size * bytes);
    *s = all ? tac__lsgd_gather(l->comm, mine, all, bytes)
             : tac__lsgd_no_memory(l, (size_t)l->size * bytes);
    if (*s == TAC_OK) return all;
    free(all);
    return NULL;
}

tac_status tac__lsgd_agree(tac_localsgd *l, tac_status mine)
{
    verdict v = {.status = mine};
    char text[400];
    tac_status s;
    if (mine < 0) (void)tac_context_error(l->ctx, v.text, sizeof v.text);
    verdict *all = gather_all(l, &v, sizeof v, &s);
    for (int r = 0; all && r < l->size && s == TAC_OK; r++) {
        if (all[r].status >= 0) continue;
        s = (tac_status)all[r].status;
        snprintf(text, sizeof text, "rank %d: %.251s", r, all[r].text);
        if (mine >= 0) (void)say(l, s, text);
    }
    free(all);
    return s;
}

/* ---- the same everywhere? -------------------------------------------------
 */

static uint64_t hash_tensors(const tac_localsgd *l)
{
    uint64_t h = TAC_HASH_INIT;
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        h = tac_hash_str(h, t->name);
        h = tac_hash_u64(h, (uint64_t)t->role << 32 | (uint64_t)t->merge);
        h = tac_hash_u64(h, (uint64_t)t->layer);
        h = tac_hash_u64(h, t->count);
        h = tac_hash_u64(h, (uint64_t)l->tensors[i].mean);
    }
    return h;
}

static uint64_t hash_floats(uint64_t h, const float *x, size_t n)
{
    return x ? tac_hash_bytes(h, x, n * sizeof *x) : h;
}

/* What was loaded and has to be equal. */
static uint64_t hash_state(const tac_localsgd *l)
{
    const tac__clock *k = &l->clock;
    uint64_t h = tac_hash_u64(TAC_HASH_INIT, (uint64_t)k->attempts);
    h = tac_hash_u64(h, (uint64_t)k->begin);
    h = tac_hash_u64(h, (uint64_t)k->length);
    if (l->config.stale == TAC_STALE_EAGER) return h;
    h = hash_floats(h, l->anchor, l->elements);
    for (int i = 0; i < l->n_outer; i++)
        h = hash_floats(h, l->outer[i], l->elements);
    return h;
}

static tac_status differ(tac_localsgd *l, const digest *a, const digest *b,
                         int r)
{
    char text[900];
    if (a->config != b->config)
        snprintf(
            text, sizeof text,
            "localsgd: configurations differ: rank 0 has '%.220s', rank %d "
            "'%.220s'; give every rank the same",
            a->text, r, b->text);
    else if (a->tensors != b->tensors)
        snprintf(text, sizeof text,
                 "localsgd: rank %d has registered other tensors than rank 0; "
                 "add the same names, roles, rules, counts and layers in the "
                 "same order",
                 r);
    else if (a->how != b->how)
        snprintf(text, sizeof text,
                 "localsgd: rank %d starts otherwise (%d) than rank 0 (%d); "
                 "load saved state on all ranks or on none",
                 r, (int)b->how, (int)a->how);
    else
        snprintf(text, sizeof text,
                 "localsgd: the states of ranks 0 and %d are of different "
                 "attempts or anchors; load one checkpoint",
                 r);
    return say(l, TAC_ERR_MISMATCH, text);
}

tac_status tac__lsgd_compare(tac_localsgd *l, int how)
{
    digest mine = {.config = tac__lsgd_hash_config(&l->config, 1),
                   .tensors = hash_tensors(l),
                   .state = how == TAC_START_LOADED ? hash_state(l) : 0,
                   .how = (uint64_t)how};
    tac_status s;
    (void)tac_localsgd_describe(&l->config, mine.text, sizeof mine.text);
    l->hash_all = tac_hash_u64(mine.config, mine.tensors);
    digest *all = gather_all(l, &mine, sizeof mine, &s);
    for (int r = 1; all && r < l->size && s == TAC_OK; r++)
        if (memcmp(&all[0], &all[r], offsetof(digest, text)) != 0)
            s = differ(l, &all[0], &all[r], r);
    free(all);
    return s;
}

/* ---- communicators --------------------------------------------------------
 */

static tac_status split_level(tac_localsgd *l, int i)
{
    tac__level *v = &l->levels[i];
    const int ranks = i < l->n_levels - 1 ? l->config.levels[i].ranks : l->size;
    const int color = l->rank / ranks;

    TAC_TRY(tac_comm_split(l->comm, color, l->rank, &v->data));
    TAC_TRY(tac_comm_split_staging(l->comm, color, l->rank,
                                   TAC__CONTROL_STAGING, &v->control));
    v->size = tac_comm_size(v->data);
    return TAC_OK;
}

tac_status tac__lsgd_split(tac_localsgd *l)
{
    for (int i = 0; i < l->n_levels; i++) TAC_TRY(split_level(l, i));
    return TAC_OK;
}

/* ---- values ---------------------------------------------------------------
 */

static tac_status broadcast(tac_localsgd *l)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        tac_req *req = NULL;
        if (t->role == TAC_ROLE_BUFFER || t->merge == TAC_MERGE_FROZEN)
            continue;
        TAC_TRY(tac_broadcast(l->levels[l->n_levels - 1].data, t->data,
                              t->count, t->dtype, 0, NULL, &req));
        TAC_TRY(tac_wait(req, 0));
    }
    return TAC_OK;
}

static int is_compared(const tac_localsgd_tensor *t, int how)
{
    if (t->merge == TAC_MERGE_FROZEN) return 1;
    return how == TAC_START_VERIFY && t->role != TAC_ROLE_BUFFER;
}

static tac_status other_values(tac_localsgd *l, size_t i, int r)
{
    char text[400];
    snprintf(text, sizeof text,
             "localsgd: '%.100s' has other values on rank %d than on rank 0; "
             "start from the same weights, or with TAC_START_BROADCAST (frozen "
             "tensors: load the same on all ranks)",
             l->tensors[i].t.name, r);
    return say(l, TAC_ERR_MISMATCH, text);
}

tac_status tac__lsgd_verify(tac_localsgd *l, int how)
{
    const size_t n = l->n_tensors;
    uint64_t *mine = calloc(n + 1, sizeof *mine), *all = NULL;
    tac_status s = mine ? TAC_OK : tac__lsgd_no_memory(l, n * sizeof *mine);
    s = tac__lsgd_agree(l, s);
    for (size_t i = 0; i < n && s == TAC_OK; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        if (is_compared(t, how))
            mine[i] = tac_hash_bytes(TAC_HASH_INIT, t->data,
                                     t->count * tac_dtype_size(t->dtype));
    }
    if (s == TAC_OK && n > 0) all = gather_all(l, mine, n * sizeof *mine, &s);
    for (int r = 1; all && r < l->size && s == TAC_OK; r++)
        for (size_t i = 0; i < n && s == TAC_OK; i++)
            if (all[(size_t)r * n + i] != all[i]) s = other_values(l, i, r);
    free(mine);
    free(all);
    return s;
}

static void set_anchor(tac_localsgd *l)
{
    for (int64_t p = 0; l->anchor && p < l->n_fragments; p++)
        tac__gather_params(l, &l->fragments[p], l->anchor + l->fragments[p].at,
                           1.0f);
}

/* What is counted with can't be just any number: who edits a file would have
 * intervals that never end, or fragments that there are none of. */
static int clock_can_be(const tac__clock *k)
{
    return k->attempts >= 0 && k->attempts < INT64_MAX / 2 && k->begin >= 0 &&
           k->begin <= k->attempts && k->length >= 0 && k->clean >= 0 &&
           k->clean <= k->attempts && k->last >= 0;
}

static int flight_can_be(const tac_localsgd *l, const tac__flight *g)
{
    return (g->active == 0 || g->active == 1) && g->fragment >= 0 &&
           g->fragment < l->n_fragments && g->sent >= 0 &&
           g->sent <= l->clock.attempts;
}

static int is_count(int64_t x)
{
    return x >= 0 && x < INT64_MAX / 2;
}

static int stats_can_be(const tac_localsgd *l)
{
    const tac_localsgd_stats *s = &l->stats;
    int good = is_count(s->micro_steps) && is_count(s->skipped) &&
               is_count(s->syncs) && is_count(s->dropped) &&
               is_count(s->last_interval) && is_count(l->last_sync) &&
               l->last_sync <= l->clock.attempts &&
               is_count(l->interval_attempts);

    for (int i = 0; i < TAC_LOCALSGD_LEVELS; i++)
        good &= is_count(s->syncs_level[i]);
    for (int i = 0; i < TAC_TENSOR_ROLES; i++)
        good &= is_count((int64_t)s->bytes_role[i]);
    return good;
}

static tac_status check_state(tac_localsgd *l)
{
    int64_t bad = !clock_can_be(&l->clock) + !stats_can_be(l);

    for (int64_t i = 0; i < l->n_flights; i++)
        bad += !flight_can_be(l, &l->flights[i]);
    if (bad == 0) return TAC_OK;
    return tac_fail(l->ctx, TAC_ERR_DATA,
                    "localsgd: the state that was loaded can't be: its clock "
                    "or a delta under way has numbers out of range; it is "
                    "damaged, load another");
}

static tac_status check_loaded(tac_localsgd *l, tac_start how)
{
    if (how != TAC_START_LOADED) return TAC_OK;
    if (l->hash_loaded == l->hash_config) return check_state(l);
    if (l->hash_loaded == 0)
        return tac_fail(l->ctx, TAC_ERR_STATE,
                        "localsgd: no state was loaded; walk it before "
                        "TAC_START_LOADED");
    return tac_fail(l->ctx, TAC_ERR_MISMATCH,
                    "localsgd: the state was saved with another configuration "
                    "than this one (only `total` may change)");
}

static tac_status start(tac_localsgd *l, tac_start how)
{
    tac_status s = tac__lsgd_open(l);
    if (s == TAC_OK) s = check_loaded(l, how);
    TAC_TRY(tac__lsgd_agree(l, s));
    TAC_TRY(tac__lsgd_compare(l, how));
    TAC_TRY(tac__lsgd_split(l));
    if (how == TAC_START_BROADCAST) TAC_TRY(broadcast(l));
    TAC_TRY(tac__lsgd_verify(l, how));
    if (how != TAC_START_LOADED) set_anchor(l);
    return TAC_OK;
}

tac_status tac_localsgd_start(tac_localsgd *l, tac_start how)
{
    if (!l) return TAC_ERR_ARG;
    if (l->started)
        return tac_fail(l->ctx, TAC_ERR_STATE, "localsgd: started twice");
    TAC_TRY(tac__lsgd_poison(l, start(l, how)));
    l->started = 1;
    l->step_ended = l->interval_began = tac_clock_s();
    return TAC_OK;
}
