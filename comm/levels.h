/* levels.h: the children of a communicator that spans hosts.
 *
 * If some host has several ranks, each rank belongs to two more communicators:
 * `local`, the ranks of its host, and `cross`, the ranks with its place in
 * `local` on every host. The hosts may have different numbers of ranks; only
 * the first `carriers` places, which every host has, carry data between hosts.
 *
 * They are the hierarchy's own (algs/hierarchical*): stepped by the parent's
 * step, watched by the parent's watchdog, silent, and in their messages ranks
 * have the parent's numbers. */
#ifndef TACIT_COMM_LEVELS_H
#define TACIT_COMM_LEVELS_H

#include "comm_impl.h"

typedef struct tac__levels {
    tac_comm *local, *cross; /* cross NULL: this rank carries nothing */
    int carriers;            /* places that every host has */
    int even;                /* all hosts have the same number of ranks */
    int *local_ranks;        /* [size of local] the parent's numbers */
    int *cross_ranks;        /* [hosts] */
} tac__levels;

/* Collective, agreed; blocks. Does nothing where there is no hierarchy. Where
 * the children can't be had, the communicator stays without (one warning); an
 * error is returned only if the parent itself has failed. */
tac_status tac__levels_open(tac_comm *c);
/* Local; anything may be missing. */
void tac__levels_close(tac_comm *c);

/* Fails what is under way in the children, because the parent has failed.
 * Caller holds the parent's lock. */
void tac__levels_fail(tac_comm *c);

#endif
