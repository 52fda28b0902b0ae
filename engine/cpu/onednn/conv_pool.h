/* conv_pool.h: one call of the block convolution, ReLU, max pooling.
 *
 * A thread takes some images at a time (a slice), so few that the convolution's
 * output stays in its second-level cache between the two steps, forward and
 * backward. That output is f32 in the table of bf16, too: pooling is done by
 * the kernels of f32, and only what has been pooled is rounded. */
#ifndef TAC_CPU_ONEDNN_CONV_POOL_H
#define TAC_CPU_ONEDNN_CONV_POOL_H

#include <stdatomic.h>

#include "cpu/onednn/conv.h"
#include "tacit/pool.h"

/* Where things lie in a thread's workspace. The convolution's output (or its
 * gradient) comes first. */
typedef struct tac__block_space {
    size_t plan;   /* of forward or backward weights; without one, dw and db */
    size_t data;   /* of backward data */
    size_t pooled; /* bf16: the block's output, or its gradient, in f32 */
    size_t y;      /* bf16, backward: the block's output in f32 */
    size_t narrow; /* bf16, backward: the convolution's gradient in bf16 */
    size_t x, w;   /* bf16, direct convolution: x; w and b, in f32 */
} tac__block_space;

typedef struct tac__block {
    tac__onednn *o;
    const tac_kctx *kc;
    tac_dtype type;
    const tac_conv2d *d;
    const tac_pool2d *p;
    const tac__conv_plan *forward, *weights, *data; /* NULL: not used */
    const tac__small_conv *small; /* instead of forward and weights */
    size_t chunks, bytes;
    tac__block_space at;
    const char *x, *w, *b, *dy, *y; /* of the type; so are out and dx */
    const uint8_t *index;
    char *out, *dx;
    uint8_t *index_out;
    int want_weights;
    _Atomic int failed; /* a dnnl_status_t */
} tac__block;

/* Run the chunks [begin, end) as `part` of the pool. */
tac_pool_fn tac__block_forward_part, tac__block_backward_part;

#endif
