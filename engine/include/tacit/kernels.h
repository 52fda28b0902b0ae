/* tacit/kernels.h: the kernel table of one device and one compute dtype.
 *
 * A table starts as the portable reference (engine/cpu/ref, also in f64 for
 * gradient checks) and is overridden entry by entry by what the machine offers
 * (avx2, avx512, oneDNN, a GPU). Every entry is filled. An entry never
 * allocates after its first call with a given shape; what it caches hangs off
 * `kc->cache`.
 *
 * Conventions. T is the table's dtype (f32 or f64 so far). Activations are
 * row-major; images are NHWC (channels last). Weights are (out,in) and OIHW.
 * Pointers are borrowed. No two arguments overlap unless said. Sizes may be 0:
 * then nothing is written (sums of nothing are 0 and are written). Accumulation
 * is at least f32. `accumulate` != 0 adds to the output, else overwrites it.
 * All return TAC_OK or the first failure of the device. */
#ifndef TACIT_KERNELS_H
#define TACIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/device.h"
#include "tacit/rng.h"

TAC_BEGIN_DECLS

/* What every kernel gets first. Filled by the engine. */
typedef struct tac_kctx {
    tac_context *ctx;
    struct tac_pool *pool; /* may be NULL: serial */
    tac_queue *queue;      /* NULL: the default queue */
    void *cache;           /* the device's own (oneDNN primitives, scratch) */
} tac_kctx;

typedef enum tac_act { TAC_ACT_NONE = 0, TAC_ACT_RELU } tac_act;

/* Convolution and pooling geometry. Output sizes are
 * oh = (h + 2*pad - kh) / stride + 1, likewise ow (no dilation, no groups). */
typedef struct tac_conv2d {
    size_t n, h, w, ic; /* input (N,H,W,IC) */
    size_t oc, kh, kw;  /* weights (OC,IC,KH,KW), bias (OC) */
    size_t stride, pad;
    size_t oh, ow; /* output (N,OH,OW,OC) */
} tac_conv2d;

typedef struct tac_pool2d {
    size_t n, h, w, c; /* input (N,H,W,C) */
    size_t k, stride;  /* window k x k, no padding */
    size_t oh, ow;     /* output (N,OH,OW,C) */
} tac_pool2d;

/* The small structure in device memory through which one step's scalars reach
 * the optimizer without the host reading or writing in between. */
typedef struct tac_step_scalars {
    float lr;               /* scheduled learning rate of this step */
    float grad_scale;       /* gradients are divided by it (loss scale) */
    float clip_coef;        /* gradients are multiplied by it; 1: no clipping */
    float found_inf;        /* != 0: the optimizer must leave all untouched */
    float bias_correction1; /* 1 - beta1^t, t counts applied steps from 1 */
    float bias_correction2; /* 1 - beta2^t */
    uint64_t applied;       /* applied steps so far */
} tac_step_scalars;

typedef struct tac_sgd_args {
    float momentum, dampening, weight_decay;
    int nesterov;
    int first; /* 1: if s->applied is 0, the buffer is set to the gradient, not
                  averaged, so that a skipped first step needs no host */
} tac_sgd_args;

typedef struct tac_adamw_args {
    float beta1, beta2, eps, weight_decay;
} tac_adamw_args;

