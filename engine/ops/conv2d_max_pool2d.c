/* conv2d_max_pool2d.c: y = maxpool(relu(conv(x, w) + b)) as one operation.
 *
 * Kept for backward: y and one byte an element of it; nothing of the size of
 * the convolution's output. Cost: that of the convolution, whose output stays
 * in the cache (see conv2d_pool_forward in kernels.h). */
#include "ops/conv2d.h"
#include "tacit/ops.h"
#include "tape_impl.h"

enum { MAX_WINDOW = 16 }; /* the index of a window's element is one byte */

typedef struct block_node {
    tac__node head; /* in: x, w, b */
    tac_conv2d d;
    tac_pool2d p;
    uint8_t *index;
} block_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const block_node *n = (const block_node *)node;
    tac_tensor *x = node->in[0], *w = node->in[1], *b = node->in[2];
    const int weights = tac__wants(w) || tac__wants(b), data = tac__wants(x);
    tac__weight_slots s = {0};
    tac__slot dx = {0};

    if (weights) TAC_TRY(tac__weights_open(t, w, b, &s));
    if (data) TAC_TRY(tac__slot_open(t, x, 1, &dx));
    TAC__RUN(t, x->dtype,
             conv2d_pool_backward(&t->kc, &n->d, &n->p, x->data, w->data,
                                  node->out->grad, n->index, node->out->data,
                                  s.w.ptr, s.b.ptr, s.accumulate, dx.ptr,
                                  dx.accumulate));
    if (weights) TAC_TRY(tac__weights_close(t, &s));
    return data ? tac__slot_close(t, &dx) : TAC_OK;
}

static const tac__op op = {"conv2d_max_pool2d", "conv2d_max_pool2d backward",
                           backward};

static tac_status set_pool(const tac_tape *t, const tac_conv2d *d,
                           tac_pool2d *p)
{
    p->n = d->n;
    p->h = d->oh;
    p->w = d->ow;
    p->c = d->oc;
    if (p->k == 0 || p->k > MAX_WINDOW || p->stride == 0 || p->h < p->k ||
        p->w < p->k)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "conv2d_max_pool2d: a window of %zu, stride %zu, does "
                        "not fit the convolution's output of %zux%zu: a window "
                        "of 1 to %d, no larger than that",
                        p->k, p->stride, p->h, p->w, (int)MAX_WINDOW);
    p->oh = (p->h - p->k) / p->stride + 1;
    p->ow = (p->w - p->k) / p->stride + 1;
    return TAC_OK;
}

tac_status tac_op_conv2d_max_pool2d(tac_tape *t, tac_tensor *x, tac_tensor *w,
                                    tac_tensor *b, size_t stride, size_t pad,
                                    size_t k, size_t pool_stride,
                                    tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, w, b}, *y = NULL;
    tac_conv2d d = {.stride = stride, .pad = pad};
    tac_pool2d p = {.k = k, .stride = pool_stride};
    void *node, *index = NULL;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    w = in[1];
    b = in[2];
    TAC_TRY(tac__conv2d_check(t, x, w, b, &d));
    TAC_TRY(set_pool(t, &d, &p));
    const uint64_t begin = tac__span_begin(t);
    const size_t shape[4] = {p.n, p.oh, p.ow, p.c};
    TAC_TRY(tac__tensor_new(t, x->dtype, 4, shape, &y));
    if (tac__will_record(t, in))
        TAC_TRY(tac__alloc(t, tac_tensor_count(y), &index));
    TAC__RUN(t, x->dtype,
             conv2d_pool_forward(&t->kc, &d, &p, x->data, w->data,
                                 b != NULL ? b->data : NULL, y->data, index));
    TAC_TRY(tac__record(t, &op, sizeof(block_node), y, in, &node));
    if (node != NULL) {
        ((block_node *)node)->d = d;
        ((block_node *)node)->p = p;
        ((block_node *)node)->index = index;
    }
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
