/* tacit/kernels.h: the kernel table of one device and one compute dtype.
 *
 * A table starts as the portable reference (engine/cpu/ref, also in f64 for
 * gradient checks) and is overridden entry by entry by what the machine offers
 * (avx2, avx512, oneDNN, a GPU). Every entry is filled. An entry never
 * allocates after its first call with a given shape; what it caches hangs off
 * `kc->cache`.
 *
 * Conventions. T is the table's dtype: f32, f64, f16 or bf16. A is the type in
 * which T is accumulated: f64 for f64, else f32; gradients of weights, losses,
 * probabilities, statistics and optimizer state are of A, so that a 16-bit
 * table never rounds a parameter's gradient to 16 bits. Activations are
 * row-major; images are NHWC (channels last). Weights are (out,in) and OIHW.
 * Pointers are borrowed. No two arguments overlap unless said. Sizes may be 0:
 * then nothing is written (sums of nothing are 0 and are written).
 * `accumulate` != 0 adds to the output, else overwrites it. A 16-bit result is
 * one rounding (to nearest, ties to even) of a result computed in at least
 * f32. All return TAC_OK or the first failure of the device. */
#ifndef TACIT_KERNELS_H
#define TACIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/device.h"
#include "tacit/rng.h"

TAC_BEGIN_DECLS

struct tac_schedule;

/* What every kernel gets first. Filled by the engine. */
typedef struct tac_kctx {
    tac_context *ctx;
    struct tac_pool *pool; /* may be NULL: serial */
    tac_queue *queue;      /* NULL: the default queue */
    void *cache;           /* the device's own: the CPU's is a tac_cpu_cache */
} tac_kctx;

/* The private states of the CPU's kernel sets: oneDNN's primitives, scratch of
 * the 16-bit kernels, tables of 8-bit codes. */
enum {
    TAC_CPU_SLOT_ONEDNN,
    TAC_CPU_SLOT_HALF,
    TAC_CPU_SLOT_AVX2,
    TAC_CPU_SLOT_AVX512,
    TAC_CPU_SLOTS
};

typedef struct tac_cpu_cache {
    void *slots[TAC_CPU_SLOTS]; /* NULL: that set is not in use */
} tac_cpu_cache;

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
    double lr;        /* scheduled learning rate of this step */
    double clip_coef; /* gradients are multiplied by it; 1: no clipping */
    double bias_correction1; /* 1 - beta1^t, t counts applied steps from 1 */
    double bias_correction2; /* 1 - beta2^t */
    float grad_scale;        /* gradients are divided by it (loss scale) */
    float found_inf;         /* != 0: the optimizer must leave all untouched */
    uint64_t applied;        /* applied steps so far */
} tac_step_scalars;

/* Stochastic rounding of f32 to a 16-bit type: with k bits dropped of value d,
 * up with probability d / 2^k: iff floor(d * 2^(32-k)) is more than the random
 * number. That is a pure function of (seed,
 * *step, tensor, first + element): tac_rng_u32 of the key {seed,
 * TAC_STREAM_ROUND, (*step << 16) + tensor}, index first + element.
 * Representable values, infinities and NaNs (made quiet) stay; a finite value
 * never becomes infinite: beyond the largest finite value it is that value.
 * Signs, that of 0 included, are kept. */
typedef struct tac_round {
    uint64_t seed;
    const uint64_t *step; /* device memory: applied optimizer steps */
    uint32_t tensor;      /* < 65536 */
    uint64_t first;
} tac_round;

/* In the argument structures below `round` says how a 16-bit parameter is
 * written: NULL is to nearest. A table of f32 or f64 ignores it. lr_scale
 * multiplies s->lr. A kernel rounds a setting to A once.
 *
 * `low`, unless NULL, is the parameters' copy in 16 bits, (n) of low_dtype, f16
 * or bf16: a table of f32 writes it in the same pass, each new parameter
 * rounded to nearest, with the bits that a cast of p afterwards would give. A
 * table of another type ignores it. */
typedef struct tac_sgd_args {
    double lr_scale;
    double momentum, dampening, weight_decay;
    int nesterov;
    int first; /* 1: if s->applied is 0, the buffer is set to the gradient, not
                  averaged, so that a skipped first step needs no host */
    const tac_round *round;
    uint16_t *low;
    tac_dtype low_dtype;
} tac_sgd_args;

typedef struct tac_adamw_args {
    double lr_scale;
    double beta1, beta2, eps, weight_decay;
    int decay_last; /* 1: p *= 1 - lr*weight_decay after the update (as the
                       8-bit kernel's definition has it), not before */
    const tac_round *round;
    uint16_t *low;
    tac_dtype low_dtype;
} tac_adamw_args;

enum { TAC_QUANT_BLOCK = 256 }; /* elements that share one absmax */

/* Adafactor (Shazeer & Stern, 2018) as Hugging Face's `Adafactor` defines and
 * names it. */
