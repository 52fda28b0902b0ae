/* The body of one rank of ddp_train. */
#ifndef TAC_DDP_TRAIN_H
#define TAC_DDP_TRAIN_H

#include "world.h"

/* A tac__rank_main. Writes rank->exit_code. */
void tac__train(tac__rank *rank);

#endif
