/* onednn.h: matrix products and convolutions by oneDNN. Private to this folder.
 *
 * Threads. oneDNN is always called with one thread, in each worker of our pool,
 * on a slice of the work: slices of images for convolutions (partial weight
 * gradients are added in a fixed order), of columns or rows for products. Its
 * own OpenMP team was as fast by itself, but its idle threads spin for
 * milliseconds and fight with the pool's, which cost a sixth of the time of
 * convolutions and passes in turn (docs/kernels.md). So oneDNN never starts a
 * thread, ranks as threads don't disturb each other, and a result depends on
 * shapes and on the number of threads alone.
 *
 * Layouts. Activations stay NHWC: on the layers measured that was as fast as
 * oneDNN's blocked formats without their reorders. Weights stay OIHW outside
 * and are reordered at each call, for they change at each step.
 *
 * Precision. f32 is f32: the floating-point mode is strict, whatever
 * DNNL_DEFAULT_FPMATH_MODE says. bf16 is read and written as such and
 * accumulated in f32 (AMX or AVX512-BF16, which take subnormals as 0); where
 * the processor has neither, this set leaves the table of bf16 alone. */
#ifndef TAC_CPU_ONEDNN_H
#define TAC_CPU_ONEDNN_H

#include "cpu/onednn/api.h"
#include "cpu/small_conv.h"
#include "tacit/kernels.h"

/* OpenMP's thread count of the calling thread, NULL if oneDNN has no OpenMP. */
typedef struct tac__omp {
    int (*get)(void);
    void (*set)(int);
} tac__omp;

tac__omp tac__omp_find(void);
/* Sets the calling thread's count to one; returns what it was. */
int tac__omp_enter(const tac__omp *omp);
void tac__omp_leave(const tac__omp *omp, int before);

/* Memory of one part of the pool: scratch, reordered weights, partial sums.
 * Shared by all plans, as one kernel runs at a time; only ever grows. */
typedef struct tac__workspace {
    char *p;
    size_t bytes;
} tac__workspace;

enum { TAC__PLAN_BUCKETS = 64 };
struct tac__conv_plan;
struct tac__matmul_plan;

/* In its slot of kc->cache. */
typedef struct tac__onednn {
    tac_context *ctx;
    dnnl_engine_t engine;
    tac__omp omp;
    tac_kernels base; /* the sets before this one: for shapes with a size of 0,
                         for what oneDNN refuses, and for pooling */
    tac_kernels base_bf16; /* the same of bf16, if there is such a table */
    const tac__small_conv *small; /* NULL: none */
    struct tac__conv_plan *plans[TAC__PLAN_BUCKETS];
    struct tac__matmul_plan *products[TAC__PLAN_BUCKETS];
    tac__workspace *spaces; /* one a part */
    size_t space_count;
} tac__onednn;

static inline tac__onednn *tac__onednn_of(const tac_kctx *kc)
{
    const tac_cpu_cache *cache = kc->cache;
    return cache->slots[TAC_CPU_SLOT_ONEDNN];
}

tac_status tac__onednn_create(tac_context *ctx, void **cache);
void tac__onednn_destroy(void *cache);
size_t tac__onednn_bytes(const void *cache); /* of the workspaces */
/* Makes `parts` workspaces of at least `bytes` each. Errors: NOMEM. */
tac_status tac__onednn_reserve(tac__onednn *o, size_t parts, size_t bytes);
/* Reports a failure of oneDNN itself. */
tac_status tac__onednn_fail(tac__onednn *o, dnnl_status_t s, const char *what);

/* y (n) of `type` += x; one rounding. */
void tac__onednn_add(tac_dtype type, void *y, const float *x, size_t n);

/* Entries of the tables of f32 and bf16. */
#define TAC__ONEDNN_ENTRIES(name)                                              \
    tac_status tac__onednn_linear_forward_##name(                              \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *x,    \
        const void *w, const void *b, tac_act act, void *y);                   \
    tac_status tac__onednn_linear_backward_data_##name(                        \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *dy,   \
        const void *w, void *dx, int accumulate);                              \
    tac_status tac__onednn_linear_backward_weights_##name(                     \
        const tac_kctx *kc, size_t n, size_t in, size_t out, const void *x,    \
        const void *dy, void *dw, void *db, int accumulate);                   \
    tac_status tac__onednn_conv_forward_##name(                                \
        const tac_kctx *kc, const tac_conv2d *d, const void *x, const void *w, \
        const void *b, tac_act act, void *y);                                  \
    tac_status tac__onednn_conv_backward_data_##name(                          \
        const tac_kctx *kc, const tac_conv2d *d, const void *dy,               \
        const void *w, void *dx, int accumulate);                              \
    tac_status tac__onednn_conv_backward_weights_##name(                       \
        const tac_kctx *kc, const tac_conv2d *d, const void *x,                \
        const void *dy, void *dw, void *db, int accumulate);                   \
    tac_status tac__onednn_conv_pool_forward_##name(                           \
        const tac_kctx *kc, const tac_conv2d *d, const tac_pool2d *p,          \
        const void *x, const void *w, const void *b, void *y, uint8_t *index); \
    tac_status tac__onednn_conv_pool_backward_##name(                          \
        const tac_kctx *kc, const tac_conv2d *d, const tac_pool2d *p,          \
        const void *x, const void *w, const void *dy, const uint8_t *index,    \
        const void *y, void *dw, void *db, int accumulate_weights, void *dx,   \
        int accumulate_data);

TAC__ONEDNN_ENTRIES(f32)
TAC__ONEDNN_ENTRIES(bf16)

#endif