typedef struct tac_adafactor_args {
    double lr_scale;
    double eps1, eps2, clip_threshold, decay_rate, weight_decay;
    double beta1; /* < 0: no first moment */
    int scale_parameter, relative_step, warmup_init;
    const tac_round *round;
} tac_adafactor_args;

/* `batch` matrices of rows x cols in C order; rows == 0: a vector of `cols`
 * elements, whose second moment is not factored. */
typedef struct tac_adafactor_shape {
    size_t batch, rows, cols;
} tac_adafactor_shape;

/* Layer normalisation over the last dimension. */
typedef struct tac_layer_norm {
    size_t n, c; /* rows, elements of a row */
    double eps;
} tac_layer_norm;

/* softmax(scale * q k' + mask) v for b independent heads: q (b,tq,d),
 * k (b,tk,d), v (b,tk,d). causal: key j is visible to query i iff
 * j <= i + (tk - tq). */
typedef struct tac_attention {
    size_t b, tq, tk, d;
    double scale;
    int causal;
} tac_attention;

/* The state of a gradient scaler in device memory (tacit/scaler.h). */
typedef struct tac_scaler_state {
    float scale;
    int32_t growth_tracker;
    uint32_t consecutive; /* updates in a row that found inf or NaN */
    uint64_t updates, skipped;
    uint64_t first_bad; /* at the last of them, the first gradient element that
                           was not finite; UINT64_MAX: none */
} tac_scaler_state;