typedef struct tac_kernels {
    size_t struct_size;
    tac_dtype dtype;
    char names[96]; /* which set filled it: "ref+avx512+onednn" */

    /* y (n,out) = act(x (n,in) w' (out,in) + b (out)); b may be NULL. */
    tac_status (*linear_forward)(const tac_kctx *kc, size_t n, size_t in,
                                 size_t out, const void *x, const void *w,
                                 const void *b, tac_act act, void *y);
    /* dx (n,in) = dy (n,out) w (out,in). */
    tac_status (*linear_backward_data)(const tac_kctx *kc, size_t n, size_t in,
                                       size_t out, const void *dy,
                                       const void *w, void *dx, int accumulate);
    /* dw (out,in) = dy' x; db (out) = column sums of dy; db may be NULL. */
    tac_status (*linear_backward_weights)(const tac_kctx *kc, size_t n,
                                          size_t in, size_t out, const void *x,
                                          const void *dy, void *dw, void *db,
                                          int accumulate);

    /* y = act(conv(x, w) + b); b may be NULL. */
    tac_status (*conv2d_forward)(const tac_kctx *kc, const tac_conv2d *d,
                                 const void *x, const void *w, const void *b,
                                 tac_act act, void *y);
    tac_status (*conv2d_backward_data)(const tac_kctx *kc, const tac_conv2d *d,
                                       const void *dy, const void *w, void *dx,
                                       int accumulate);
    tac_status (*conv2d_backward_weights)(const tac_kctx *kc,
                                          const tac_conv2d *d, const void *x,
                                          const void *dy, void *dw, void *db,
                                          int accumulate);

    /* y: window maxima, NaN being larger than every number; index (N,OH,OW,C)
     * u8: position in the window, row major, of the first maximum; NULL if no
     * backward will follow. */
    tac_status (*maxpool2d_forward)(const tac_kctx *kc, const tac_pool2d *d,
                                    const void *x, void *y, uint8_t *index);
    /* dx (N,H,W,C), overwritten whole. If y is not NULL it is the forward
     * output over inputs that came out of a ReLU, and the ReLU's own backward
     * is fused: a window whose maximum is not above 0 passes nothing. Windows
     * may overlap or leave gaps. */
    tac_status (*maxpool2d_backward)(const tac_kctx *kc, const tac_pool2d *d,
                                     const void *dy, const uint8_t *index,
                                     const void *y, void *dx);

    /* A block: y (N,PH,PW,OC) = maxpool(relu(conv(x, w) + b)); b may be NULL,
     * index as in maxpool2d_forward. The convolution's own output, the largest
     * array of such a network, passes through the cache a few images at a time
     * and is not stored. p->n, h, w, c are d->n, oh, ow, oc. */
    tac_status (*conv2d_pool_forward)(const tac_kctx *kc, const tac_conv2d *d,
                                      const tac_pool2d *p, const void *x,
                                      const void *w, const void *b, void *y,
                                      uint8_t *index);
    /* The block's gradients from dy (N,PH,PW,OC) and the forward pass's y and
     * index: dw with db (NULL: not wanted) unless dw is NULL, dx unless dx is
     * NULL. */
    tac_status (*conv2d_pool_backward)(const tac_kctx *kc, const tac_conv2d *d,
                                       const tac_pool2d *p, const void *x,
                                       const void *w, const void *dy,
                                       const uint8_t *index, const void *y,
                                       void *dw, void *db,
                                       int accumulate_weights, void *dx,
                                       int accumulate_data);

    /* y = x > 0 ? x : 0: NaN becomes 0, also in fused ReLUs. */
    tac_status (*relu_forward)(const tac_kctx *kc, size_t n, const void *x,
                               void *y);
    /* dx = y > 0 ? dy : 0; dx may be dy. */
    tac_status (*relu_backward)(const tac_kctx *kc, size_t n, const void *y,
                                const void *dy, void *dx);

    /* y = keep(i) ? x / (1-p) : 0, keep(i) iff uniform(key, first + i) >= p.
     * The mask is not stored: the backward pass calls the same function on dy.
     * In place is allowed. p in [0,1); the uniform number is
     * tac_rng_u32 / 2^32. */
    tac_status (*dropout)(const tac_kctx *kc, size_t n, const void *x, float p,
                          const tac_rng_key *key, uint64_t first, void *y);

    /* Row-wise softmax cross-entropy of logits (n,c) with labels (n) i32.
     * Rows with label < 0 are masked: loss 0, gradient 0. loss (n) of T;
     * probs (n,c) of T kept for the backward pass (may be NULL). `correct` (n)
     * u8, may be NULL: 1 where the first arg max is the label. */
    tac_status (*softmax_xent_forward)(const tac_kctx *kc, size_t n, size_t c,
                                       const void *logits,
                                       const int32_t *labels, void *loss,
                                       void *probs, uint8_t *correct);
    /* dlogits = scale * (probs - onehot), 0 for masked rows. */
    tac_status (*softmax_xent_backward)(const tac_kctx *kc, size_t n, size_t c,
                                        const void *probs,
                                        const int32_t *labels, double scale,
                                        void *dlogits);

    /* y += a * x. */
    tac_status (*axpy)(const tac_kctx *kc, size_t n, double a, const void *x,
                       void *y);
    /* x *= a. */
    tac_status (*scale)(const tac_kctx *kc, size_t n, double a, void *x);
    /* *out (f64 in device memory) = sum of x, accumulated in f64, in an order
     * that depends on n and on the number of threads alone. */
    tac_status (*sum)(const tac_kctx *kc, size_t n, const void *x, double *out);
    tac_status (*sum_squares)(const tac_kctx *kc, size_t n, const void *x,
                              double *out);

    /* One fused pass over flat arenas of n elements. p and g of T; momentum,
     * exp_avg, exp_avg_sq of T. g is read only. Nothing is written if
     * s->found_inf. The effective gradient is g / grad_scale * clip_coef.
     *
     * SGD (PyTorch's definition): g += weight_decay*p;
     * buf = momentum*buf + (1-dampening)*g; g = nesterov ? g + momentum*buf :
     * buf; p -= lr*g. buf NULL: no momentum. */
    tac_status (*sgd)(const tac_kctx *kc, size_t n, const tac_sgd_args *a,
                      const tac_step_scalars *s, void *p, const void *g,
                      void *buf);
    /* AdamW (Loshchilov & Hutter, 2019), decay before the moments:
     * p *= 1 - lr*weight_decay; m, v; p -= lr/bc1 * m / (sqrt(v)/sqrt(bc2) +
     * eps). */
    tac_status (*adamw)(const tac_kctx *kc, size_t n, const tac_adamw_args *a,
                        const tac_step_scalars *s, void *p, const void *g,
                        void *exp_avg, void *exp_avg_sq);

    /* A step's scalars, computed where they live, by one thread. All have
     * portable versions for host memory, which the engine puts in where a CPU
     * table leaves them NULL. */

    /* bias_correctionK = 1 - betaK^(applied + 1), in f64. */
    tac_status (*step_begin)(const tac_kctx *kc, double beta1, double beta2,
                             tac_step_scalars *s);
    /* applied += 1 unless found_inf; clip_coef = 1. */
    tac_status (*step_end)(const tac_kctx *kc, tac_step_scalars *s);
    /* norm = sqrt(*sum_squares) / grad_scale; clip_coef = min(1, max_norm /
     * (norm + 1e-6)), not a number if norm is not. */
    tac_status (*clip_coef)(const tac_kctx *kc, const double *sum_squares,
                            double max_norm, tac_step_scalars *s, double *norm);
} tac_kernels;

/* The context of kernel calls on one queue of a device, with the pool of the
 * device's context (NULL if it could not be made: serial). */
TAC_API tac_kctx tac_device_kctx(const tac_device *dev, tac_queue *queue);

/* A set of kernels that overrides entries of a table. */
typedef struct tac_kernel_set {
    const char *name; /* "ref", "avx2", "avx512", "onednn" */
    const char *doc;
    /* 1 if this machine and build can run it; else why[] says why not. */
    int (*available)(char *why, size_t bytes);
    /* Overrides what it has for table->dtype; leaves the rest. */
    void (*apply)(tac_kernels *table);
    /* Private state for kc->cache; may both be NULL. */
    tac_status (*cache_create)(tac_context *ctx, void **cache);
    void (*cache_destroy)(void *cache);
} tac_kernel_set;

/* NULL-terminated, in the order of application: ref, avx2, avx512, onednn. A
 * battery runs over this list, so a new set is tested by being listed. At most
 * one set of a table owns kc->cache. */
TAC_API const tac_kernel_set *const *tac_cpu_kernel_sets(void);

TAC_END_DECLS

#endif
