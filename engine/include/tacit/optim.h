/* tacit/optim.h: SGD and AdamW as fused passes over the flat arenas.
 *
 * Definitions and defaults are PyTorch's (torch.optim.SGD, AdamW); the moments
 * have the parameters' dtype and layout. The scalars of a step (learning rate,
 * loss scale, clipping factor, found_inf, bias corrections, counter of applied
 * steps) live in device memory, and nothing of a step is read by the host.
 *
 * A step: tac_optimizer_set_lr; perhaps tac_optimizer_clip;
 * tac_optimizer_step. Thread-safety: one thread at a time an optimizer. */
#ifndef TACIT_OPTIM_H
#define TACIT_OPTIM_H

#include <stddef.h>

#include "tacit/kernels.h"
#include "tacit/params.h"
#include "tacit/schedule.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

typedef struct tac_optimizer tac_optimizer;

typedef enum tac_optimizer_kind {
    TAC_OPTIMIZER_SGD,
    TAC_OPTIMIZER_ADAMW
} tac_optimizer_kind;

/* Which parameters are weight-decayed; TAC_PARAM_NO_DECAY ones never are. */
typedef enum tac_decay_rule {
    TAC_DECAY_MATRICES, /* those with two or more dimensions (default) */
    TAC_DECAY_ALL       /* all, as PyTorch without parameter groups */
} tac_decay_rule;

typedef struct tac_optimizer_config {
    size_t struct_size;
    tac_optimizer_kind kind;
    double lr;
    double weight_decay;
    tac_decay_rule decay;
    double momentum, dampening; /* SGD */
    int nesterov;               /* SGD */
    double beta1, beta2, eps;   /* AdamW */
    const tac_allocator *state; /* of the moments; NULL: the device's; copied */
} tac_optimizer_config;

/* SGD: lr 1e-3, no momentum, dampening, Nesterov or decay.
 * AdamW: lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 1e-2. */
TAC_API tac_optimizer_config tac_optimizer_defaults(tac_optimizer_kind kind);
/* "sgd", "adamw". Errors: ARG, with what there is. */
TAC_API tac_status tac_optimizer_parse(tac_context *ctx, const char *name,
                                       tac_optimizer_kind *out);

/* An optimizer of `params` (laid out; borrowed for its life). Allocates its
 * moments, zero. Errors: ARG for a negative or non-finite lr, eps or decay, a
 * beta or momentum out of range, Nesterov without momentum or with dampening;
 * STATE before layout; NOMEM. */
TAC_API tac_status tac_optimizer_create(tac_params *params,
                                        const tac_optimizer_config *config,
                                        tac_optimizer **out);
TAC_API void tac_optimizer_destroy(tac_optimizer *o); /* NULL is legal */

/* The learning rate of the next step, enqueued. Errors: ARG if negative or not
 * finite. */
TAC_API tac_status tac_optimizer_set_lr(tac_optimizer *o, double lr,
                                        tac_queue *queue);
/* Enqueues: norm = 2-norm of all gradients / grad_scale; the gradients of the
 * next step are multiplied by min(1, max_norm / (norm + 1e-6)). A norm that is
 * not a number gives a factor that is none, as in PyTorch: set found_inf, or
 * let the run diverge visibly. max_norm INFINITY measures alone. Errors: ARG if
 * max_norm < 0. */
TAC_API tac_status tac_optimizer_clip(tac_optimizer *o, double max_norm,
                                      tac_queue *queue);
/* One step on the gradient arena, enqueued. If found_inf is set in the
 * scalars, parameters, moments and counter stay as they are. The clipping
 * factor is 1 again afterwards. */
TAC_API tac_status tac_optimizer_step(tac_optimizer *o, tac_queue *queue);

/* The scalars in device memory, for whoever sets grad_scale and found_inf. */
TAC_API tac_step_scalars *tac_optimizer_scalars(const tac_optimizer *o);
/* The norm of the last tac_optimizer_clip: one f64 in device memory. */
TAC_API double *tac_optimizer_norm(const tac_optimizer *o);
/* Waits for the queue and copies the scalars to the host: for reports and
 * tests, not for the path of a step. */
TAC_API tac_status tac_optimizer_read(tac_optimizer *o, tac_step_scalars *out,
                                      tac_queue *queue);
/* Kernel calls of one step: contiguous runs of equal decay. */
TAC_API size_t tac_optimizer_runs(const tac_optimizer *o);
/* Bytes of moments. */
TAC_API size_t tac_optimizer_state_bytes(const tac_optimizer *o);
/* Shows "optimizer.applied" and, by parameter in registration order,
 * "optimizer.<moment>.<name>". A tac_state_walk_fn. */
TAC_API tac_status tac_optimizer_walk(void *optimizer,
                                      const tac_state_visitor *v);

TAC_END_DECLS

#endif
