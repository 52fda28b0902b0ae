/* conv2d.c: y = act(conv(x, w) + b) over NHWC images, weights OIHW.
 *
 * Cost: 2*n*oh*ow*oc*ic*kh*kw FLOP forward, as much for each of the two
 * gradients. A fused ReLU's mask is applied to the gradient of y in place, or
 * has been applied by the pooling that follows. */
#include "tacit/ops.h"
#include "ops/conv2d.h"
#include "tape_impl.h"

typedef struct conv_node {
    tac__node head; /* in: x, w, b */
    tac_conv2d d;
} conv_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const conv_node *c = (const conv_node *)node;
    tac_tensor *x = node->in[0], *w = node->in[1], *b = node->in[2];
    tac__weight_slots s;
    tac__slot dx;

    TAC_TRY(tac__relu_mask(t, node->out));
    const void *dy = node->out->grad;
    if (tac__wants(w) || tac__wants(b)) {
        TAC_TRY(tac__weights_open(t, w, b, &s));
        TAC__RUN(t, x->dtype,
                 conv2d_backward_weights(&t->kc, &c->d, x->data, dy, s.w.ptr,
                                         s.b.ptr, s.accumulate));
        TAC_TRY(tac__weights_close(t, &s));
    }
    if (!tac__wants(x)) return TAC_OK;
    TAC_TRY(tac__slot_open(t, x, 1, &dx));
    TAC__RUN(t, x->dtype,
             conv2d_backward_data(&t->kc, &c->d, dy, w->data, dx.ptr,
                                  dx.accumulate));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"conv2d", "conv2d backward", backward};

static tac_status mismatch(const tac_tape *t, const tac_tensor *x,
                           const tac_tensor *w, const tac_tensor *b,
                           const tac_conv2d *d)
{
    char tx[160], tw[160], tb[160] = "none";

    if (b != NULL) tac_tensor_shape_text(b, tb, sizeof tb);
    return tac_fail(
        t->ctx, TAC_ERR_ARG,
        "conv2d: %s %s, %s %s, %s %s, stride %zu, pad %zu do not fit: x "
        "(n,h,w,ic), w (oc,ic,kh,kw), b (oc), a window no larger than the "
        "padded image",
        tac__label(x, "x"), tac_tensor_shape_text(x, tx, sizeof tx),
        tac__label(w, "w"), tac_tensor_shape_text(w, tw, sizeof tw),
        b != NULL ? tac__label(b, "b") : "bias", tb, d->stride, d->pad);
}

/* 1 if everything fits; then the output's size is set. */
static int set_geometry(tac_conv2d *d, const tac_tensor *x, const tac_tensor *w,
                        const tac_tensor *b)
{
    d->n = x->shape[0];
    d->h = x->shape[1];
    d->w = x->shape[2];
    d->ic = x->shape[3];
    d->oc = w->shape[0];
    d->kh = w->shape[2];
    d->kw = w->shape[3];
    if (w->shape[1] != d->ic || d->stride == 0 || d->kh == 0 || d->kw == 0)
        return 0;
    if (b != NULL && b->shape[0] != d->oc) return 0;
    if (d->pad > SIZE_MAX / 4 || d->h > SIZE_MAX / 4 || d->w > SIZE_MAX / 4)
        return 0;
    if (d->h + 2 * d->pad < d->kh || d->w + 2 * d->pad < d->kw) return 0;
    d->oh = (d->h + 2 * d->pad - d->kh) / d->stride + 1;
    d->ow = (d->w + 2 * d->pad - d->kw) / d->stride + 1;
    return 1;
}

tac_status tac__conv2d_check(const tac_tape *t, const tac_tensor *x,
                             const tac_tensor *w, const tac_tensor *b,
                             tac_conv2d *d)
{
    TAC_TRY(tac__check_input(t, "conv2d", "x", x, 4, 4));
    TAC_TRY(tac__check_input(t, "conv2d", "w", w, 4, 4));
    if (b != NULL) TAC_TRY(tac__check_input(t, "conv2d", "b", b, 1, 1));
    TAC_TRY(tac__check_agrees(t, "conv2d", x, "w", w));
    TAC_TRY(tac__check_agrees(t, "conv2d", x, "b", b));
    return set_geometry(d, x, w, b) ? TAC_OK : mismatch(t, x, w, b, d);
}

tac_status tac_op_conv2d(tac_tape *t, tac_tensor *x, tac_tensor *w,
                         tac_tensor *b, size_t stride, size_t pad, tac_act act,
                         tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, w, b}, *y = NULL;
    tac_conv2d d = {.stride = stride, .pad = pad};
    void *node;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    w = in[1];
    b = in[2];
    TAC_TRY(tac__conv2d_check(t, x, w, b, &d));
    const uint64_t begin = tac__span_begin(t);
    const size_t shape[4] = {d.n, d.oh, d.ow, d.oc};
    TAC_TRY(tac__tensor_new(t, x->dtype, 4, shape, &y));
    TAC__RUN(t, x->dtype,
             conv2d_forward(&t->kc, &d, x->data, w->data,
                            b != NULL ? b->data : NULL, act, y->data));
    y->is_relu = act == TAC_ACT_RELU;
    TAC_TRY(tac__record(t, &op, sizeof(conv_node), y, in, &node));
    if (node != NULL) ((conv_node *)node)->d = d;
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
