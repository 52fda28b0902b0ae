/* tacit/optim.h: SGD, AdamW, Adafactor and 8-bit AdamW over the flat arenas.
 *
 *   sgd        torch.optim.SGD's definition                 0 or 4 bytes a
 *              parameter of state (momentum)
 *   adamw      torch.optim.AdamW (Loshchilov & Hutter 2019) 8
 *   adafactor  Hugging Face's Adafactor (Shazeer & Stern    4*(rows+cols) a
 *              2018), factored for two or more dimensions   matrix
 *   adamw8bit  block-wise 8-bit AdamW (Dettmers et al.      2 + 8/256
 *              2021; bitsandbytes' names and defaults)
 *
 * State is f32 (f64 for f64 parameters) or as said, never 16-bit: an epsilon of
 * 1e-8 is 0 in f16. Parameters of f16 or bf16 are updated in f32 and rounded
 * back, to nearest or stochastically (`stochastic_rounding`); to nearest, small
 * updates vanish, which is worth a warning.
 *
 * The scalars of a step (learning rate, loss scale, clipping factor, found_inf,
 * bias corrections, counter of applied steps) live in device memory, and
 * nothing of a step is read by the host. A schedule advances with applied
 * steps. No optimizer allocates after its creation.
 *
 * A step: perhaps tac_optimizer_set_grad_scale and tac_optimizer_check (both by
 * tacit/scaler.h); perhaps tac_optimizer_clip; tac_optimizer_step.
 * Thread-safety: one thread at a time an optimizer. */
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
    TAC_OPTIMIZER_ADAMW,
    TAC_OPTIMIZER_ADAFACTOR,
    TAC_OPTIMIZER_ADAMW8BIT
} tac_optimizer_kind;

/* Which parameters are weight-decayed; TAC_PARAM_NO_DECAY ones never are. */
typedef enum tac_decay_rule {
    TAC_DECAY_MATRICES, /* those with two or more dimensions (default) */
    TAC_DECAY_ALL       /* all, as PyTorch without parameter groups */
} tac_decay_rule;

/* Parameters whose name fits a pattern, with settings of their own. The first
 * group that fits counts. Every field counts, too: an lr_scale that was left
 * out is 0, and its parameters stand still. */
typedef struct tac_param_group {
    const char *match;   /* as in fnmatch(3): "*.bias", "conv*" */
    double lr_scale;     /* multiplies the learning rate */
    double weight_decay; /* whatever `decay` says; NAN: as without the group */
    int optim_bits;      /* adamw8bit: 32 keeps f32 moments; 0: as without */
} tac_param_group;

typedef struct tac_optimizer_config {
    size_t struct_size;
    tac_optimizer_kind kind;
    double lr; /* NAN for Adafactor with relative_step: there is none */
    double weight_decay;
    tac_decay_rule decay;
    double momentum, dampening; /* SGD */
    int nesterov;               /* SGD */
    double beta1, beta2, eps;   /* the AdamWs; Adafactor: beta1, NAN for none */
    /* Adafactor */
    double eps1, eps2, clip_threshold, decay_rate;
    int scale_parameter, relative_step, warmup_init;
    /* adamw8bit: tensors of fewer elements keep f32 moments (4096) */
    size_t min_8bit_size;
    /* Parameters of 16 bits */
    int stochastic_rounding;
    uint64_t seed;                 /* of it */
    const tac_param_group *groups; /* copied, patterns included */
    size_t n_groups;
    const tac_allocator *state; /* of the moments; NULL: the device's; copied */
} tac_optimizer_config;

/* SGD: lr 1e-3, no momentum, dampening, Nesterov or decay.
 * AdamW, adamw8bit: lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 1e-2.
 * Adafactor: no lr, eps1 1e-30, eps2 1e-3, clip_threshold 1, decay_rate -0.8,
 * no beta1, no weight decay, scale_parameter and relative_step on, warmup_init
 * off. */
TAC_API tac_optimizer_config tac_optimizer_defaults(tac_optimizer_kind kind);
/* "sgd", "adamw", "adafactor", "adamw8bit". Errors: ARG, with what there is. */
TAC_API tac_status tac_optimizer_parse(tac_context *ctx, const char *name,
                                       tac_optimizer_kind *out);
TAC_API const char *tac_optimizer_kind_name(tac_optimizer_kind kind);

/* An optimizer of `params` (laid out; borrowed for its life). Allocates its
 * state, zero, and all scratch. Frozen parameters have no state and are left
 * alone; if all are frozen, steps do nothing, which is warned about once, as
 * are 16-bit parameters rounded to nearest. The arenas' gradients of frozen
 * parameters must be 0, as a tape leaves them: the norm is that of the arena.
 * Errors: ARG for a negative or non-finite lr, eps or decay, a beta or momentum
 * out of range, Nesterov without momentum or with dampening, a setting that the
 * kind does not have, a group that fits no parameter or only those of earlier
 * groups, optim_bits other than 0
 * and 32 or for another kind than adamw8bit; Adafactor: an lr with
 * relative_step, none without it, warmup_init without it (the message says what
 * to set); adamw8bit of f64 parameters is UNSUPPORTED; STATE before layout;
 * NOMEM. */
TAC_API tac_status tac_optimizer_create(tac_params *params,
                                        const tac_optimizer_config *config,
                                        tac_optimizer **out);
TAC_API void tac_optimizer_destroy(tac_optimizer *o); /* NULL is legal */

/* The learning rate of the next step, enqueued. Errors: ARG if negative or not
 * finite. */
TAC_API tac_status tac_optimizer_set_lr(tac_optimizer *o, double lr,
                                        tac_queue *queue);
