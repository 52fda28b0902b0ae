/* card.c: the digest that precedes each synchronisation, and what ranks tell
 * each other with it. One all-gather of 120 bytes a rank. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "impl.h"
#include "tacit/hash.h"
#include "tacit/rng.h"

static uint64_t hash_f64(uint64_t h, double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return tac_hash_u64(h, u);
}

/* Functions have other addresses in other processes. */
uint64_t tac__lsgd_hash_config(const tac_localsgd_config *c, int with_total)
{
    const tac_sync_schedule *s = &c->schedule;
    const tac_outer *o = &c->outer;
    uint64_t h = TAC_HASH_INIT;
    const int64_t whole[] = {
        s->kind,      s->every,         s->start,
        s->min_every, s->max_every,     o->kind,
        c->weighting, c->fragments,     c->strided,
        c->delay,     c->stale,         c->n_levels,
        c->late,      (int64_t)c->seed, with_total ? c->total : 0};
    const double real[] = {s->alpha, s->power,    s->bytes_per_second,
                           o->lr,    o->momentum, o->beta2,
                           o->eps,   c->alpha,    c->drop_probability};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        h = tac_hash_u64(h, (uint64_t)whole[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        h = hash_f64(h, real[i]);
    for (int i = 0; i < c->n_levels; i++) {
        h = tac_hash_u64(h, (uint64_t)c->levels[i].ranks);
        h = tac_hash_u64(h, (uint64_t)c->levels[i].every);
    }
    return tac_hash_str(h, c->codec ? c->codec : "none");
}

tac_status tac__lsgd_gather(tac_comm *comm, const void *send, void *recv,
                            size_t bytes)
{
    tac_req *req = NULL;
    TAC_TRY(tac_allgather(comm, send, recv, bytes, TAC_U8, NULL, &req));
    return tac_wait(req, 0);
}

int tac__lsgd_drops(const tac_localsgd_config *c, uint64_t sync,
                    int64_t fragment, int rank)
{
    const tac_rng_key key = {c->seed, TAC_STREAM_USER, sync};
    const uint64_t index = (uint64_t)fragment << 32 | (uint32_t)rank;
    return c->drop_probability > 0 &&
           tac_rng_uniform(&key, index) < c->drop_probability;
}

/* ---- comparing ------------------------------------------------------------
 */

static void describe(const tac__card *c, char *buf, size_t bytes)
{
    const int64_t fragment = (int64_t)(c->place & 0xffffffff) - 1;
    const unsigned level = (unsigned)(c->place >> 32 & 0xff);
    if (fragment < 0)
        snprintf(buf, bytes, "is in tac_localsgd_finish after attempt %" PRIu64,
                 c->attempt);
    else
        snprintf(buf, bytes,
                 "synchronises fragment %" PRId64
                 " (level %u) at attempt %" PRIu64 " in an interval of %" PRIu64
                 " after %" PRIu64,
                 fragment, level, c->attempt, c->length, c->begin);
}

static tac_status differ(tac_localsgd *l, const tac__card *a,
                         const tac__card *b, int r)
{
    char mine[200], theirs[200];
    const char *advice =
        a->config != b->config
            ? "their configurations or tensors differ"
            : "every rank calls tac_localsgd_step once an attempt, also for a "
              "skipped one";
    describe(a, mine, sizeof mine);
    describe(b, theirs, sizeof theirs);
    if (l->rank == 0)
        return tac_fail(l->ctx, TAC_ERR_MISMATCH,
                        "localsgd: rank 0 %s, rank %d %s; %s", mine, r, theirs,
                        advice);
    return tac_fail_quiet(l->ctx, TAC_ERR_MISMATCH,
                          "localsgd: rank 0 %s, rank %d %s; %s", mine, r,
                          theirs, advice);
}

static tac_status compare(tac_localsgd *l, const tac__level *v)
{
    for (int r = 1; r < v->size; r++)
        if (memcmp(&l->cards[0], &l->cards[r], offsetof(tac__card, samples)) !=
            0)
            return differ(l, &l->cards[0], &l->cards[r], r);
    return TAC_OK;
}

/* ---- telling --------------------------------------------------------------
 */

static void fill_card(const tac_localsgd *l, int level, int64_t fragment,
                      const tac__due *due, tac__card *c)
{
    const tac__fragment *f = fragment < 0 ? NULL : &l->fragments[fragment];
    const int outermost = level == l->n_levels - 1;
    const double samples =
        f && outermost ? f->samples : l->levels[level].samples;
    const double steps = f && outermost ? f->steps : l->levels[level].steps;
    *c = l->figures;
    c->config = l->hash_all;
    c->attempt = (uint64_t)l->clock.attempts;
    c->begin = (uint64_t)l->clock.begin;
    c->length = (uint64_t)l->clock.length;
    c->place = (uint64_t)(fragment + 1) | (uint64_t)level << 32 |
               (uint64_t)due->plain << 40 | (uint64_t)due->end << 41;
    c->syncs = (uint64_t)l->stats.syncs_level[level];
    c->elements = f ? f->n : 0;
    c->samples = l->samples - samples;
    c->steps = l->steps - steps;
    c->lr = l->lr;
    c->loss = l->loss_count > 0 ? l->loss_sum / l->loss_count : NAN;
    c->attempt_s = l->interval_attempts > 0
                       ? l->busy_s / (double)l->interval_attempts
                       : NAN;
}

static double weight(const tac_localsgd *l, int r)
{
    switch (l->config.weighting) {
    case TAC_WEIGHT_UNIFORM: return 1;
    case TAC_WEIGHT_SAMPLES: return l->cards[r].samples;
    case TAC_WEIGHT_STEPS: return l->cards[r].steps;
    }
    return 1;
}

/* Nobody has done anything: all count alike. */
static double total_weight(const tac_localsgd *l, int size, int64_t fragment,
                           int may_drop, int even, int *present)
{
    const uint64_t at = (uint64_t)l->clock.attempts;
    double sum = 0;
    *present = 0;
    for (int r = 0; r < size; r++) {
        if (may_drop && tac__lsgd_drops(&l->config, at, fragment, r)) continue;
        sum += even ? 1 : weight(l, r);
        ++*present;
    }
    return sum;
}

static void share(const tac_localsgd *l, int size, int rank, int64_t fragment,
                  int may_drop, tac__told *out)
{
    const uint64_t at = (uint64_t)l->clock.attempts;
    int present, even = l->config.weighting == TAC_WEIGHT_UNIFORM;
    double sum = total_weight(l, size, fragment, may_drop, even, &present);
    if (!(sum > 0)) {
        even = 1;
        sum = total_weight(l, size, fragment, may_drop, 1, &present);
    }
    out->nobody = present == 0;
    out->dropped = may_drop && tac__lsgd_drops(&l->config, at, fragment, rank);
    out->uniform = even && present == size;
    out->share = out->dropped ? 0 : (even ? 1 : weight(l, rank)) / sum;
}

static void read_view(const tac_localsgd *l, int size, tac__told *out)
{
    double sum = 0, n = 0;
    out->lr = l->cards[0].lr;
    out->attempt_s = NAN;
    for (int r = 0; r < size; r++) {
        const tac__card *c = &l->cards[r];
        if (!isnan(c->loss)) sum += c->loss, n++;
        /* fmax passes over NaN */
        out->attempt_s = fmax(out->attempt_s, c->attempt_s);
    }
    out->loss = n > 0 ? sum / n : NAN;
}

/* The figures of the synchronisation before. */
static void read_figures(tac_localsgd *l)
{
    double distance2 = 0, cosine = 0;
    for (int r = 0; r < l->size; r++) {
        const tac__card *c = &l->cards[r];
        const double norms = sqrt(c->own2) * l->stats.delta_norm;
        distance2 += c->distance2;
        cosine += norms > 0 ? c->dot / norms : NAN;
    }
    l->stats.consensus_distance = fmax(distance2 / l->size, 0);
    l->stats.cosine = cosine / l->size;
}

static void count_dropped(tac_localsgd *l, int64_t fragment)
{
    for (int r = 0; r < l->size; r++)
        l->stats.dropped += tac__lsgd_drops(
            &l->config, (uint64_t)l->clock.attempts, fragment, r);
}

tac_status tac__lsgd_cards(tac_localsgd *l, int level, int64_t fragment,
                           const tac__due *due, tac__told *out)
{
    tac__level *v = &l->levels[level];
    const int outermost = level == l->n_levels - 1;
    const int may_drop = outermost && fragment >= 0 && !due->plain &&
                         !due->end && l->config.drop_probability > 0;
    tac__card mine;
    fill_card(l, level, fragment, due, &mine);
    TAC_TRY(tac__lsgd_gather(v->control, &mine, l->cards, sizeof mine));
    TAC_TRY(compare(l, v));
    *out = (tac__told){0};
    read_view(l, v->size, out);
    share(l, v->size, tac_comm_rank(v->control), fragment, 0, out);
    out->merge_share = out->share;
    out->merge_uniform = out->uniform;
    share(l, v->size, tac_comm_rank(v->control), fragment, may_drop, out);
    if (outermost && !isnan(l->cards[0].distance2)) read_figures(l);
    if (may_drop) count_dropped(l, fragment);
    return TAC_OK;
}
