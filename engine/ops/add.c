/* add.c: y = a + b, elementwise, or the sum of two scalar losses. Cost: one
 * copy and one addition; backward passes the gradient on, copying once at
 * most. */
#include "tacit/ops.h"
#include "tape_impl.h"

static void pass_loss(const tac_tensor *y, tac_tensor *x)
{
    if (!tac__wants(x)) return;
    x->loss_grad = (x->has_grad ? x->loss_grad : 0.0) + y->loss_grad;
    x->has_grad = 1;
}

static tac_status backward(tac_tape *t, tac__node *node)
{
    tac_tensor *a = node->in[0], *b = node->in[1], *y = node->out;

    if (y->is_loss) {
        pass_loss(y, a);
        pass_loss(y, b);
        return TAC_OK;
    }
    if (tac__wants(a)) TAC_TRY(tac__pass_grad(t, y, a, 1.0, !tac__wants(b)));
    if (tac__wants(b)) TAC_TRY(tac__pass_grad(t, y, b, 1.0, 1));
    return TAC_OK;
}

static const tac__op op = {"add", "add backward", backward};

static tac_status check_shapes(const tac_tape *t, const tac_tensor *a,
                               const tac_tensor *b)
{
    char ta[160], tb[160];
    int same = a->ndim == b->ndim;

    for (int i = 0; same && i < a->ndim; ++i) same = a->shape[i] == b->shape[i];
    if (same) return TAC_OK;
    return tac_fail(t->ctx, TAC_ERR_ARG, "add: %s %s and %s %s differ in shape",
                    tac__label(a, "a"), tac_tensor_shape_text(a, ta, sizeof ta),
                    tac__label(b, "b"),
                    tac_tensor_shape_text(b, tb, sizeof tb));
}

static tac_status check(const tac_tape *t, const tac_tensor *a,
                        const tac_tensor *b)
{
    if (a != NULL && b != NULL && a->is_loss && b->is_loss)
        return tac__check_phase(t, "add");
    TAC_TRY(tac__check_input(t, "add", "a", a, 0, TAC_MAX_DIMS));
    TAC_TRY(tac__check_input(t, "add", "b", b, 0, TAC_MAX_DIMS));
    TAC_TRY(tac__check_agrees(t, "add", a, "b", b));
    return check_shapes(t, a, b);
}

static tac_status forward(const tac_tape *t, const tac_tensor *a,
                          const tac_tensor *b, tac_tensor *y)
{
    const tac_device_ops *ops = tac_device_ops_of(t->dev);

    if (t->dry) return TAC_OK;
    TAC_TRY(ops->copy(tac_device_impl(t->dev), y->data, a->data,
                      tac_tensor_bytes(y), TAC_COPY_DEVICE_TO_DEVICE,
                      t->kc.queue));
    return t->k[y->dtype]->axpy(&t->kc, tac_tensor_count(y), 1.0, b->data,
                                y->data);
}

tac_status tac_op_add(tac_tape *t, tac_tensor *a, tac_tensor *b,
                      tac_tensor **out)
{
    tac_tensor *in[TAC__NODE_INPUTS] = {a, b, NULL}, *y = NULL;
    void *node;

    TAC_TRY(tac__autocast(t, op.name, in));
    a = in[0];
    b = in[1];
    TAC_TRY(check(t, a, b));
    TAC_TRY(tac__check_scalar_table(t, "add", a));
    const uint64_t begin = tac__span_begin(t);
    TAC_TRY(tac__tensor_new(t, a->dtype, a->ndim, a->shape, &y));
    y->is_loss = a->is_loss;
    TAC_TRY(forward(t, a, b, y));
    TAC_TRY(tac__record(t, &op, sizeof(tac__node), y, in, &node));
    tac__span_end(t, op.name, begin);
    *out = y;
    return TAC_OK;
}
