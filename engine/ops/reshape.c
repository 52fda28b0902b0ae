/* reshape.c: views. Nothing is copied or recorded: a view has the data and the
 * gradient of the tensor that it views. */
#include "tacit/ops.h"
#include "tape_impl.h"

static tac_status mismatch(const tac_tape *t, const tac_tensor *x, int ndim,
                           const size_t *shape)
{
    char from[160], to[160];
    tac_tensor y = {.ndim = ndim};

    for (int i = 0; i < ndim; ++i) y.shape[i] = shape[i];
    return tac_fail(t->ctx, TAC_ERR_ARG,
                    "reshape: %s %s has another count of elements than %s",
                    tac__label(x, "x"),
                    tac_tensor_shape_text(x, from, sizeof from),
                    tac_tensor_shape_text(&y, to, sizeof to));
}

tac_status tac_op_reshape(tac_tape *t, tac_tensor *x, int ndim,
                          const size_t *shape, tac_tensor **out)
{
    size_t count = 0;

    TAC_TRY(tac__check_phase(t, "reshape"));
    if (x == NULL || x->is_loss)
        return tac_fail(t->ctx, TAC_ERR_ARG, "reshape: x is %s",
                        x == NULL ? "missing" : "a loss");
    if (ndim < 0 || ndim > TAC_MAX_DIMS)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "reshape: %d dimensions; 0 to %d are possible", ndim,
                        TAC_MAX_DIMS);
    if (!tac_shape_count(ndim, shape, &count) || count != tac_tensor_count(x))
        return mismatch(t, x, ndim, shape);
    return tac__tensor_view(t, x, ndim, shape, out);
}

tac_status tac_op_flatten(tac_tape *t, tac_tensor *x, tac_tensor **out)
{
    size_t shape[2] = {0, 0};

    TAC_TRY(tac__check_phase(t, "flatten"));
    if (x == NULL || x->ndim < 1)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "flatten: x needs one dimension or more");
    shape[0] = x->shape[0];
    (void)tac_shape_count(x->ndim - 1, x->shape + 1, &shape[1]);
    return tac_op_reshape(t, x, 2, shape, out);
}
