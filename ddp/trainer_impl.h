/* A trainer: its configuration, and at most one run at a time. */
#ifndef TAC_DDP_TRAINER_IMPL_H
#define TAC_DDP_TRAINER_IMPL_H

#include "run.h"

struct tac_trainer {
    tac_trainer_config config;
    tac__rank rank;
    tac__capture own_capture;   /* of a context with a log of its own */
    tac_options *owned;         /* options that the trainer made; NULL: none */
    char resume[1024];          /* text that rank.config.resume points to */
    int communicates;           /* some rank has callbacks about steps */
    tac_trainer_control wanted; /* by this rank's callbacks */
    tac__run run;
    int open;      /* run is: 1: to evaluate; 2: to train */
    int trained;   /* it was */
    float *logits; /* of the last prediction */
    int32_t *labels;
    tac__part part; /* of an evaluation of another dataset */
};

/* What a run is open for. */
enum { TAC__CLOSED, TAC__TO_EVALUATE, TAC__TO_TRAIN };

/* trainer.c: collective: opens the run if it is not. */
tac_status tac__trainer_open(tac_trainer *t, int to);
/* As tac_trainer_create; `options` are those that `config->config`
 * was read into, and are borrowed; NULL: made here. */
tac_status tac__trainer_create(tac_context *ctx, tac_comm *comm,
                               const tac_trainer_config *config,
                               const tac_options *options, tac_trainer **out);

/* trainer_config.c: this rank's own copy of what it is told. */
tac_status tac__trainer_options(tac_trainer *t, const tac_options *options);

/* trainer_data.c: collective: the datasets given, or those named, which the
 * ranks of a process share. */
tac_status tac__trainer_data(tac_trainer *t);

/* training_args.c: into `o`, as if they were options. */
tac_status tac__training_args_read(tac_context *ctx, const tac_training_args *a,
                                   tac_options *o);

#endif
