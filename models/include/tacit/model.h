/* tacit/model.h: networks by name.
 *
 *   mlp, mlp:500,500   H*W*C - (hidden, ReLU, dropout)... - classes; any number
 *                      of hidden layers, one of 500 by default. Parameters
 *                      fc1.weight (500,784), fc1.bias (500), fc2.weight, ...
 *   cnn                conv1 3x3 pad 1, C->32, ReLU, max pool 2x2; conv2 3x3
 *                      pad 1, 32->64, ReLU, max pool 2x2; fc1 to 128, ReLU,
 *                      dropout; fc2 to classes. On 28x28x1 with 10 classes:
 *                      421,642 parameters. H and W at least 4.
 *   linear             one linear layer, softmax regression: fc1.weight
 *                      (classes,784), fc1.bias; no dropout
 *
 * Names and initial values of parameters are PyTorch's. Activations are NHWC,
 * so what a linear layer sees of an image is in the order H,W,C: column
 * (i*W + j)*C + k of fc1.weight belongs to row i, column j, channel k, where
 * PyTorch's flattened NCHW has (k*H + i)*W + j. Convolution weights are
 * (out,in,height,width) in both.
 *
 * Each group of layers is a tape block, so that a tape with recompute keeps
 * only what is between groups.
 *
 * Thread-safety: a model does not change after its creation; forward is
 * bounded by its tape. */
#ifndef TACIT_MODEL_H
#define TACIT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/params.h"
#include "tacit/tape.h"

TAC_BEGIN_DECLS

typedef struct tac_model tac_model;

typedef struct tac_model_config {
    size_t struct_size;
    size_t h, w, c; /* shape of one sample, each at least 1 */
    size_t classes; /* logits a sample, at least 1 */
    float dropout;  /* probability, in [0,1); after each hidden linear layer */
} tac_model_config;

#define TAC_MODEL_CONFIG_INIT                         \
    {                                                 \
        sizeof(tac_model_config), 28, 28, 1, 10, 0.0f \
    }

/* One kind of model, for lists and help. */
typedef struct tac_model_family {
    const char *name; /* "mlp"; NULL ends the table */
    const char *form; /* "mlp[:H1,H2,...]" */
    const char *doc;
} tac_model_family;

/* The table of families, ended by a NULL name. */
TAC_API const tac_model_family *tac_model_families(void);

/* Makes the model that `spec` names and registers its parameters with `params`
 * (borrowed for the model's life, not yet laid out; of no use after a failure,
 * as some parameters may have been registered). `config` NULL means defaults.
 * Values come from tac_params_layout and tac_params_init. Errors: CONFIG for an
 * unknown name or a bad argument (the message names the nearest and all known
 * models), and dropout where there is no place for it; ARG for a shape or
 * probability out of range; NOMEM. */
TAC_API tac_status tac_model_create(tac_params *params, const char *spec,
                                    const tac_model_config *config,
                                    tac_model **out);
TAC_API void tac_model_destroy(tac_model *m); /* NULL is legal */

/* ---- models of one's own --------------------------------------------------
 * Register parameters with tac_params_add, keep their indices in an object of
 * your own, and hand it over with a function that records the operations of
 * ops.h. examples/07_own_model.c is one. */
typedef struct tac_model_ops {
    size_t struct_size; /* sizeof(tac_model_ops) */
    const char *name;   /* what tac_model_spec returns; copied */
    /* Records logits (n,classes) of x (n,H,W,C); called for every step, dry
     * ones included, where there are shapes but no data. Groups of layers may
     * be tape blocks. Must record the same operations for the same shapes on
     * all ranks, and change nothing in impl. */
    tac_status (*forward)(void *impl, tac_tape *tape, tac_tensor *x,
                          tac_tensor **logits);
    void (*destroy)(void *impl); /* NULL: nothing to give up */
    uint64_t flop_forward;       /* a sample; 0: not told */
    uint64_t flop_per_sample;    /* of a training step; 0: not told */
} tac_model_ops;

/* A model of one's own over `params`, to which its parameters have been added.
 * `impl` is the model's if this succeeds, else still the caller's. `config`
 * NULL means defaults; *ops is copied. Errors: ARG, NOMEM. */
TAC_API tac_status tac_model_create_from(tac_params *params,
                                         const tac_model_ops *ops, void *impl,
                                         const tac_model_config *config,
                                         tac_model **out);

/* Where a model comes from: a known one by its `spec`, or one that `build`
 * makes and `spec` (may be NULL) only names. `build` is called by each rank for
 * itself (threads share `arg`), perhaps several times, and ends with
 * tac_model_create_from or tac_model_create. */
typedef struct tac_model_source {
    const char *spec;
    tac_status (*build)(void *arg, tac_params *params,
                        const tac_model_config *config, tac_model **out);
    void *arg;
} tac_model_source;

/* Makes the model of a source. Errors: those of tac_model_create, and what
 * `build` returns; STATE if that returned no model. */
TAC_API tac_status tac_model_open(tac_params *params,
                                  const tac_model_source *source,
                                  const tac_model_config *config,
                                  tac_model **out);

/* Records logits (n,classes) of x (n,H,W,C), or (n,H*W*C) for mlp and linear,
 * both of the tape's dtype. The loss is the caller's: see
 * tac_op_softmax_cross_entropy. Errors: ARG for another shape, or if a model of
 * one's own makes other logits than these; the tape's. */
TAC_API tac_status tac_model_forward(const tac_model *m, tac_tape *tape,
                                     tac_tensor *x, tac_tensor **logits);

/* "mlp:500,500", as given. Owned by the model. */
TAC_API const char *tac_model_spec(const tac_model *m);
TAC_API const tac_model_config *tac_model_config_of(const tac_model *m);

/* Floating-point operations a sample, 2 for each multiply-add of the linear
 * and convolution layers (zeros of the padding included), nothing else. The
 * forward pass alone; and a training step: forward, weight gradients, and
 * input gradients of all layers but the first. The cnn on 28x28x1: 8,482,304
 * and 24,995,328. */
TAC_API uint64_t tac_model_flop_forward(const tac_model *m);
TAC_API uint64_t tac_model_flop_per_sample(const tac_model *m);

TAC_END_DECLS

#endif
