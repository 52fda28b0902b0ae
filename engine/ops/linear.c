/* linear.c: y = act(x w' + b), the fully connected layer.
 *
 * Cost: 2*n*in*out FLOP forward, as much for each of the two gradients. A
 * fused ReLU's mask is applied to the gradient of y in place. */
#include "tacit/ops.h"
#include "tape_impl.h"

typedef struct linear_node {
    tac__node head; /* in: x, w, b */
    size_t n, in, out;
} linear_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const linear_node *l = (const linear_node *)node;
    tac_tensor *x = node->in[0], *w = node->in[1], *b = node->in[2];
    tac__weight_slots s;
    tac__slot dx;

    TAC_TRY(tac__relu_mask(t, node->out));
    const void *dy = node->out->grad;
    if (tac__wants(w) || tac__wants(b)) {
        TAC_TRY(tac__weights_open(t, w, b, &s));
        TAC__RUN(t, x->dtype,
                 linear_backward_weights(&t->kc, l->n, l->in, l->out, x->data,
                                         dy, s.w.ptr, s.b.ptr, s.accumulate));
        TAC_TRY(tac__weights_close(t, &s));
    }
    if (!tac__wants(x)) return TAC_OK;
    TAC_TRY(tac__slot_open(t, x, 1, &dx));
    TAC__RUN(t, x->dtype,
             linear_backward_data(&t->kc, l->n, l->in, l->out, dy, w->data,
                                  dx.ptr, dx.accumulate));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"linear", "linear backward", backward};

static tac_status mismatch(const tac_tape *t, const tac_tensor *x,
                           const tac_tensor *w, const tac_tensor *b)
{
    char tx[160], tw[160], tb[160] = "none";

    if (b != NULL) tac_tensor_shape_text(b, tb, sizeof tb);
    return tac_fail(
        t->ctx, TAC_ERR_ARG,
        "linear: %s %s, %s %s and %s %s do not fit: x (...,in), w (out,in), "
        "b (out)",
        tac__label(x, "x"), tac_tensor_shape_text(x, tx, sizeof tx),
        tac__label(w, "w"), tac_tensor_shape_text(w, tw, sizeof tw),
        b != NULL ? tac__label(b, "b") : "bias", tb);
}

static tac_status check(const tac_tape *t, const tac_tensor *x,
                        const tac_tensor *w, const tac_tensor *b)
{
    TAC_TRY(tac__check_input(t, "linear", "x", x, 1, TAC_MAX_DIMS));
    TAC_TRY(tac__check_input(t, "linear", "w", w, 2, 2));
    if (b != NULL) TAC_TRY(tac__check_input(t, "linear", "b", b, 1, 1));
    TAC_TRY(tac__check_agrees(t, "linear", x, "w", w));
    TAC_TRY(tac__check_agrees(t, "linear", x, "b", b));
    if (x->shape[x->ndim - 1] != w->shape[1] ||
        (b != NULL && b->shape[0] != w->shape[0]))
        return mismatch(t, x, w, b);
    return TAC_OK;
}

static tac_status result(tac_tape *t, const tac_tensor *x, const tac_tensor *w,
                         tac_tensor **y)
{
    size_t shape[TAC_MAX_DIMS];

    for (int i = 0; i < x->ndim - 1; ++i) shape[i] = x->shape[i];
    shape[x->ndim - 1] = w->shape[0];
    return tac__tensor_new(t, x->dtype, x->ndim, shape, y);
}

tac_status tac_op_linear(tac_tape *t, tac_tensor *x, tac_tensor *w,
                         tac_tensor *b, tac_act act, tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, w, b}, *y = NULL;
    linear_node d = {.in = 0};
    void *node;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    w = in[1];
    b = in[2];
    TAC_TRY(check(t, x, w, b));
    const uint64_t begin = tac__span_begin(t);
    (void)tac_shape_count(x->ndim - 1, x->shape, &d.n);
    d.in = w->shape[1];
    d.out = w->shape[0];
    TAC_TRY(result(t, x, w, &y));
    TAC__RUN(t, x->dtype,
             linear_forward(&t->kc, d.n, d.in, d.out, x->data, w->data,
                            b != NULL ? b->data : NULL, act, y->data));
    y->is_relu = act == TAC_ACT_RELU;
    TAC_TRY(tac__record(t, &op, sizeof d, y, in, &node));
    if (node != NULL) {
        d.head = *(tac__node *)node;
        *(linear_node *)node = d;
    }
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
