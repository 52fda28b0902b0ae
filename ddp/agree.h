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
    int told;   /* an error was printed, by this rank or for all of them */
    int agreed; /* all ranks know of the last failure */
} tac__capture;

/* A tac_log_fn whose arg is a tac__capture. */
void tac__capture_log(void *arg, tac_log_level level, const char *line);

/* Lets others find the capture of a context whose log it is. */
tac_status tac__capture_attach(tac_context *ctx, tac__capture *c);
/* NULL: the context's log is somebody else's, and prints at once. */
tac__capture *tac__capture_of(tac_context *ctx);

/* Collective over `comm`: every rank gives its own status; all get the failure
 * of the lowest failing rank, whose message goes to stderr once ("... (and N
 * other ranks)"). Disarms nothing. */
tac_status tac__agree_verdict(tac_comm *comm, tac__capture *c, tac_status mine);

/* Prints what was captured, if anything, and empties it. */
void tac__capture_flush(tac__capture *c);
/* The same for `failed` ranks that have as much to say. */
void tac__capture_speak(tac__capture *c, int failed);

/* For objects that a program makes: whether tac_launch made the context, which
 * holds messages back, or the program. Collective: the first failure of any
 * rank, on all. */
tac_status tac__agree(tac_comm *comm, tac_status mine);

#endif
