/* clock.h: which attempt synchronises what. No communication, no parameters:
 * training, prediction and tests ask the same clock.
 *
 * Until `start` every attempt is a plain average of everything. Then intervals
 * follow one another; an interval that begins after attempt b and has length H
 * has fragment p due at b + floor(p*H/P), and at b + H those whose offset is 0.
 * Levels below the outermost have their own periods, counted from `start`. The
 * attempt `total` synchronises everything. */
#ifndef TACIT_LOCALSGD_CLOCK_H
#define TACIT_LOCALSGD_CLOCK_H

#include "tacit/localsgd_config.h"

typedef struct tac__clock {
    const tac_localsgd_config *config;
    int64_t fragments;     /* at least 1 */
    int64_t attempts;      /* so far */
    int64_t begin, length; /* of the interval; length 0: undecided */
    int64_t clean;         /* after this attempt all ranks were equal */
    int64_t last;          /* length of the interval before */
    double lr, lr_first;   /* the rule's memory; NaN: not told */
    double loss, loss_first, attempt_s;
    uint64_t bytes; /* on the wire for one synchronisation of everything */
} tac__clock;

/* What is due at an attempt. */
typedef struct tac__due {
    int any;
    int plain; /* all of it, plainly (before `start`) */
    int end;   /* all of it, and blocking */
    int inner; /* level at which fragments meet that are not due at the
                  outermost; -1: none */
} tac__due;

void tac__clock_open(tac__clock *k, const tac_localsgd_config *c,
                     uint64_t bytes);
/* One attempt more. */
void tac__clock_tick(tac__clock *k, double lr);
/* What is due at attempt `n`, the present one or the next. */
tac__due tac__clock_due(const tac__clock *k, int64_t n);
/* Is the fragment due at the outermost level? */
int tac__clock_is_due(const tac__clock *k, const tac__due *due, int64_t n,
                      int64_t fragment);
/* Does the interval end with the present attempt? Then, after its
 * synchronisation, the next is decided with what the ranks told. */
int tac__clock_ends(const tac__clock *k);
void tac__clock_next(tac__clock *k, double lr, double loss, double attempt_s);
/* The present attempt's synchronisation was of this kind: are all ranks equal
 * now? Sets `clean`. */
void tac__clock_note_clean(tac__clock *k, const tac__due *due);

/* rules.c: the length of the next interval. */
int64_t tac__rule_next(const tac__clock *k);
/* Must it know a learning rate before the first interval? */
int tac__rule_needs_lr(const tac_localsgd_config *c);

static inline int tac__outermost(const tac_localsgd_config *c)
{
    return c->n_levels > 0 ? c->n_levels - 1 : 0;
}

#endif
