/* relu.c: y = max(x, 0). Backward works in place on the gradient of y where it
 * can. Cost: one pass. (The fused form of linear and conv2d is cheaper.) */
#include "tacit/ops.h"
#include "tape_impl.h"

static tac_status backward(tac_tape *t, tac__node *node)
{
    tac_tensor *x = node->in[0], *y = node->out;
    const size_t n = tac_tensor_count(y);
    tac__slot dx;

    if (tac__can_move(t, y, x)) {
        TAC__RUN(t, y->dtype,
                 relu_backward(&t->kc, n, y->data, y->grad, y->grad));
        tac__move(y, x);
        return TAC_OK;
    }
    TAC_TRY(tac__slot_open(t, x, 0, &dx));
    TAC__RUN(t, y->dtype, relu_backward(&t->kc, n, y->data, y->grad, dx.ptr));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"relu", "relu backward", backward};

tac_status tac_op_relu(tac_tape *t, tac_tensor *x, tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, NULL, NULL}, *y = NULL;
    void *node;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    TAC_TRY(tac__check_input(t, "relu", "x", x, 0, TAC_MAX_DIMS));
    const uint64_t begin = tac__span_begin(t);
    TAC_TRY(tac__tensor_new(t, x->dtype, x->ndim, x->shape, &y));
    TAC__RUN(t, x->dtype,
             relu_forward(&t->kc, tac_tensor_count(x), x->data, y->data));
    TAC_TRY(tac__record(t, &op, sizeof(tac__node), y, in, &node));
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
