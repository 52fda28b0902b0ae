/* scale.c: y = factor * x, elementwise or of a scalar loss. Cost: a copy and a
 * pass; backward works in place on the gradient of y where it can. */
#include "tacit/ops.h"
#include "tape_impl.h"

typedef struct scale_node {
    tac__node head; /* in: x */
    double factor;
} scale_node;

static tac_status backward(tac_tape *t, tac__node *node)
{
    const double factor = ((const scale_node *)node)->factor;
    tac_tensor *x = node->in[0], *y = node->out;

    if (!y->is_loss) return tac__pass_grad(t, y, x, factor, 1);
    x->loss_grad = (x->has_grad ? x->loss_grad : 0.0) + factor * y->loss_grad;
    x->has_grad = 1;
    return TAC_OK;
}

static const tac__op op = {"scale", "scale backward", backward};

static tac_status forward(const tac_tape *t, const tac_tensor *x, double factor,
                          tac_tensor *y)
{
    const tac_device_ops *ops = tac_device_ops_of(t->dev);

    if (t->dry) return TAC_OK;
    TAC_TRY(ops->copy(tac_device_impl(t->dev), y->data, x->data,
                      tac_tensor_bytes(y), TAC_COPY_DEVICE_TO_DEVICE,
                      t->kc.queue));
    return t->k[y->dtype]->scale(&t->kc, tac_tensor_count(y), factor, y->data);
}

tac_status tac_op_scale(tac_tape *t, tac_tensor *x, double factor,
                        tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {x, NULL, NULL}, *y = NULL;
    void *node;

    TAC_TRY(tac__autocast(t, op.name, in));
    x = in[0];
    if (x == NULL || !x->is_loss)
        TAC_TRY(tac__check_input(t, "scale", "x", x, 0, TAC_MAX_DIMS));
    TAC_TRY(tac__check_phase(t, "scale"));
    TAC_TRY(tac__check_scalar_table(t, "scale", x));
    const uint64_t begin = tac__span_begin(t);
    TAC_TRY(tac__tensor_new(t, x->dtype, x->ndim, x->shape, &y));
    y->is_loss = x->is_loss;
    TAC_TRY(forward(t, x, factor, y));
    TAC_TRY(tac__record(t, &op, sizeof(scale_node), y, in, &node));
    if (node != NULL) ((scale_node *)node)->factor = factor;
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
