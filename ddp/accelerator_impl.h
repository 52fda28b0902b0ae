/* What an accelerator's files share. */
#ifndef TAC_DDP_ACCELERATOR_IMPL_H
#define TAC_DDP_ACCELERATOR_IMPL_H

#include "tacit/accelerator.h"

/* Where the present batch is. */
typedef enum tac__stage {
    TAC__IDLE, /* no batch */
    TAC__BATCH,
    TAC__FORWARD,
    TAC__BACKWARD, /* of the last of a group; else IDLE again */
    TAC__STEPPED   /* zero_grad is due */
} tac__stage;

struct tac_accelerator {
    tac_context *ctx;
    tac_comm *comm;
    tac_train_config config;
    tac_train_config asked; /* before what is left open was resolved */
    const char *project_dir;
    FILE *out, *log;
    int rank, world;
    tac_dataset *train, *eval;
    tac_sampler *sampler, *eval_sampler;
    tac_loader *loader, *eval_loader;
    tac_replica *replica; /* NULL: not prepared */
    uint64_t epoch_steps, total_steps;
    tac__stage stage;
    const tac_batch *batch;
    int evaluating;
    int dirty;    /* gradients of earlier batches of the group are there */
    int checked;  /* for inf and NaN, by clip */
    int skipped;  /* the last step was */
    int resuming; /* loaded, and no epoch started since */
    tac_micro micro;
    tac_tensor *logits;
    tac_xent xent;
    tac_metrics kept; /* of training, during an evaluation */
    unsigned char *gathered;
    size_t room;
};

/* Collective: the first failure of any rank, on all. */
tac_status tac__accelerator_agree(tac_accelerator *a, tac_status mine);
/* Is it prepared, and in this stage? `call` was made. */
tac_status tac__accelerator_expect(const tac_accelerator *a, tac__stage stage,
                                   const char *call, const char *missing);
/* In local SGD, has this rank only what fills up the last batch? Then it does
 * not step. */
int tac__accelerator_is_empty(const tac_accelerator *a);
/* ARG if `p`, an argument of tac_accelerator_<call>, is NULL. */
tac_status tac__accelerator_given(const tac_accelerator *a, const void *p,
                                  const char *call, const char *name);
tac_status tac__accelerator_room(tac_accelerator *a, size_t bytes);

#endif
