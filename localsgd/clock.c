/* clock.c: see clock.h. */
#include <math.h>

#include "clock.h"

static void decide(tac__clock *k)
{
    k->begin = k->attempts;
    k->length = tac__rule_next(k);
}

void tac__clock_open(tac__clock *k, const tac_localsgd_config *c,
                     uint64_t bytes)
{
    *k = (tac__clock){.config = c,
                      .fragments = c->fragments > 1 ? c->fragments : 1,
                      .lr = NAN,
                      .lr_first = NAN,
                      .loss = NAN,
                      .loss_first = NAN,
                      .attempt_s = NAN,
                      .bytes = bytes};
    if (c->schedule.start == 0 && !tac__rule_needs_lr(c)) decide(k);
}

void tac__clock_tick(tac__clock *k, double lr)
{
    if (isnan(k->lr_first)) k->lr = k->lr_first = lr;
    if (k->length == 0 && k->config->schedule.start == 0) decide(k);
    k->attempts++;
}

/* n - begin without overflow; lengths may be INT64_MAX. */
static int is_offset_due(const tac__clock *k, int64_t n, int64_t fragment)
{
    const int64_t p = k->fragments, h = k->length, at = n - k->begin;
    if (h == 0 || at <= 0) return 0;
    /* floor(fragment * h / p) */
    const int64_t offset = h / p * fragment + h % p * fragment / p;
    return at == (offset > 0 ? offset : h);
}

/* The outermost level below the last whose period ends; -1: none. */
static int inner_due(const tac__clock *k, int64_t n)
{
    const tac_localsgd_config *c = k->config;
    const int64_t since = n - c->schedule.start;
    for (int i = tac__outermost(c) - 1; i >= 0; i--)
        if (since % c->levels[i].every == 0) return i;
    return -1;
}

tac__due tac__clock_due(const tac__clock *k, int64_t n)
{
    const tac_localsgd_config *c = k->config;
    tac__due due = {.inner = -1};
    due.plain = n <= c->schedule.start;
    due.end = c->total > 0 && n == c->total;
    due.any = due.plain || due.end;
    if (due.any) return due;
    due.inner = inner_due(k, n);
    due.any = due.inner >= 0;
    for (int64_t f = 0; f < k->fragments && !due.any; f++)
        due.any = is_offset_due(k, n, f);
    return due;
}

int tac__clock_is_due(const tac__clock *k, const tac__due *due, int64_t n,
                      int64_t fragment)
{
    return due->plain || due->end || is_offset_due(k, n, fragment);
}

int tac__clock_ends(const tac__clock *k)
{
    const int64_t start = k->config->schedule.start;
    if (k->attempts <= start) return k->attempts == start;
    return k->length > 0 && k->attempts - k->begin == k->length;
}

void tac__clock_next(tac__clock *k, double lr, double loss, double attempt_s)
{
    k->last = k->attempts - k->begin;
    k->lr = lr;
    if (!isnan(loss)) k->loss = loss;
    if (isnan(k->loss_first)) k->loss_first = loss;
    k->attempt_s = attempt_s;
    decide(k);
}

void tac__clock_note_clean(tac__clock *k, const tac__due *due)
{
    const tac_localsgd_config *c = k->config;
    const int regular = k->fragments == 1 && c->delay == 0 && c->alpha == 0 &&
                        c->drop_probability == 0 &&
                        tac__clock_is_due(k, due, k->attempts, 0);
    if (due->plain || due->end || regular) k->clean = k->attempts;
}