typedef struct tac_scaler_args {
    float growth_factor, backoff_factor, min_scale, max_scale;
    int32_t growth_interval; /* 0: a static scale */
} tac_scaler_args;

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
    /* dw (out,in) of A = dy' x; db (out) of A = column sums of dy; db may be
     * NULL. */
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
     * Rows with label < 0 are masked: loss 0, gradient 0. loss (n) of A;
     * probs (n,c) of A kept for the backward pass (may be NULL). `correct` (n)
     * u8, may be NULL: 1 where the first arg max is the label. */
    tac_status (*softmax_xent_forward)(const tac_kctx *kc, size_t n, size_t c,
                                       const void *logits,
                                       const int32_t *labels, void *loss,
                                       void *probs, uint8_t *correct);
    /* dlogits = scale * *loss_scale * (probs - onehot), 0 for masked rows;
     * loss_scale is in device memory; NULL counts as 1. */
    tac_status (*softmax_xent_backward)(const tac_kctx *kc, size_t n, size_t c,
                                        const void *probs,
                                        const int32_t *labels, double scale,
                                        const float *loss_scale, void *dlogits);

    /* y = (x - mean) * rstd * w + b; w and b (c) of T; b may be NULL. mean and
     * rstd (n) of A are kept for backward; both may be NULL. The variance is
     * the mean of squared differences from the mean, in A. */
    tac_status (*layer_norm_forward)(const tac_kctx *kc,
                                     const tac_layer_norm *d, const void *x,
                                     const void *w, const void *b, void *y,
                                     void *mean, void *rstd);
    /* dx of T, dw and db (c) of A; each NULL: not wanted. */
    tac_status (*layer_norm_backward)(const tac_kctx *kc,
                                      const tac_layer_norm *d, const void *x,
                                      const void *w, const void *mean,
                                      const void *rstd, const void *dy,
                                      void *dx, int accumulate_data, void *dw,
                                      void *db, int accumulate_weights);

    /* y (b,tq,d), 0 for a query that sees no key. Scores and softmax are
     * computed in A whatever T is, so that products beyond the range of f16 are
     * no overflow. probs (b,tq,tk) of A is kept for backward, 0 where the key
     * is hidden, and may be NULL: y is the same, bit for bit. */
    tac_status (*attention_forward)(const tac_kctx *kc, const tac_attention *d,
                                    const void *q, const void *k, const void *v,
                                    void *y, void *probs);
    /* dq, dk, dv, each overwritten whole, or NULL: not wanted. */
    tac_status (*attention_backward)(const tac_kctx *kc, const tac_attention *d,
                                     const void *q, const void *k,
                                     const void *v, const void *probs,
                                     const void *dy, void *dq, void *dk,
                                     void *dv);

    /* y (n) of `to` = x (n) of `from`, both f32, f64, f16 or bf16, rounded to
     * nearest; accumulate (f32 and f64 outputs only) adds. The same function in
     * every table of a device. */
    tac_status (*cast)(const tac_kctx *kc, size_t n, tac_dtype from,
                       const void *x, tac_dtype to, void *y, int accumulate);
    /* f32 to f16 or bf16, rounded stochastically. */
    tac_status (*cast_stochastic)(const tac_kctx *kc, size_t n, const float *x,
                                  tac_dtype to, void *y, const tac_round *r);

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

    /* One fused pass over flat arenas of n elements. p of T; g, momentum,
     * exp_avg, exp_avg_sq of A. g is read only. Nothing is written (nor to
     * a->low) if s->found_inf. The effective gradient is g / grad_scale *
     * clip_coef.
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
    /* AdamW with block-wise 8-bit moments (Dettmers et al., 2021) over one
     * tensor: codeK (n) u8 index the dynamic map (K = 1: signed, exp_avg; 2:
     * unsigned, exp_avg_sq), times absmaxK (ceil(n/TAC_QUANT_BLOCK)) f32. An
     * element whose gradient is not finite, or so large (1e19) that its square
     * has no place in an f32, is left alone, its moments become 0. Moments
     * below the normal numbers count as 0. Decay comes last whatever
     * a->decay_last says. Not in f64. */
    tac_status (*adamw8bit)(const tac_kctx *kc, size_t n,
                            const tac_adamw_args *a, const tac_step_scalars *s,
                            void *p, const float *g, uint8_t *code1,
                            float *absmax1, uint8_t *code2, float *absmax2);
    /* Adafactor over one tensor. row (batch*rows) and col (batch*cols) of A are
     * the factors, or col alone (cols) the whole second moment if d->rows is 0;
     * exp_avg (NULL: none) of A; work: tac_adafactor_work bytes of scratch. The
     * rate is s->lr * lr_scale, times min(relative step) if relative_step. */
    tac_status (*adafactor)(const tac_kctx *kc, const tac_adafactor_shape *d,
                            const tac_adafactor_args *a,
                            const tac_step_scalars *s, void *p, const void *g,
                            void *row, void *col, void *exp_avg, void *work);
    /* g (n) of A /= s->grad_scale, in place, and s->found_inf = 1 if an element
     * was not finite, or is not any more (a scale below 1). */
    tac_status (*unscale)(const tac_kctx *kc, size_t n, void *g,
                          tac_step_scalars *s);
    /* If s->found_inf: *first = min(*first, offset + index of the first element
     * of g (n) of A that is not finite); else nothing is read. */
    tac_status (*first_bad)(const tac_kctx *kc, size_t n, const void *g,
                            uint64_t offset, const tac_step_scalars *s,
                            uint64_t *first);

    /* A step's scalars, computed where they live, by one thread. All have
     * portable versions for host memory, which the engine puts in where a CPU
     * table leaves them NULL. */

    /* bias_correctionK = 1 - betaK^(applied + 1), in f64; lr =
     * tac_schedule_lr(schedule, applied) unless schedule (host memory) is NULL.
     */
    tac_status (*step_begin)(const tac_kctx *kc, double beta1, double beta2,
                             const struct tac_schedule *schedule,
                             tac_step_scalars *s);
    /* applied += 1 unless found_inf; clip_coef = 1. */
    tac_status (*step_end)(const tac_kctx *kc, tac_step_scalars *s);
    /* norm = sqrt(*sum_squares) / grad_scale; clip_coef = min(1, max_norm /
     * (norm + 1e-6)), not a number if norm is not. */
    tac_status (*clip_coef)(const tac_kctx *kc, const double *sum_squares,
                            double max_norm, tac_step_scalars *s, double *norm);
    /* found_inf = 1 unless *sum_squares is finite. */
    tac_status (*check_finite)(const tac_kctx *kc, const double *sum_squares,
                               tac_step_scalars *s);
    /* The scaler's update (PyTorch's GradScaler.update) after steps with
     * n flags, of which any != 0 means found: see tacit/scaler.h. `bad` is
     * first_bad's result. */
    tac_status (*scaler_update)(const tac_kctx *kc, const tac_scaler_args *a,
                                const float *const *found_inf, size_t n,
                                const uint64_t *bad, tac_scaler_state *state);
} tac_kernels;

/* The 256 values of a dynamic map, ascending: signed (exp_avg's; index 127 is
 * 0) or unsigned (exp_avg_sq's; index 0 is 0). */
TAC_API const float *tac_quant_map(int is_signed);

/* Bytes of scratch of `adafactor`, a multiple of 64. */
TAC_API size_t tac_adafactor_work(const tac_adafactor_shape *d, int threads);

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
    /* The set's state, to be put into its slot of the tac_cpu_cache that
     * kc->cache points to; may both be NULL. */
    int slot;
    tac_status (*cache_create)(tac_context *ctx, void **cache);
    void (*cache_destroy)(void *cache);
    /* Bytes of scratch that the state holds; NULL: none. */
    size_t (*cache_bytes)(const void *cache);
} tac_kernel_set;

/* NULL-terminated, in the order of application: ref, avx2, avx512, onednn. A
 * battery runs over this list, so a new set is tested by being listed. Tables
 * of f16 and bf16 start as the 16-bit kernels over the f32 table of the same
 * sets (names "half(...)"), and are then overridden in the same order. */
TAC_API const tac_kernel_set *const *tac_cpu_kernel_sets(void);

TAC_END_DECLS

#endif
