/* max_pool2d.c: maxima of k x k windows of NHWC images.
 *
 * Kept for backward: one byte an output element. If the input came out of a
 * fused ReLU and nobody else uses it, its mask is applied in the same pass, so
 * that the largest gradient of a convolution net is written once instead of
 * read and written again. Cost: one pass over x. */
#include "tacit/ops.h"
#include "tape_impl.h"

enum { MAX_WINDOW = 16 }; /* the index of a window's element is one byte */

typedef struct pool_node {
    tac__node head; /* in: x */
    tac_pool2d d;
    uint8_t *index;
} pool_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const pool_node *p = (const pool_node *)node;
    tac_tensor *x = node->in[0], *y = node->out;
    tac_tensor *root = tac__root(x);
    const int fused = root->is_relu && root->uses == 1;
    tac__slot dx;

    TAC_TRY(tac__slot_open(t, x, 0, &dx));
    TAC__RUN(t, y->dtype,
             maxpool2d_backward(&t->kc, &p->d, y->grad, p->index,
                                fused ? y->data : NULL, dx.ptr));
    if (fused) root->relu_done = 1;
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"max_pool2d", "max_pool2d backward", backward};

static tac_status check(const tac_tape *t, const tac_tensor *x, tac_pool2d *d)
{
    char text[160];

    TAC_TRY(tac__check_input(t, "max_pool2d", "x", x, 4, 4));
    d->n = x->shape[0];
    d->h = x->shape[1];
    d->w = x->shape[2];
    d->c = x->shape[3];
    if (d->k == 0 || d->k > MAX_WINDOW || d->stride == 0 || d->h < d->k ||
        d->w < d->k)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "max_pool2d: %s %s, window %zu, stride %zu do not fit: "
                        "x (n,h,w,c), a window of 1 to %d, no larger than the "
                        "image",
                        tac__label(x, "x"),
                        tac_tensor_shape_text(x, text, sizeof text), d->k,
                        d->stride, (int)MAX_WINDOW);
    d->oh = (d->h - d->k) / d->stride + 1;
    d->ow = (d->w - d->k) / d->stride + 1;
    return TAC_OK;
}

tac_status tac_op_max_pool2d(tac_tape *t, tac_tensor *x, size_t k,
                             size_t stride, tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, NULL, NULL}, *y = NULL;
    tac_pool2d d = {.k = k, .stride = stride};
    void *node, *index = NULL;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    TAC_TRY(check(t, x, &d));
    const uint64_t begin = tac__span_begin(t);
    const size_t shape[4] = {d.n, d.oh, d.ow, d.c};
    TAC_TRY(tac__tensor_new(t, x->dtype, 4, shape, &y));
    if (tac__will_record(t, in))
        TAC_TRY(tac__alloc(t, tac_tensor_count(y), &index));
    TAC__RUN(t, x->dtype,
             maxpool2d_forward(&t->kc, &d, x->data, y->data, index));
    TAC_TRY(tac__record(t, &op, sizeof(pool_node), y, in, &node));
    if (node != NULL) {
        ((pool_node *)node)->d = d;
        ((pool_node *)node)->index = index;
    }
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
