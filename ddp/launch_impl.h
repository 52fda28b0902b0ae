/* The parts of tac_launch. */
#ifndef TAC_DDP_LAUNCH_IMPL_H
#define TAC_DDP_LAUNCH_IMPL_H

#include "agree.h"
#include "launch_detect.h"
#include "tacit/launch.h"

typedef struct tac__world {
    const tac_launch_config *config;
    const char *program;
    tac__launch launch;
    tac_rank_fn *body;
    void *arg;
} tac__world;

/* How a rank fared. Plain numbers, so that ranks can exchange them. */
typedef struct tac__fate {
    int32_t status;
    int32_t told; /* the failure was printed already */
} tac__fate;

/* One rank, from its context to its end. `connect` makes its communicator. */
typedef struct tac__one_rank {
    const tac__world *world;
    int rank, size, local_ranks;
    int threads; /* if nobody has said; 0: of the process's CPUs */
    tac_status (*connect)(struct tac__one_rank *self, tac_context *ctx,
                          tac_comm **out);
    void *connect_arg;
    tac__capture capture;
    tac__fate fate;
    int speaks; /* its message was the one for all */
    int alive;  /* peers may be waited for after the communicator's end */
} tac__one_rank;

/* launch_rank.c: runs the body and fills in fate; the message is still in
 * `capture`. */
void tac__launch_rank(tac__one_rank *self);

/* launch_verdict.c: which of n ranks speaks for all (-1: none failed), and for
 * how many. A rank that failed because another one did is not to blame. */
int tac__launch_speaker(const tac__fate *fates, int n, int *failed);
/* The speaker's message, or one made of its status. */
void tac__launch_speak(tac__one_rank *self, int failed);
int tac__launch_code(const tac__world *w, tac_status s);

/* Runs the ranks and returns the process's exit code. */
int tac__launch_threads(const tac__world *w);
int tac__launch_mpi(const tac__world *w);

#endif
