/* tacit/tape.h: records the operations of a step and walks them backwards.
 *
 * A step is: tac_tape_begin; operations of ops.h on inputs and parameters;
 * tac_tape_backward on the loss. Activations, intermediate gradients and the
 * records themselves live in the tape's arenas, which are reused from step to
 * step: after the first step of a shape nothing is allocated.
 *
 * A dry step runs the same code with shapes alone: no kernels, no data, no
 * arenas of parameters. It tells in which order gradients become final and
 * how much memory a step needs, before anything large is allocated:
 *
 *     tac_tape_begin(tape, &(tac_tape_step){.flags = TAC_TAPE_DRY});
 *     model forward; tac_tape_backward(tape, loss, 1.0);
 *     tac_tape_final_order(tape, order);
 *     tac_params_layout(params, order, &values, &grads);
 *
 * Thread-safety: one thread at a time a tape. Tapes of different contexts are
 * independent. */
#ifndef TACIT_TAPE_H
#define TACIT_TAPE_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/device.h"
#include "tacit/params.h"
#include "tacit/tensor.h"

TAC_BEGIN_DECLS

typedef struct tac_tape tac_tape;

typedef struct tac_tape_config {
    size_t struct_size; /* set by the INIT macro */
    tac_queue *queue;   /* NULL: the device's default queue */
    uint64_t seed;      /* of dropout masks */
    int recompute;      /* != 0: blocks are run again in backward */
    const tac_allocator *activations; /* NULL: the device's; copied */
} tac_tape_config;

#define TAC_TAPE_CONFIG_INIT                      \
    {                                             \
        sizeof(tac_tape_config), NULL, 0, 0, NULL \
    }

/* A tape over `params` (which may still be without layout while steps are
 * dry) on its device; both borrowed for the tape's life. `config` NULL means
 * defaults. All parameters must have been registered. Errors: NOMEM,
 * UNSUPPORTED if the device has no kernels for the parameters' dtype. */
TAC_API tac_status tac_tape_create(tac_params *params,
                                   const tac_tape_config *config,
                                   tac_tape **out);
TAC_API void tac_tape_destroy(tac_tape *t); /* NULL is legal */

/* Flags of a step; 0 is a training step. */
#define TAC_TAPE_EVAL       1u /* no gradients are recorded, no dropout */
#define TAC_TAPE_DRY        2u /* shapes alone */
#define TAC_TAPE_ACCUMULATE 4u /* add to the gradients of the step before */

typedef struct tac_tape_step {
    unsigned flags;
    uint64_t step; /* optimizer step: enters the dropout key; < 2^32 */
    /* Row i of this step's batch is sample first_sample + i * sample_stride of
     * the global batch (a stride of 0 counts as 1), so that dropout masks
     * depend neither on the number of ranks nor on micro-batches. */
    uint64_t first_sample, sample_stride;
} tac_tape_step;

/* Forgets the step before, with all its tensors, and starts one. NULL: a
 * training step with zeros. Without ACCUMULATE the first contribution to each
 * parameter's gradient will overwrite it. Errors: NOMEM; STATE if parameters
 * have no layout and the step is not dry. */
TAC_API tac_status tac_tape_begin(tac_tape *t, const tac_tape_step *step);

/* A tensor over the caller's device memory, borrowed until the next begin
 * (`data` is ignored in a dry step). `name` (borrowed, may be NULL) is for
 * messages. requires_grad is for floating-point types. Errors: ARG. */
TAC_API tac_status tac_tape_input(tac_tape *t, const char *name,
                                  tac_dtype dtype, int ndim,
                                  const size_t *shape, void *data,
                                  int requires_grad, tac_tensor **out);
/* Parameter `index` as a tensor; NULL if out of range. Owned by the tape. The
 * same tensor on every call, so that a weight may be used several times. */
TAC_API tac_tensor *tac_tape_param(tac_tape *t, size_t index);

/* Called during backward. `ready`: the gradient of a parameter is final in
 * this step, once the work now in `queue` is done. `unused`: nothing of the
 * loss depends on it, or it is frozen; it comes at the end of backward, its
 * gradient is zero (or, with ACCUMULATE, as it was); NULL: `ready` is called
 * instead. A failure stops backward and is returned. The hooks must not use the
 * tape. */
typedef struct tac_grad_hooks {
    void *arg;
    tac_status (*ready)(void *arg, size_t param, tac_queue *queue);
    tac_status (*unused)(void *arg, size_t param, tac_queue *queue);
} tac_grad_hooks;

/* NULL removes them. Copied. Not called in dry steps. */
TAC_API void tac_tape_set_hooks(tac_tape *t, const tac_grad_hooks *hooks);

/* Computes d(scale * loss) for every parameter that was used and every input
 * with requires_grad. `loss` is a scalar made by a loss operation (or by
 * tac_op_scale or tac_op_add of such). Once a step. Errors: ARG; STATE in an
 * EVAL step or when called twice; what kernels and hooks return. */
