/* sync.c: one synchronisation of a fragment: compare and tell, exchange,
 * apply. Nothing is written before everything has arrived. */
#include <math.h>
#include <string.h>

#include "impl.h"

/* ---- figures --------------------------------------------------------------
 */

/* Of a plain average: there is no delta to speak of. */
static void plain_figures(tac_localsgd *l, const tac__fragment *f,
                          const float *mean)
{
    double sum = 0;
    for (size_t i = 0; i < f->stretches; i++) {
        const tac__stretch *s = &l->stretches[f->first + i];
        sum += tac__distance2(s->data, mean + (s->at - f->at), s->n);
    }
    tac__stats_figures(l, sum, NAN, NAN, NAN);
}

/* Own deltas are computed once more, block by block, as the exchange has
 * overwritten them. */
static void delta_figures(tac_localsgd *l, const tac__fragment *f,
                          const float *mean)
{
    enum { BLOCK = 1024 };
    float own[BLOCK];
    double distance2 = 0, dot = 0, own2 = 0;
    for (size_t i = 0; i < f->stretches; i++) {
        const tac__stretch *s = &l->stretches[f->first + i];
        for (size_t at = 0; at < s->n; at += BLOCK) {
            const size_t n = s->n - at < BLOCK ? s->n - at : BLOCK;
            const float *d = mean + (s->at - f->at) + at;
            tac__difference(own, l->anchor + s->at + at, s->data + at, 1, n);
            distance2 += tac__distance2(own, d, n);
            dot += tac__dot(own, d, n);
            own2 += tac__sum_squares(own, n);
        }
    }
    tac__stats_figures(l, distance2, dot, own2, tac__sum_squares(mean, f->n));
}

/* ---- the ways -------------------------------------------------------------
 */

/* Before `start`, at the end, and in groups, the average is taken as it is. */
static double mixing(const tac_localsgd *l, int level, const tac__due *due)
{
    const int outermost = level == l->n_levels - 1;
    return due->plain || due->end || !outermost ? 0 : l->config.alpha;
}

/* The parameters themselves, f32; the anchor follows the outermost. */
static tac_status plainly(tac_localsgd *l, int level, tac__fragment *f,
                          const tac__due *due, const tac__told *told)
{
    const int outermost = level == l->n_levels - 1;
    const float *src = NULL;
    if (told->uniform && f->stretches == 1)
        src = l->stretches[f->first].data;
    else
        tac__gather_params(l, f, l->staging,
                           told->uniform ? 1.0f : (float)told->share);
    TAC_TRY(tac__exchange(l, level, f, src, l->staging, told->uniform, 0));
    if (outermost) plain_figures(l, f, l->staging);
    if (told->nobody) return TAC_OK;
    if (!told->dropped) tac__scatter(l, f, l->staging, mixing(l, level, due));
    if (!outermost || !l->anchor) return TAC_OK;
    if (f->n > 0) memcpy(l->anchor + f->at, l->staging, f->n * sizeof(float));
    f->version++;
    return TAC_OK;
}

static float factor(const tac__told *told)
{
    return told->uniform ? 1.0f : (float)told->share;
}

/* A group's average of compressed deltas; the anchor stays. */
static tac_status in_group(tac_localsgd *l, int level, tac__fragment *f,
                           const tac__told *told)
{
    tac__gather_delta(l, f, l->staging, factor(told));
    TAC_TRY(tac__exchange(l, level, f, NULL, l->staging, told->uniform, 1));
    tac__add_scaled(l->staging, l->anchor + f->at, -1, f->n);
    tac__copy_scaled(l->staging, l->staging, -1, f->n);
    tac__scatter(l, f, l->staging, 0);
    return TAC_OK;
}

static tac_status by_delta(tac_localsgd *l, int level, tac__fragment *f,
                           const tac__due *due, const tac__told *told)
{
    tac__gather_delta(l, f, l->staging, factor(told));
    TAC_TRY(tac__exchange(l, level, f, NULL, l->staging, told->uniform, 1));
    delta_figures(l, f, l->staging);
    if (told->nobody) return TAC_OK;
    tac__outer_step(l, f, l->staging, told->lr);
    if (!told->dropped)
        tac__scatter(l, f, l->anchor + f->at, mixing(l, level, due));
    return TAC_OK;
}

static tac_status one_way(tac_localsgd *l, int level, int64_t fragment,
                          const tac__due *due, const tac__told *told)
{
    tac__fragment *f = &l->fragments[fragment];
    if (due->plain || !l->anchor) return plainly(l, level, f, due, told);
    if (level < l->n_levels - 1)
        return l->levels[level].codec ? in_group(l, level, f, told)
                                      : plainly(l, level, f, due, told);
    if (l->config.delay == 0) return by_delta(l, level, f, due, told);
    if (tac__is_whole(&l->config))
        return due->end ? tac__flight_end(l, fragment, told)
                        : tac__flight_exchange(l, fragment, told);
    return due->end ? by_delta(l, level, f, due, told)
                    : tac__flight_send(l, fragment, told);
}

static void note(tac_localsgd *l, int level, int64_t fragment)
{
    tac__fragment *f = &l->fragments[fragment];
    l->done++;
    if (level == l->n_levels - 1) {
        f->samples = l->samples;
        f->steps = l->steps;
        f->sent = l->clock.attempts;
    }
}

tac_status tac__sync_fragment(tac_localsgd *l, int level, int64_t fragment,
                              const tac__due *due, tac__told *told)
{
    TAC_TRY(
        tac__lsgd_poison(l, tac__lsgd_cards(l, level, fragment, due, told)));
    if (fragment == 0) TAC_TRY(tac__merge_exchange(l, level, told));
    TAC_TRY(one_way(l, level, fragment, due, told));
    if (fragment == 0) tac__merge_write(l);
    note(l, level, fragment);
    return TAC_OK;
}