/* From now on the learning rate of each step is tac_schedule_lr of the applied
 * steps so far, computed where the scalars are; NULL: as set. Copied. For
 * Adafactor with relative_step the rate is a factor on the relative step, so
 * that schedule->lr is 1. */
TAC_API tac_status tac_optimizer_set_schedule(tac_optimizer *o,
                                              const tac_schedule *schedule);
/* Gradients are *scale (device memory, one f32) times what they should be: the
 * next step and the norm divide by it. Enqueued copy. */
TAC_API tac_status tac_optimizer_set_grad_scale(tac_optimizer *o,
                                                const float *scale,
                                                tac_queue *queue);
/* Divides the gradient arena by grad_scale in place, sets grad_scale to 1, and
 * found_inf and first_bad if an element was not finite, or is not any more (a
 * scale below 1). */
TAC_API tac_status tac_optimizer_unscale(tac_optimizer *o, tac_queue *queue);
/* Sets found_inf if a gradient is not finite: one pass that reads (none if the
 * norm of these gradients is known from tac_optimizer_clip or an earlier call),
 * and, only then, tac_optimizer_first_bad. */
TAC_API tac_status tac_optimizer_check(tac_optimizer *o, tac_queue *queue);
/* The arena element that made found_inf, in device memory; UINT64_MAX: none.
 * tac_params_at turns it into a name. */
TAC_API uint64_t *tac_optimizer_first_bad(const tac_optimizer *o);
/* Forgets found_inf, first_bad and a known norm: gradients are new. Part of no
 * step: whoever set found_inf (a scaler, a test) clears it. */
TAC_API tac_status tac_optimizer_clear_found_inf(tac_optimizer *o,
                                                 tac_queue *queue);
/* Enqueues: norm = 2-norm of all gradients / grad_scale (as the last
 * tac_optimizer_check measured it, if there was one since the last step); the
 * gradients of the next step are multiplied by min(1, max_norm / (norm +
 * 1e-6)). A norm that is not a number gives a factor that is none, as in
 * PyTorch: set found_inf, or let the run diverge visibly. max_norm INFINITY
 * measures alone. Errors: ARG if max_norm < 0. */
TAC_API tac_status tac_optimizer_clip(tac_optimizer *o, double max_norm,
                                      tac_queue *queue);
/* One step on the gradient arena, enqueued. If found_inf is set in the
 * scalars, parameters, moments and counter stay as they are; found_inf stays
 * set until tac_optimizer_clear_found_inf. The clipping factor is 1 again
 * afterwards. */
TAC_API tac_status tac_optimizer_step(tac_optimizer *o, tac_queue *queue);

/* From now on each step that is applied also writes `low`, a copy of the value
 * arena in `dtype` (f16 or bf16; device memory, tac_params_padded elements,
 * element i for element i; borrowed until called again; NULL ends it), rounded
 * to nearest, in the pass that updates. Only what a step updates is written:
 * fill the copy once before (tacit/master.h), and whenever somebody else writes
 * parameters. *kept (may be NULL) becomes 1 if steps will do so; 0 for
 * Adafactor and for parameters that are not f32, where nothing changes. Errors:
 * ARG for another dtype. */
TAC_API tac_status tac_optimizer_keep_low(tac_optimizer *o, void *low,
                                          tac_dtype dtype, int *kept);

/* What it was created with. */
TAC_API tac_params *tac_optimizer_params(const tac_optimizer *o);
/* The scalars in device memory, for whoever sets grad_scale and found_inf. */
TAC_API tac_step_scalars *tac_optimizer_scalars(const tac_optimizer *o);
/* The norm of the last tac_optimizer_clip: one f64 in device memory. */
TAC_API double *tac_optimizer_norm(const tac_optimizer *o);
/* Waits for the queue and copies the scalars to the host: for reports and
 * tests, not for the path of a step. */
TAC_API tac_status tac_optimizer_read(tac_optimizer *o, tac_step_scalars *out,
                                      tac_queue *queue);
/* Kernel calls of one step: contiguous runs of equal settings. */
TAC_API size_t tac_optimizer_runs(const tac_optimizer *o);
/* Bytes of state as allocated, padding included, without scratch; and what an
 * optimizer of `params` (which need no layout) would allocate: for tables made
 * before anything is. */
TAC_API size_t tac_optimizer_state_bytes(const tac_optimizer *o);
TAC_API size_t tac_optimizer_scratch_bytes(const tac_optimizer *o);
TAC_API tac_status tac_optimizer_predict(const tac_params *params,
                                         const tac_optimizer_config *config,
                                         size_t *state, size_t *scratch);
/* What one parameter gets: for dumps, so that no override is silent. */
typedef struct tac_param_settings {
    double lr_scale, weight_decay;
    const char *group; /* the pattern that fit; NULL: none */
    const char
        *state; /* "exp_avg f32, exp_avg_sq f32", "... u8 / 256", "none" */
    size_t state_bytes; /* without padding */
} tac_param_settings;
TAC_API tac_status tac_optimizer_settings(const tac_optimizer *o, size_t param,
                                          tac_param_settings *out);
/* Shows "optimizer.applied" and, by parameter in registration order,
 * "optimizer.<state>.<name>" in its own dtype and with the field's names:
 * momentum_buffer; exp_avg, exp_avg_sq (u8 for 8-bit, with
 * "optimizer.exp_avg_absmax.<name>" f32); exp_avg_sq_row, exp_avg_sq_col. A
 * tac_state_walk_fn. */
TAC_API tac_status tac_optimizer_walk(void *optimizer,
                                      const tac_state_visitor *v);

TAC_END_DECLS

#endif
