/* regroup.c: the same training goes on with other ranks.
 *
 * Steps: leave the old communicators; agree that everybody can; compare
 * configurations; find the rank that is furthest; new communicators; take over
 * what it has (regroup_adopt.c); compare clocks and anchors; finish the attempt
 * that was broken off. Costs a broadcast of the anchor and the outer state,
 * where some rank lacks them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "tacit/clock.h"

/* ---- the old communicators ------------------------------------------------
 */

/* Where nothing has failed, what is under way can be completed. */
static void settle(tac_localsgd *l)
{
    for (int64_t i = 0; i < l->n_flights; i++) {
        tac__flight *g = &l->flights[i];
        if (!g->req) continue;
        if (l->failed == TAC_OK)
            (void)tac__flight_await(l, g);
        else
            g->lost = 1;
    }
}

static void leave(tac_localsgd *l)
{
    settle(l);
    tac__stats_keep(l);
    for (int i = 0; i < l->n_levels; i++) {
        tac__level *v = &l->levels[i];
        tac_comm_destroy(v->data);
        tac_comm_destroy(v->control);
        v->data = v->control = NULL;
    }
    for (int64_t i = 0; i < l->n_flights; i++) {
        (void)tac_wait(l->flights[i].req, 0); /* gives back what is orphaned */
        l->flights[i].req = NULL;
    }
}

/* ---- the new one ----------------------------------------------------------
 */

static tac_status check(const tac_localsgd *l)
{
    if (l->finished)
        return tac_fail(l->ctx, TAC_ERR_STATE,
                        "localsgd: regrouped after tac_localsgd_finish");
    if (l->config.stale == TAC_STALE_EAGER)
        return tac_fail(l->ctx, TAC_ERR_UNSUPPORTED,
                        "localsgd: eager replicas can't be regrouped, as their "
                        "anchors differ; use TAC_STALE_DELAYED, or resume from "
                        "a checkpoint");
    return TAC_OK;
}

static void belong_to(tac_localsgd *l, tac_comm *comm)
{
    l->comm = comm;
    l->ctx = tac_comm_context(comm);
    l->rank = tac_comm_rank(comm);
    l->size = tac_comm_size(comm);
    if (l->config.n_levels > 0)
        l->config.levels[l->config.n_levels - 1].ranks = l->size;
}

static tac_status resize(tac_localsgd *l)
{
    tac__card *cards = realloc(l->cards, (size_t)l->size * sizeof *cards);
    if (!cards) return tac__lsgd_no_memory(l, (size_t)l->size * sizeof *cards);
    l->cards = cards;
    l->hash_config = tac__lsgd_hash_config(&l->config, 0);
    TAC_TRY(tac_localsgd_check(l->ctx, &l->config, l->size, l->layers));
    return tac__regroup_codecs(l);
}

static tac_status prepare(tac_localsgd *l)
{
    TAC_TRY(check(l));
    TAC_TRY(tac__lsgd_open(l));
    return l->started ? resize(l) : TAC_OK;
}

/* ---- who is the furthest --------------------------------------------------
 */

static tac__progress progress_of(const tac_localsgd *l)
{
    tac__progress p = {
        .joins = !l->started, .attempts = l->clock.attempts, .done = l->done};
    for (int64_t i = 0; i < l->n_fragments; i++)
        p.versions += l->fragments[i].version;
    return p;
}

static int has_half(const tac_localsgd *l)
{
    for (int64_t i = 0; i < l->n_fragments; i++)
        if (l->fragments[i].version < 0) return 1;
    return 0;
}

/* Is a further than b? */
static int is_ahead(const tac__progress *a, const tac__progress *b)
{
    if (a->joins != b->joins) return b->joins != 0;
    if (a->attempts != b->attempts) return a->attempts > b->attempts;
    if (a->done != b->done) return a->done > b->done;
    return a->versions > b->versions;
}

static tac_status nobody(tac_localsgd *l)
{
    const char *text = "localsgd: no rank has a complete state to go on from; "
                       "start, or load a checkpoint";
    return l->rank == 0 ? tac_fail(l->ctx, TAC_ERR_STATE, "%s", text)
                        : tac_fail_quiet(l->ctx, TAC_ERR_STATE, "%s", text);
}

/* *lead: the lowest of the furthest; *alike: nobody who has a state is behind.
 */
static tac_status find_lead(tac_localsgd *l, int *lead, int *alike,
                            int64_t *joined)
{
    const size_t size = (size_t)l->size;
    tac__progress mine = progress_of(l), *all = malloc(size * sizeof *all);
    if (has_half(l)) mine.joins = 2; /* it can't lead, and takes all over */
    tac_status s = all ? TAC_OK : tac__lsgd_no_memory(l, size * sizeof *all);
    s = tac__lsgd_agree(l, s);
    if (s == TAC_OK) s = tac__lsgd_gather(l->comm, &mine, all, sizeof mine);
    *lead = 0;
    *alike = 1;
    *joined = 0;
    for (int r = 0; r < l->size && s == TAC_OK; r++) {
        if (is_ahead(&all[r], &all[*lead])) *lead = r;
        *joined += all[r].joins == 1;
    }
    for (int r = 0; r < l->size && s == TAC_OK; r++)
        if (all[r].joins != 1 && is_ahead(&all[*lead], &all[r])) *alike = 0;
    if (s == TAC_OK && all[*lead].joins) s = nobody(l);
    free(all);
    return s;
}

/* ---- all of it ------------------------------------------------------------
 */

static tac_status regroup(tac_localsgd *l, tac_regroup *out)
{
    int lead, alike;
    int64_t joined, before;
    TAC_TRY(tac__lsgd_agree(l, prepare(l)));
    TAC_TRY(tac__lsgd_compare(l, TAC__START_REGROUP));
    TAC_TRY(find_lead(l, &lead, &alike, &joined));
    TAC_TRY(tac__lsgd_split(l));
    out->ranks = l->size;
    out->joined = (int)joined;
    TAC_TRY(tac__regroup_adopt(l, lead, joined > 0, out));
    TAC_TRY(tac__lsgd_verify(l, TAC__START_REGROUP));
    TAC_TRY(tac__lsgd_compare(l, TAC_START_LOADED));
    if (!alike) l->clock.clean = -1;
    l->started = 1;
    l->step_ended = l->interval_began = tac_clock_s();
    before = l->turn.fragments;
    TAC_TRY(tac__turn_resume(l));
    out->retried = l->turn.fragments - before;
    return TAC_OK;
}

tac_status tac_localsgd_regroup(tac_localsgd *l, tac_comm *comm,
                                tac_regroup *out)
{
    tac_regroup r = {0};
    if (!l || !comm) return TAC_ERR_ARG;
    leave(l);
    belong_to(l, comm);
    l->failed = TAC_OK;
    TAC_TRY(tac__lsgd_poison(l, regroup(l, &r)));
    if (out) *out = r;
    return TAC_OK;
}
