/* fold.h: any number of ranks as a power of two.
 *
 * Of the first 2 `extra` ranks, each even one gives its elements to its odd
 * neighbour, takes no part in what follows, and gets the result from it. The
 * others are numbered 0 .. p2-1 in rank order. */
#ifndef TACIT_COMM_FOLD_H
#define TACIT_COMM_FOLD_H

#include "comm_impl.h"

typedef struct tac__fold {
    int p2, extra;
    int id; /* this rank's number, -1: folded away */
} tac__fold;

static inline tac__fold tac__fold_of(const tac_comm *c)
{
    tac__fold f = {1, 0, 0};
    while (f.p2 * 2 <= c->size) f.p2 *= 2;
    f.extra = c->size - f.p2;
    if (c->rank >= 2 * f.extra)
        f.id = c->rank - f.extra;
    else
        f.id = c->rank % 2 ? c->rank / 2 : -1;
    return f;
}

static inline int tac__fold_rank(tac__fold f, int id)
{
    return id < f.extra ? 2 * id + 1 : id + f.extra;
}

/* Does this rank stand for its even neighbour too? */
static inline int tac__fold_doubled(const tac_comm *c, tac__fold f)
{
    return c->rank < 2 * f.extra && c->rank % 2 == 1;
}

#endif
