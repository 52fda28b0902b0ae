/* tacit/tensor.h: shape, type and place of an array of one training step.
 *
 * Tensors are made by a tape (tape.h) and by operations (ops.h), never by
 * hand. They and their data live in the tape's step arena: they are valid
 * until the next tac_tape_begin, and nobody frees them. Data is in C order;
 * images are NHWC. Views share data and gradient with the tensor that they
 * view.
 *
 * Thread-safety: a tensor belongs to its tape's thread. */
#ifndef TACIT_TENSOR_H
#define TACIT_TENSOR_H

#include <stddef.h>

#include "tacit/dtype.h"
#include "tacit/export.h"

TAC_BEGIN_DECLS

#define TAC_MAX_DIMS 8

typedef struct tac_tensor tac_tensor;
struct tac__node;
struct tac__buffer;

struct tac_tensor {
    tac_dtype dtype;
    int ndim; /* 0: a scalar */
    size_t shape[TAC_MAX_DIMS];
    void *data;       /* device memory; NULL in a dry step */
    const char *name; /* of a parameter or an input, for messages; or NULL */
    int requires_grad;
    ptrdiff_t param; /* index in tac_params; -1: not a parameter */

    /* The tape's own, not to be touched. */
    tac_tensor *base;           /* of a view; else NULL */
    struct tac__node *node;     /* that made it; NULL: an input */
    struct tac__buffer *buffer; /* of the gradient */
    void *grad;                 /* the buffer's or the parameter's memory */
    int has_grad;               /* a contribution has arrived */
    int is_loss;                /* scalar loss: its gradient is loss_grad */
    int is_relu;                /* it came out of a fused ReLU */
    int relu_done;              /* its consumer has masked the gradient */
    size_t uses;                /* recorded consumers */
    size_t ordinal;             /* the how-manieth tensor of its step */
    double loss_grad;           /* gradient of a scalar loss, on the host */
};

/* Elements: the product of the shape. */
TAC_API size_t tac_tensor_count(const tac_tensor *t);
TAC_API size_t tac_tensor_bytes(const tac_tensor *t);
/* Gradient with the tensor's own shape in device memory, of the tensor's dtype
 * (a parameter's: of tac_params_grad_dtype); NULL if none has
 * arrived. Valid after tac_tape_backward for parameters and for inputs made
 * with requires_grad; the gradients of intermediate tensors are reused. */
TAC_API void *tac_tensor_grad(const tac_tensor *t);
/* Writes "(2,3,4)" into buf, always terminated, and returns it. */
TAC_API const char *tac_tensor_shape_text(const tac_tensor *t, char *buf,
                                          size_t bytes);

/* The product of `ndim` sizes into *out; 0 if it overflows size_t, else 1. */
TAC_API int tac_shape_count(int ndim, const size_t *shape, size_t *out);

TAC_END_DECLS

#endif
