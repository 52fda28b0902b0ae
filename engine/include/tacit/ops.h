/* tacit/ops.h: the operations that a tape records.
 *
 * Each takes tensors of one tape, allocates its result in the step arena,
 * runs the forward kernel (unless the step is dry) and, if a gradient will be
 * needed, records how to go back. T is the type of the inputs (f32, f64, f16,
 * bf16), which must agree; in a region of autocast (tape.h) it is what the
 * operation's rule says. A is f64 for f64, else f32. A wrong shape or type
 * is TAC_ERR_ARG with a message that names the operation, the tensors and the
 * shapes; *out is then not written. A bias may be NULL. Sizes of 0 are legal.
 * No gradient is computed for tensors that do not require one. */
#ifndef TACIT_OPS_H
#define TACIT_OPS_H

#include "tacit/kernels.h"
#include "tacit/tape.h"

TAC_BEGIN_DECLS

/* y (...,out) = act(x (...,in) w' (out,in) + b (out)). ReLU is fused. */
TAC_API tac_status tac_op_linear(tac_tape *t, tac_tensor *x, tac_tensor *w,
                                 tac_tensor *b, tac_act act, tac_tensor **y);

/* y (n,oh,ow,oc) = act(conv(x (n,h,w,ic), w (oc,ic,kh,kw)) + b (oc)),
 * oh = (h + 2*pad - kh) / stride + 1. */
TAC_API tac_status tac_op_conv2d(tac_tape *t, tac_tensor *x, tac_tensor *w,
                                 tac_tensor *b, size_t stride, size_t pad,
                                 tac_act act, tac_tensor **y);

/* y (n,oh,ow,c) = maxima of x (n,h,w,c) over k x k windows (k <= 16), no
 * padding. The gradient goes to the first maximum of a window. If x came out
 * of a fused ReLU and has no other consumer, the ReLU's backward pass is done
 * here. */
TAC_API tac_status tac_op_max_pool2d(tac_tape *t, tac_tensor *x, size_t k,
                                     size_t stride, tac_tensor **y);

/* The block max_pool2d(conv2d(x, w, b, stride, pad, ReLU), k, pool_stride) as
 * one operation, with the same result and gradients: the convolution's own
 * output and its gradient pass through the cache and take no memory. */
TAC_API tac_status tac_op_conv2d_max_pool2d(tac_tape *t, tac_tensor *x,
                                            tac_tensor *w, tac_tensor *b,
                                            size_t stride, size_t pad, size_t k,
                                            size_t pool_stride, tac_tensor **y);

TAC_API tac_status tac_op_relu(tac_tape *t, tac_tensor *x, tac_tensor **y);

/* y = x, with each element 0 with probability p in [0,1), else scaled by
 * 1/(1-p); the identity in EVAL steps. The mask is a pure function of the
 * seed, the step, the how-manieth dropout of the step this is, the global
 * index of the sample (the first dimension) and the element in it. */
TAC_API tac_status tac_op_dropout(tac_tape *t, tac_tensor *x, float p,
                                  tac_tensor **y);

/* Views: the same data and gradient under another shape of the same count. */
TAC_API tac_status tac_op_reshape(tac_tape *t, tac_tensor *x, int ndim,
                                  const size_t *shape, tac_tensor **y);
/* (n,a,b,...) as (n,a*b*...). */
TAC_API tac_status tac_op_flatten(tac_tape *t, tac_tensor *x, tac_tensor **y);

/* y = a + b, equal shapes. Scalar losses may be added as well. */
TAC_API tac_status tac_op_add(tac_tape *t, tac_tensor *a, tac_tensor *b,
                              tac_tensor **y);
/* y = factor * x; x may be a scalar loss. */
TAC_API tac_status tac_op_scale(tac_tape *t, tac_tensor *x, double factor,
                                tac_tensor **y);

/* y = x as `dtype` (f32, f16, bf16; f64 only to itself): x itself if it is so
 * already. The gradient is cast back. A parameter gives a view of it: products
 * write its gradient in A, without rounding it to 16 bits. */
TAC_API tac_status tac_op_cast(tac_tape *t, tac_tensor *x, tac_dtype dtype,
                               tac_tensor **y);

/* y (...,c) = (x (...,c) - mean) / sqrt(variance + eps) * w (c) + b (c) over
 * the last dimension. Ba, Kiros, Hinton, "Layer Normalization", 2016. */
TAC_API tac_status tac_op_layer_norm(tac_tape *t, tac_tensor *x, tac_tensor *w,
                                     tac_tensor *b, double eps, tac_tensor **y);

/* y (b,tq,d) = softmax(scale * q (b,tq,d) k (b,tk,d)' + mask) v (b,tk,d), for b
 * independent heads; causal as in kernels.h. Scores are in A: finite for any
 * product of finite f16. */
TAC_API tac_status tac_op_attention(tac_tape *t, tac_tensor *q, tac_tensor *k,
                                    tac_tensor *v, double scale, int causal,
                                    tac_tensor **y);

typedef struct tac_xent {
    tac_tensor *loss;    /* () f64: sum of rows; what backward starts from */
    tac_tensor *rows;    /* (n) A: loss of each row, 0 where masked */
    tac_tensor *correct; /* (n) u8: 1 where the first arg max is the label */
} tac_xent;

/* Softmax cross-entropy of logits (n,c) with labels (n) i32; rows with a label
 * < 0 are masked. The loss is a sum: pass 1/(global count of unmasked rows) as
 * `scale` to backward for a mean over all ranks and micro-batches. */
TAC_API tac_status tac_op_softmax_cross_entropy(tac_tape *t, tac_tensor *logits,
                                                tac_tensor *labels,
                                                tac_xent *out);

TAC_END_DECLS

#endif
