/* cast.c: y = x in another floating-point type, rounded to nearest.
 *
 * Backward casts the gradient back, adding where there is one already. A
 * parameter becomes a view in the other type instead (tape_autocast.c), so that
 * products write its gradient in f32. Cost: one pass. */
#include "tacit/ops.h"
#include "tape_impl.h"

static tac_status backward(tac_tape *t, tac__node *node)
{
    tac_tensor *x = node->in[0], *y = node->out;
    const tac_dtype to = x->dtype;
    tac__slot dx;

    TAC_TRY(tac__slot_open(t, x, to == TAC_F32, &dx));
    TAC__RUN(t, to,
             cast(&t->kc, tac_tensor_count(y), y->dtype, y->grad, to, dx.ptr,
                  dx.accumulate));
    return tac__slot_close(t, &dx);
}

static const tac__op op = {"cast", "cast backward", backward};

static tac_status check(const tac_tape *t, const tac_tensor *x, tac_dtype dtype)
{
    TAC_TRY(tac__check_input(t, op.name, "x", x, 0, TAC_MAX_DIMS));
    if (!tac_dtype_is_float(dtype) ||
        (x->dtype != dtype && (x->dtype == TAC_F64 || dtype == TAC_F64)))
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "cast: %s from %s to %s; f32, f16 and bf16 can be cast "
                        "to one another",
                        tac__label(x, "x"), tac_dtype_name(x->dtype),
                        tac_dtype_name(dtype));
    return tac__check_table(t, op.name, dtype);
}

static tac_status record_cast(tac_tape *t, tac_tensor *x, tac_dtype dtype,
                              tac_tensor **out)
{
    tac_tensor *const in[TAC__NODE_INPUTS] = {x, NULL, NULL};
    tac_tensor *y = NULL;
    void *node;

    TAC_TRY(tac__tensor_new(t, dtype, x->ndim, x->shape, &y));
    y->name = x->name;
    TAC__RUN(t, dtype,
             cast(&t->kc, tac_tensor_count(x), x->dtype, x->data, dtype,
                  y->data, 0));
    TAC_TRY(tac__record(t, &op, sizeof(tac__node), y, in, &node));
    *out = y;
    return TAC_OK;
}

tac_status tac_op_cast(tac_tape *t, tac_tensor *x, tac_dtype dtype,
                       tac_tensor **out)
{
    TAC_TRY(check(t, x, dtype));
    if (x->dtype == dtype) {
        *out = x;
        return TAC_OK;
    }
    const uint64_t begin = tac__span_begin(t);
    if (tac__root(x)->param >= 0)
        TAC_TRY(tac__cast_param(t, x, dtype, out));
    else
        TAC_TRY(record_cast(t, x, dtype, out));
    tac__span_end(t, op.name, begin);
    return TAC_OK;
}
