/* What one rank is given to train with. */
#ifndef TAC_DDP_RANK_H
#define TAC_DDP_RANK_H

#include <signal.h>

#include "agree.h"
#include "place.h"
#include "tacit/data.h"
#include "tacit/train_config.h"

typedef struct tac__rank {
    tac_context *ctx;
    tac_comm *comm;
    tac__capture *capture;
    const tac_options *options;
    tac_train_config config;           /* this rank's own copy */
    const volatile sig_atomic_t *stop; /* set by a signal; NULL: none */
    tac__place place;
    int rank, world;
} tac__rank;

#endif
