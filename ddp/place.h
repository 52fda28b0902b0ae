/* Where the ranks are: which share a host, and which a process. */
#ifndef TAC_DDP_PLACE_H
#define TAC_DDP_PLACE_H

#include "tacit/comm.h"

/* Of the ranks beside this one, itself included. */
typedef struct tac__place {
    int host_ranks, host_processes, process_ranks;
    int first_of_process; /* the lowest rank of this process */
    int beside_first;     /* rank 0 is on this host: one clock */
    int cpus;             /* that the ranks of this host may use together */
} tac__place;

/* Collective. */
tac_status tac__place_find(tac_comm *comm, tac__place *out);

#endif
