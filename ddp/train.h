/* ddp_train without its main: what tac_launch runs on every rank. */
#ifndef TAC_DDP_TRAIN_H
#define TAC_DDP_TRAIN_H

#include <signal.h>
#include <stdatomic.h>

#include "tacit/launch.h"
#include "tacit/options.h"
#include "tacit/train_config.h"

/* The argument of the body, shared by ranks that are threads. */
typedef struct tac__train_program {
    const tac_options *options;
    const tac_train_config *config;
    const volatile sig_atomic_t *stop; /* set by a signal */
    void (*catch_signals)(void); /* called when a stop can be honoured, once a
                                    process */
    atomic_flag caught;
    atomic_int begun; /* training is under way, or was */
} tac__train_program;

#define TAC__TRAIN_PROGRAM_INIT                     \
    {                                               \
        NULL, NULL, NULL, NULL, ATOMIC_FLAG_INIT, 0 \
    }

/* Ranks, threads, transport, time limits and exit codes of a run. */
tac_launch_config tac__train_launch(const tac_train_config *config);

/* A tac_rank_fn over a tac__train_program. */
tac_status tac__train(tac_context *ctx, tac_comm *comm, void *program);

#endif