TAC_API tac_status tac_tape_backward(tac_tape *t, tac_tensor *loss,
                                     double scale);

/* The same with the loss multiplied by *loss_scale as well: one f32 in device
 * memory (a scaler's), which the host does not read. NULL: 1. */
TAC_API tac_status tac_tape_backward_scaled(tac_tape *t, tac_tensor *loss,
                                            double scale,
                                            const float *loss_scale);

/* Which type an operation computes in, inside a region of autocast. */
typedef enum tac_cast_rule {
    TAC_CAST_NONE = 0, /* that of its inputs, which must agree; parameters are
                          cast to that of the other inputs */
    TAC_CAST_LOW,      /* the region's 16-bit type */
    TAC_CAST_F32,
    TAC_CAST_WIDEST /* the widest of its inputs' */
} tac_cast_rule;

/* A region of autocast. While it is on, each operation asks `rule` by its own
 * name ("linear", "softmax_cross_entropy") and casts float inputs that are of
 * another type, which is recorded: gradients are cast back. Parameters cast to
 * `low` come from `weights` if that is there: a copy of the value arena in
 * `low`, with the same offsets in elements, kept up to date by the caller.
 * Without it each is cast in the step, once a region if `cache`. Gradients of
 * parameters go to the f32 arena without being rounded to 16 bits. f64 takes no
 * part. tacit/autocast.h has the policy. */
typedef struct tac_tape_autocast {
    size_t struct_size;
    tac_dtype low; /* F16 or BF16 */
    tac_cast_rule (*rule)(const char *op);
    int cache;
    const void *weights; /* device memory, borrowed; or NULL */
} tac_tape_autocast;

/* Begins a region (copied), or ends it (NULL), at any point of a step's
 * forward or between steps; stays over steps until changed. Blocks run again
 * under the region of their first time. Errors: ARG for another type;
 * UNSUPPORTED without kernels for it. */
TAC_API tac_status tac_tape_set_autocast(tac_tape *t,
                                         const tac_tape_autocast *a);
/* The region that is on; NULL: none. */
TAC_API const tac_tape_autocast *tac_tape_get_autocast(const tac_tape *t);
/* Casts of parameters made in steps so far (not from `weights`): for tests. */
TAC_API size_t tac_tape_param_casts(const tac_tape *t);

/* After backward: out[k] (tac_params_count entries) is the k-th parameter to
 * become final; unused ones come last, in registration order. Errors: STATE
 * before a backward. */
TAC_API tac_status tac_tape_final_order(const tac_tape *t, size_t *out);
/* After backward: how many parameters the loss did not depend on; their
 * indices into out (NULL: count alone). */
TAC_API size_t tac_tape_unused(const tac_tape *t, size_t *out);

/* A part of the model that can be run again. It must make the same operations
 * each time, draw nothing from outside but `arg`, and make all of `out` by
 * operations of its own (not hand an input through). */
typedef tac_status tac_block_fn(tac_tape *t, void *arg, tac_tensor *const *in,
                                tac_tensor **out);

/* Runs fn(t, arg, in, out). With recompute on, only `out` is kept; backward
 * runs fn once more, with the same dropout masks, and goes back through it:
 * bitwise the same gradients, less memory, one more forward. Outputs that have
 * a gradient and are no loss lose their data in backward, as it is used for
 * blocks before this one. `arg` is borrowed until backward is done. At most
 * TAC_BLOCK_MAX inputs and outputs. */
#define TAC_BLOCK_MAX 8
TAC_API tac_status tac_tape_block(tac_tape *t, tac_block_fn *fn, void *arg,
                                  size_t n_in, tac_tensor *const *in,
                                  size_t n_out, tac_tensor **out);
/* Takes effect at the next begin. */
TAC_API void tac_tape_set_recompute(tac_tape *t, int on);

TAC_API tac_params *tac_tape_params(const tac_tape *t);
TAC_API tac_device *tac_tape_device(const tac_tape *t);
TAC_API tac_queue *tac_tape_queue(const tac_tape *t);
TAC_API tac_dtype tac_tape_dtype(const tac_tape *t); /* the parameters' */
/* 1 in a dry step: there is no data to be read or copied. */
TAC_API int tac_tape_is_dry(const tac_tape *t);
/* Bytes of activations and intermediate gradients at the worst moment of any
 * step so far, dry ones included. */
TAC_API size_t tac_tape_high_water(const tac_tape *t);
/* Of the operation with weights in 16 bits for which it is largest, in any step
 * so far: elements of the result and of all inputs but the largest. About so
 * many do 16-bit kernels widen at a time; 0: there was no such operation. */
TAC_API size_t tac_tape_widest(const tac_tape *t);

TAC_END_DECLS

#endif
