/* ddp_train without its main: what tac_launch runs on every rank. */
#ifndef TAC_DDP_TRAIN_H
#define TAC_DDP_TRAIN_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "rank.h"
#include "tacit/launch.h"

/* The argument of the body, shared by ranks that are threads. */
typedef struct tac__train_program {
    const tac_options *options;
    const tac_train_config *config;
    const volatile sig_atomic_t *stop; /* set by a signal */
    void (*catch_signals)(void);       /* called when a stop can be honoured */
    pthread_mutex_t lock;
    tac_data data;    /* of all ranks of this process, which read the same */
    int opened;       /* it is there */
    atomic_int begun; /* training is under way, or was */
} tac__train_program;

void tac__train_program_init(tac__train_program *p, const tac_options *options,
                             const tac_train_config *config);
void tac__train_program_close(tac__train_program *p);

/* Ranks, threads, transport, time limits and exit codes of a run. */
tac_launch_config tac__train_launch(const tac_train_config *config);

/* One rank's whole run over data that it retains; *begun: there was training.
 */
tac_status tac__train_rank(tac__rank *rank, const tac_data *data, int *begun);

/* A tac_rank_fn over a tac__train_program. */
tac_status tac__train(tac_context *ctx, tac_comm *comm, void *program);

#endif
