/* model_impl.h: the model object and what a family provides. */
#ifndef TAC_MODELS_MODEL_IMPL_H
#define TAC_MODELS_MODEL_IMPL_H

#include "tacit/model.h"

/* A row of the table in model_table.c. */
typedef struct tac__model_ops {
    /* Registers the parameters, counts operations and sets m->impl. `arg` is
     * what follows ':' in the spec, or NULL. Cleans up after itself. */
    tac_status (*build)(tac_model *m, const char *arg);
    tac_status (*forward)(void *impl, tac_tape *t, tac_tensor *x,
                          tac_tensor **logits);
    void (*destroy)(void *impl);
} tac__model_ops;

struct tac_model {
    tac_context *ctx;
    tac_params *params;
    tac_model_config config;
    const tac__model_ops *ops;
    tac__model_ops own; /* `ops` of a model of the program's own */
    void *impl;
    uint64_t macs;       /* multiply-adds of the forward pass, a sample */
    uint64_t first_macs; /* of them the first layer's */
    uint64_t flop_forward, flop_step; /* of a model of the program's own */
    char *spec;
};

extern const tac__model_ops tac__model_mlp, tac__model_cnn, tac__model_linear;

/* Errors: ARG. */
tac_status tac__model_check_config(tac_context *ctx, const tac_model_config *c);

/* Operations of the family at `index` of tac_model_families(). */
const tac__model_ops *tac__model_ops_at(size_t index);

#endif
