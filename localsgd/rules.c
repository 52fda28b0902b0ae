/* rules.c: how long the next interval is.
 *
 * Every rule is a pure function of what all ranks know, so they agree. Results
 * are at least 1; the end of the run cuts the last interval elsewhere. */
#include <math.h>

#include "clock.h"

/* Intervals longer than any run. */
#define MOST 9.0e15

static int64_t whole(double h)
{
    if (!(h >= 1)) return 1; /* also NaN */
    return (int64_t)(h < MOST ? h : MOST);
}

static int64_t clamp(const tac_sync_schedule *s, int64_t h)
{
    if (s->min_every > 0 && h < s->min_every) h = s->min_every;
    if (s->max_every > 0 && h > s->max_every) h = s->max_every;
    return h > 1 ? h : 1;
}

static int64_t qsr(const tac__clock *k)
{
    const tac_sync_schedule *s = &k->config->schedule;
    const double h =
        k->lr > 0 ? floor(pow(s->alpha / k->lr, s->power)) : (double)s->every;
    return h > (double)s->every ? whole(h) : s->every;
}

static int64_t adacomm(const tac__clock *k)
{
    const tac_sync_schedule *s = &k->config->schedule;
    const double h =
        ceil((double)s->every * sqrt(k->loss / k->loss_first *
                                     (k->lr > 0 ? k->lr_first / k->lr : 1)));
    return isfinite(h) ? whole(h) : s->every;
}

static int64_t budget(const tac__clock *k)
{
    const tac_sync_schedule *s = &k->config->schedule;
    const double h =
        ceil((double)k->bytes / (s->bytes_per_second * k->attempt_s));
    return isnan(k->attempt_s) ? s->every : whole(h);
}

static int64_t custom(const tac__clock *k)
{
    const tac_sync_schedule *s = &k->config->schedule;
    const tac_sync_view view = {.attempts = k->attempts,
                                .last = k->last,
                                .lr = k->lr,
                                .lr_first = k->lr_first,
                                .loss = k->loss,
                                .loss_first = k->loss_first,
                                .attempt_s = k->attempt_s,
                                .bytes = (size_t)k->bytes};
    return s->next(s->arg, &view);
}

int64_t tac__rule_next(const tac__clock *k)
{
    const tac_localsgd_config *c = k->config;
    const tac_sync_schedule *s = &c->schedule;
    if (c->n_levels > 0) return c->levels[c->n_levels - 1].every;
    switch (s->kind) {
    case TAC_SYNC_FIXED: return s->every;
    case TAC_SYNC_QSR: return clamp(s, qsr(k));
    case TAC_SYNC_ADACOMM: return clamp(s, adacomm(k));
    case TAC_SYNC_BUDGET: return clamp(s, budget(k));
    case TAC_SYNC_CUSTOM: return clamp(s, custom(k));
    }
    return 1;
}

int tac__rule_needs_lr(const tac_localsgd_config *c)
{
    return c->schedule.kind == TAC_SYNC_QSR ||
           c->schedule.kind == TAC_SYNC_CUSTOM;
}
