/* tacit/params.h: the parameters of a model in two flat arenas.
 *
 * A model registers its parameters; registration order gives indices, names,
 * hashes and initial values. tac_params_layout then makes one flat arena of
 * values and one of gradients with the same layout: in the order given (that
 * in which gradients become final, from a dry backward), every tensor aligned
 * to 64 bytes, padding zero. So a communication bucket is a slice and an
 * optimizer step is one pass.
 *
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_PARAMS_H
#define TACIT_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/device.h"
#include "tacit/state.h"
#include "tacit/tensor.h"

TAC_BEGIN_DECLS

typedef struct tac_params tac_params;

/* How a parameter gets its first value. */
typedef enum tac_init_kind {
    TAC_INIT_ZEROS,
    TAC_INIT_ONES,
    /* U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for linear and
     * convolution (Kaiming uniform with a = sqrt 5). `value` is the fan-in; 0:
     * the product of all sizes but the first. A bias passes its weight's. */
    TAC_INIT_FAN_IN,
    TAC_INIT_NORMAL /* N(0, value^2) */
} tac_init_kind;

typedef struct tac_init {
    tac_init_kind kind;
    double value;
} tac_init;

/* Flags of a parameter. */
#define TAC_PARAM_NO_DECAY 1u /* never weight-decayed, whatever its shape */
#define TAC_PARAM_FROZEN                                \
    2u /* not trained: no gradient, no state, no update \
        */

typedef struct tac_param {
    const char *name; /* "conv1.weight", owned by the registry */
    int ndim;
    size_t shape[TAC_MAX_DIMS];
    size_t count;  /* elements */
    size_t offset; /* in elements, into both arenas; after layout */
    tac_init init;
    unsigned flags;
} tac_param;

/* An empty registry for parameters of `dtype`: F32; F64 for gradient checks;
 * F16 or BF16 for training without masters. Gradients are F32 (F64 for F64):
 * both arenas have the same layout in elements. `dev` is borrowed for the
 * object's life. Errors: ARG for another dtype, NOMEM. */
TAC_API tac_status tac_params_create(tac_device *dev, tac_dtype dtype,
                                     tac_params **out);
TAC_API void tac_params_destroy(tac_params *p); /* NULL is legal */

/* Registers one parameter; *index (may be NULL) is its number from 0. `name`
 * is copied. Errors: ARG for a repeated or empty name, too many dimensions or
 * a size that overflows; STATE after layout; NOMEM. */
TAC_API tac_status tac_params_add(tac_params *p, const char *name, int ndim,
                                  const size_t *shape, tac_init init,
                                  unsigned flags, size_t *index);

/* Allocates both arenas, once. order[k] is the index of the parameter at
 * place k, a permutation; NULL: registration order. An allocator that is NULL
 * is the device's; both are copied and must stay valid. Values and gradients
 * are zero after it. Errors: ARG for an order that is no permutation; STATE
 * if called twice; NOMEM. */
TAC_API tac_status tac_params_layout(tac_params *p, const size_t *order,
                                     const tac_allocator *values,
                                     const tac_allocator *grads);

/* Writes all initial values: element e of parameter i is a pure function of
 * (seed, TAC_STREAM_INIT, i, e), whatever the layout. Waits for the copies to
 * the device. Errors: STATE before layout. */
TAC_API tac_status tac_params_init(tac_params *p, uint64_t seed);

TAC_API size_t tac_params_count(const tac_params *p); /* of parameters */
TAC_API tac_dtype tac_params_dtype(const tac_params *p);
TAC_API tac_dtype tac_params_grad_dtype(const tac_params *p);
/* The parameter that element `at` of the arenas belongs to; SIZE_MAX for
 * padding, for at out of range, and before layout. */
TAC_API size_t tac_params_at(const tac_params *p, size_t at);
TAC_API tac_device *tac_params_device(const tac_params *p);
/* Elements without and with padding; the latter is 0 before layout. */
TAC_API size_t tac_params_elements(const tac_params *p);
TAC_API size_t tac_params_padded(const tac_params *p);
/* NULL for an index out of range. Valid until the next add. */
TAC_API const tac_param *tac_params_get(const tac_params *p, size_t index);
/* The index of a name; SIZE_MAX if there is none. */
TAC_API size_t tac_params_find(const tac_params *p, const char *name);
/* order[k]: the parameter at place k of the arenas. NULL before layout. */
TAC_API const size_t *tac_params_order(const tac_params *p);

/* The flat arenas, and one parameter's part. NULL before layout. */
TAC_API void *tac_params_values(const tac_params *p);
TAC_API void *tac_params_grads(const tac_params *p);
TAC_API void *tac_params_value(const tac_params *p, size_t index);
TAC_API void *tac_params_grad(const tac_params *p, size_t index);

/* Hash over dtype, names and shapes in registration order, for comparing
 * models between ranks before any data moves. */
TAC_API uint64_t tac_params_hash(const tac_params *p);
/* Shows every parameter, in registration order, as "model.<name>". A
 * tac_state_walk_fn. */
TAC_API tac_status tac_params_walk(void *params, const tac_state_visitor *v);

TAC_END_DECLS

#endif
