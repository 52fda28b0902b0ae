/* tacit/autocast.h: which operations run in 16 bits.
 *
 * The policy is PyTorch's (torch.amp, CUDA lists): products run in the low
 * type with f32 accumulation; what sums, exponentiates or normalises runs in
 * f32; additions take the widest of their inputs; everything else runs in the
 * type of its inputs.
 *
 *   low     linear, conv2d, conv2d_max_pool2d, attention (whose scores and
 *           softmax are f32 inside)
 *   f32     softmax_cross_entropy, layer_norm
 *   widest  add
 *   inputs  relu, max_pool2d, dropout, scale, and whatever is not listed
 *
 * A region:
 *
 *     tac_autocast region;
 *     tac_autocast_begin(tape, TAC_F16, NULL, &region);
 *     tac_model_forward(...); tac_op_softmax_cross_entropy(...);
 *     tac_autocast_end(&region);
 *     tac_tape_backward(...);
 *
 * The region is the caller's variable and remembers what was on before it, so
 * regions nest to any depth.
 *
 * Thread-safety: that of the tape. */
#ifndef TACIT_AUTOCAST_H
#define TACIT_AUTOCAST_H

#include "tacit/master.h"
#include "tacit/tape.h"

TAC_BEGIN_DECLS

/* The rule of an operation by name; TAC_CAST_NONE for names not listed. */
TAC_API tac_cast_rule tac_autocast_rule(const char *op);

/* One row of the policy, for lists and docs; a NULL name ends the table. */
typedef struct tac_autocast_entry {
    const char *op;
    tac_cast_rule rule;
    const char *why;
} tac_autocast_entry;
TAC_API const tac_autocast_entry *tac_autocast_policy(void);

typedef struct tac_autocast_config {
    size_t struct_size;
    int enabled; /* 0: all operations of the region compute in f32 */
    int cache;   /* casts of weights are kept (default 1) until the region ends
                    or another begins in it */
    const tac_master *master; /* working weights; NULL: cast in the step */
} tac_autocast_config;

#define TAC_AUTOCAST_CONFIG_INIT                \
    {                                           \
        sizeof(tac_autocast_config), 1, 1, NULL \
    }

/* A region that is open. The caller's, on the stack; not to be looked into. */
typedef struct tac_autocast {
    tac_tape *tape;                 /* NULL: not open */
    int nested;                     /* `outer` is to come back */
    tac_tape_autocast outer, inner; /* around it; its own */
} tac_autocast;

/* Opens a region on the tape. `low` is F16 or BF16; F32 is a region that is
 * not enabled, so that one path of code serves every --precision. NULL config
 * means defaults. Open a region before the blocks and operations that belong to
 * it, close it after them; a region left open by an early return stays on: end
 * it on every path. Errors: ARG for another type, or a master of another type
 * or of other parameters; UNSUPPORTED if the device has no kernels for `low`.
 * Nothing is changed and *region is not written then. */
TAC_API tac_status tac_autocast_begin(tac_tape *tape, tac_dtype low,
                                      const tac_autocast_config *config,
                                      tac_autocast *region);
/* Closes it: what was on before is on again. Errors: STATE, and nothing
 * changes, if the region is not open or a region inside it still is. */
TAC_API tac_status tac_autocast_end(tac_autocast *region);

/* "fp32", "fp16", "bf16" as a type to compute in. Errors: ARG, with what there
 * is. */
TAC_API tac_status tac_precision_parse(tac_context *ctx, const char *name,
                                       tac_dtype *out);

TAC_END_DECLS

#endif
