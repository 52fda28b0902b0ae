/* The world of a program: N ranks as threads, or one rank of an MPI job. */
#ifndef TAC_DDP_WORLD_H
#define TAC_DDP_WORLD_H

#include <signal.h>

#include "agree.h"
#include "launch.h"
#include "tacit/comm.h"
#include "tacit/data.h"
#include "tacit/train_config.h"

/* What one rank is given. */
typedef struct tac__rank {
    tac_context *ctx;
    tac_comm *comm;
    tac__capture *capture;
    const tac_options *options;
    tac_train_config config;     /* this rank's own copy */
    const tac_data *shared_data; /* of thread ranks; NULL: open your own */
    const volatile sig_atomic_t *stop; /* set by a signal */
    void (*catch_signals)(void);       /* called when a stop can be honoured */
    int local_ranks, cpus, rank, world;
    int exit_code; /* written by the body */
} tac__rank;

typedef void tac__rank_main(tac__rank *self);

typedef struct tac__world {
    tac__launch launch;
    const tac_options *options;
    const tac_train_config *config;
    tac_status parsed;       /* how reading the options went */
    const char *parse_error; /* the message if it failed */
    const volatile sig_atomic_t *stop;
    void (*catch_signals)(void);
    tac_options_action action; /* other than RUN: print, and that is all */
    void (*print)(const tac_options *o, tac_options_action action);
    tac__rank_main *main;
} tac__world;

/* Runs the ranks and returns the process's exit code. */
int tac__world_threads(const tac__world *w);
int tac__world_mpi(const tac__world *w);

/* The exit code that belongs to a failure. */
int tac__exit_code(tac_status s);

/* Shared by the two: the context and communicator options of a rank. */
tac_context_config tac__world_context_config(const tac__world *w,
                                             tac__capture *c, int rank,
                                             int world, int local_ranks);
tac_comm_config tac__world_comm_config(const tac_train_config *c);

#endif
