/* predict.c: bytes and synchronisations of a run, from the clock that training
 * asks. Costs a few operations an attempt and fragment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "impl.h"

typedef struct prediction {
    const tac_localsgd_config *c;
    const tac_localsgd_model *m;
    int world, levels;
    tac_codec *codec; /* NULL: none */
    tac__clock clock;
    size_t *n;       /* (fragments) elements */
    uint64_t *calls; /* (levels, fragments) of codecs */
    tac_localsgd_prediction out;
} prediction;

static int group_size(const prediction *p, int level)
{
    return level < p->levels - 1 ? p->c->levels[level].ranks : p->world;
}

static void add(prediction *p, size_t logical, size_t wire)
{
    p->out.bytes_logical += logical;
    p->out.bytes_wire += wire;
}

static void send_plain(prediction *p, int64_t f)
{
    add(p, 4 * p->n[f], 4 * p->n[f]);
}

static void send_coded(prediction *p, int level, int64_t f)
{
    uint64_t *calls = &p->calls[level * p->clock.fragments + f];
    const size_t n = p->n[f];
    if (n == 0) return;
    add(p, 4 * n,
        p->codec && group_size(p, level) > 1
            ? tac_codec_wire_bytes_at(p->codec, n, NULL, *calls)
            : 4 * n);
    ++*calls;
}

static void sync_one(prediction *p, int level, int64_t f, const tac__due *due)
{
    const tac_localsgd_model *m = p->m;
    const size_t merged = 4 * m->merged + 8 * m->counters;
    const int coded = !due->plain && p->codec != NULL;
    if (f == 0) add(p, merged, merged);
    if (coded)
        send_coded(p, level, f);
    else
        send_plain(p, f);
    if (due->end && !due->plain && p->c->stale == TAC_STALE_EAGER)
        send_plain(p, f); /* the mean of anchors */
}

static void sync_all(prediction *p, const tac__due *due)
{
    const tac__clock *k = &p->clock;
    for (int64_t f = 0; f < k->fragments; f++) {
        if (tac__clock_is_due(k, due, k->attempts, f))
            sync_one(p, p->levels - 1, f, due);
        else if (due->inner >= 0)
            sync_one(p, due->inner, f, due);
    }
    p->out.syncs++;
    tac__clock_note_clean(&p->clock, due);
}

static void attempt(prediction *p, double lr)
{
    tac__clock_tick(&p->clock, lr);
    const tac__due due = tac__clock_due(&p->clock, p->clock.attempts);
    if (due.any) sync_all(p, &due);
    if (due.any && !due.end && tac__clock_ends(&p->clock))
        tac__clock_next(&p->clock, lr, NAN, NAN);
}

static void finish(prediction *p)
{
    const tac__due due = {.any = 1, .end = 1, .inner = -1};
    if (p->clock.clean != p->clock.attempts) sync_all(p, &due);
}

/* ---- setting up -----------------------------------------------------------
 */

static uint64_t count_fragments(prediction *p)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->m->layers; i++)
        p->n[tac_localsgd_fragment_of(p->c, i, p->m->layers)] +=
            p->m->params[i];
    for (int64_t f = 0; f < (p->c->fragments > 1 ? p->c->fragments : 1); f++)
        bytes += p->codec ? tac_codec_wire_bytes(p->codec, p->n[f], NULL)
                          : 4 * p->n[f];
    return bytes;
}

static tac_status open(tac_context *ctx, prediction *p)
{
    const size_t n = (size_t)(p->c->fragments > 1 ? p->c->fragments : 1);
    p->levels = p->c->n_levels > 0 ? p->c->n_levels : 1;
    p->n = calloc(n, sizeof *p->n);
    p->calls = calloc(n * (size_t)p->levels, sizeof *p->calls);
    if (!p->n || !p->calls)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a prediction");
    if (p->c->codec) TAC_TRY(tac_codec_create(ctx, p->c->codec, &p->codec));
    tac__clock_open(&p->clock, p->c, count_fragments(p));
    return TAC_OK;
}

static tac_status check(tac_context *ctx, const tac_localsgd_config *c,
                        const tac_localsgd_model *m, int world,
                        int64_t attempts)
{
    TAC_TRY(tac_localsgd_check(ctx, c, world, m->layers));
    if (c->schedule.kind == TAC_SYNC_ADACOMM ||
        c->schedule.kind == TAC_SYNC_BUDGET)
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                        "intervals that depend on losses or times can't be "
                        "predicted; count a short run instead");
    if (attempts < 0 || (c->total > 0 && attempts > c->total))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "%lld attempts of a run of %lld can't be predicted",
                        (long long)attempts, (long long)c->total);
    return TAC_OK;
}

tac_status tac_localsgd_predict(tac_context *ctx, const tac_localsgd_config *c,
                                const tac_localsgd_model *m, int world,
                                int64_t attempts, double (*lr)(void *, int64_t),
                                void *arg, tac_localsgd_prediction *out)
{
    prediction p = {.c = c, .m = m, .world = world};
    if (!c || !m || !out || world < 1) return TAC_ERR_ARG;
    TAC_TRY(check(ctx, c, m, world, attempts));
    const tac_status s = open(ctx, &p);
    for (int64_t n = 1; s == TAC_OK && n <= attempts; n++)
        attempt(&p, lr ? lr(arg, n) : 1);
    if (s == TAC_OK) {
        finish(&p);
        *out = p.out;
    }
    tac_codec_destroy(p.codec);
    free(p.n);
    free(p.calls);
    return s;
}
