/* config_describe.c: a configuration as one line of text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tacit/localsgd_config.h"

typedef struct line {
    char *buf;
    size_t bytes, at;
} line;

/* What does not fit is cut. */
static void TAC_PRINTF(2, 3) say(line *l, const char *fmt, ...)
{
    va_list args;
    if (l->at + 1 >= l->bytes) return;
    va_start(args, fmt);
    const int n = vsnprintf(l->buf + l->at, l->bytes - l->at, fmt, args);
    va_end(args);
    if (n > 0) l->at += (size_t)n;
    if (l->at > l->bytes - 1) l->at = l->bytes - 1;
}

static void say_every(line *l, int64_t every)
{
    if (every == INT64_MAX)
        say(l, "at the end only");
    else
        say(l, "every %" PRId64, every);
}

static void say_schedule(line *l, const tac_localsgd_config *c)
{
    const tac_sync_schedule *s = &c->schedule;
    switch (s->kind) {
    case TAC_SYNC_FIXED: break;
    case TAC_SYNC_QSR: say(l, "qsr(%g,%g) ", s->alpha, s->power); break;
    case TAC_SYNC_ADACOMM: say(l, "adacomm "); break;
    case TAC_SYNC_BUDGET: say(l, "budget(%g B/s) ", s->bytes_per_second); break;
    case TAC_SYNC_CUSTOM: say(l, "custom "); break;
    }
    if (c->n_levels == 0) say_every(l, s->every);
    for (int i = 0; i < c->n_levels; i++)
        say(l, "%s%d ranks every %" PRId64, i ? ", " : "", c->levels[i].ranks,
            c->levels[i].every);
    if (s->min_every) say(l, ", at least %" PRId64, s->min_every);
    if (s->max_every) say(l, ", at most %" PRId64, s->max_every);
    if (s->start) say(l, ", from attempt %" PRId64, s->start);
    if (c->total) say(l, ", %" PRId64 " attempts in all", c->total);
}

static void say_outer(line *l, const tac_outer *o)
{
    static const char *const names[] = {
        "average", "sgd", "heavy-ball", "nesterov", "slowmo", "adam", "custom"};
    say(l, "; %s", names[o->kind]);
    if (o->kind == TAC_OUTER_AVERAGE || o->kind == TAC_OUTER_CUSTOM) return;
    say(l, " lr %g", o->lr);
    if (o->kind == TAC_OUTER_ADAM)
        say(l, " betas %g %g eps %g", o->momentum, o->beta2, o->eps);
    else if (o->kind != TAC_OUTER_SGD)
        say(l, " momentum %g", o->momentum);
}

static void say_streaming(line *l, const tac_localsgd_config *c)
{
    if (c->fragments > 1)
        say(l, "; %" PRId64 " %s fragments", c->fragments,
            c->strided ? "strided" : "contiguous");
    if (c->delay)
        say(l, "; delay %" PRId64 "%s", c->delay,
            c->stale == TAC_STALE_EAGER ? " eager" : "");
    if (c->alpha > 0) say(l, "; alpha %g", c->alpha);
}

static void say_rest(line *l, const tac_localsgd_config *c)
{
    if (c->codec && strcmp(c->codec, "none") != 0)
        say(l, "; codec %s", c->codec);
    if (c->weighting == TAC_WEIGHT_SAMPLES) say(l, "; weighted by samples");
    if (c->weighting == TAC_WEIGHT_STEPS) say(l, "; weighted by steps");
    if (c->late == TAC_LATE_DROP) say(l, "; deadline %g s", c->deadline_s);
    if (c->drop_probability > 0)
        say(l, "; drops %g seed %" PRIu64, c->drop_probability, c->seed);
}

const char *tac_localsgd_describe(const tac_localsgd_config *c, char *buf,
                                  size_t bytes)
{
    line l = {buf, bytes, 0};
    if (bytes == 0) return "";
    buf[0] = '\0';
    say_schedule(&l, c);
    say_outer(&l, &c->outer);
    say_streaming(&l, c);
    say_rest(&l, c);
    return buf;
}
