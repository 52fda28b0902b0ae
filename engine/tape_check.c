/* Arguments of operations, checked before anything is allocated. */
#include "tape_impl.h"

tac_status tac__check_phase(const tac_tape *t, const char *op)
{
    if (t->phase == TAC__FORWARD || t->phase == TAC__BACKWARD) return TAC_OK;
    return tac_fail(t->ctx, TAC_ERR_STATE, "%s: call tac_tape_begin first", op);
}

const char *tac__label(const tac_tensor *x, const char *role)
{
    return x->name != NULL ? x->name : role;
}

tac_status tac__check_input(const tac_tape *t, const char *op, const char *role,
                            const tac_tensor *x, int lo, int hi)
{
    char text[160];

    TAC_TRY(tac__check_phase(t, op));
    if (x == NULL)
        return tac_fail(t->ctx, TAC_ERR_ARG, "%s: %s is missing", op, role);
    if (!tac_dtype_is_float(x->dtype) || x->is_loss)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "%s: %s is %s of dtype %s; it takes tensors of f32, "
                        "f64, f16 or bf16",
                        op, tac__label(x, role),
                        x->is_loss ? "a loss" : "a tensor",
                        tac_dtype_name(x->dtype));
    TAC_TRY(tac__check_table(t, op, x->dtype));
    if (x->ndim < lo || x->ndim > hi)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "%s: %s %s has %d dimensions; %d to %d are possible",
                        op, tac__label(x, role),
                        tac_tensor_shape_text(x, text, sizeof text), x->ndim,
                        lo, hi);
    return TAC_OK;
}

tac_status tac__check_table(const tac_tape *t, const char *op, tac_dtype dtype)
{
    if (t->k[dtype] != NULL) return TAC_OK;
    return tac_fail(t->ctx, TAC_ERR_UNSUPPORTED,
                    "%s: device %s has no kernels for %s", op,
                    tac_device_name(t->dev), tac_dtype_name(dtype));
}

tac_status tac__check_agrees(const tac_tape *t, const char *op,
                             const tac_tensor *first, const char *role,
                             const tac_tensor *x)
{
    if (x == NULL || x->dtype == first->dtype) return TAC_OK;
    return tac_fail(t->ctx, TAC_ERR_ARG,
                    "%s: %s is of dtype %s, the first input is %s: cast one "
                    "with tac_op_cast, or use a region of autocast",
                    op, tac__label(x, role), tac_dtype_name(x->dtype),
                    tac_dtype_name(first->dtype));
}

tac_status tac__check_scalar_table(const tac_tape *t, const char *op,
                                   const tac_tensor *x)
{
    return t->dry ? TAC_OK : tac__check_table(t, op, x->dtype);
}
