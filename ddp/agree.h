/* One verdict for all ranks, one message for the user. */
#ifndef TAC_DDP_AGREE_H
#define TAC_DDP_AGREE_H

#include "tacit/comm.h"

/* Collects what this rank's log says at ERROR instead of printing it, so that
 * a failure that every rank meets is told once. */
typedef struct tac__capture {
    char text[2048];
    int armed; /* 0: lines go to stderr as usual */
    int rank, world;
} tac__capture;

/* A tac_log_fn whose arg is a tac__capture. */
void tac__capture_log(void *arg, tac_log_level level, const char *line);

/* Collective over `comm`: every rank gives its own status; all get the failure
 * of the lowest failing rank, whose message goes to stderr once ("... (and N
 * other ranks)"). Disarms nothing. */
tac_status tac__agree_verdict(tac_comm *comm, tac__capture *c, tac_status mine);

/* Prints what was captured, if anything, and empties it. */
void tac__capture_flush(tac__capture *c);

#endif
