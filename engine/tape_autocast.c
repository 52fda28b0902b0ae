/* Regions of autocast, and parameters in other types.
 *
 * A parameter cast to another type is a view of it with data of its own: in the
 * caller's working weights, or in the step arena. So its gradient is the
 * parameter's, which a kernel writes in the wide type, and nothing is recorded.
 * Activations are cast by tac_op_cast, which is.
 *
 * Kept casts are a stack; each parameter knows its latest. A block that runs
 * again drops what it made by cutting the stack. */
#include <string.h>

#include "tacit/ops.h"
#include "tape_impl.h"

tac_status tac_tape_set_autocast(tac_tape *t, const tac_tape_autocast *a)
{
    if (a == NULL) {
        t->cast.on = 0;
        return TAC_OK;
    }
    if (a->struct_size != sizeof *a)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "autocast: struct_size is %zu, not %zu: set it, and "
                        "build with this library's headers",
                        a->struct_size, sizeof *a);
    if ((a->low != TAC_F16 && a->low != TAC_BF16) || a->rule == NULL)
        return tac_fail(t->ctx, TAC_ERR_ARG,
                        "autocast: %s; a region needs f16 or bf16 and a rule",
                        a->rule == NULL ? "no rule" : tac_dtype_name(a->low));
    TAC_TRY(tac__check_table(t, "autocast", a->low));
    t->cast = (tac__cast_region){*a, 1, ++t->cast_regions};
    return TAC_OK;
}

const tac_tape_autocast *tac_tape_get_autocast(const tac_tape *t)
{
    return t->cast.on ? &t->cast.a : NULL;
}

size_t tac_tape_param_casts(const tac_tape *t)
{
    return t->n_param_casts;
}

void tac__forget_casts(tac_tape *t, tac__cast_entry *to)
{
    for (; t->casts != to; t->casts = t->casts->previous)
        t->casts_of[t->casts->param] = t->casts->of_param;
}

static const tac__cast_entry *find_cast(const tac_tape *t, size_t param,
                                        tac_dtype dtype)
{
    for (const tac__cast_entry *e = t->casts_of[param]; e; e = e->of_param)
        if (e->region == t->cast.id && e->dtype == dtype) return e;
    return NULL;
}

static tac_status keep_cast(tac_tape *t, size_t param, tac_dtype dtype,
                            void *data)
{
    tac__cast_entry *e = NULL;

    TAC_TRY(tac__meta_alloc(t, sizeof *e, (void **)&e));
    *e = (tac__cast_entry){param, t->cast.id,         dtype,
                           data,  t->casts_of[param], t->casts};
    t->casts_of[param] = t->casts = e;
    return TAC_OK;
}

/* The value of a parameter as `dtype`, made in the step. */
static tac_status make_cast(tac_tape *t, const tac_tensor *p, tac_dtype dtype,
                            void **out)
{
    const size_t n = tac_tensor_count(p);

    TAC_TRY(tac__alloc(t, n * tac_dtype_size(dtype), out));
    if (t->dry) return TAC_OK;
    t->n_param_casts += 1;
    return t->k[dtype]->cast(&t->kc, n, p->dtype, p->data, dtype, *out, 0);
}

/* From the caller's working weights; NULL if they have no place yet. */
static void *working_weights(const tac_tape *t, size_t param)
{
    const size_t size = tac_dtype_size(t->cast.a.low);

    if (t->dry) return NULL;
    return (char *)(uintptr_t)t->cast.a.weights +
           tac_params_get(t->params, param)->offset * size;
}

static tac_status param_as(tac_tape *t, const tac_tensor *p, tac_dtype dtype,
                           void **out)
{
    const size_t param = (size_t)p->param;
    const tac_tape_autocast *a = tac_tape_get_autocast(t);
    const tac__cast_entry *kept;

    if (a == NULL) return make_cast(t, p, dtype, out);
    if (a->weights != NULL && dtype == a->low) {
        *out = working_weights(t, param);
        return TAC_OK;
    }
    kept = a->cache ? find_cast(t, param, dtype) : NULL;
    if (kept != NULL) {
        *out = kept->data;
        return TAC_OK;
    }
    TAC_TRY(make_cast(t, p, dtype, out));
    return a->cache ? keep_cast(t, param, dtype, *out) : TAC_OK;
}

tac_status tac__cast_param(tac_tape *t, tac_tensor *x, tac_dtype dtype,
                           tac_tensor **out)
{
    tac_tensor *p = tac__root(x), *y = NULL;

    if (dtype == x->dtype) {
        *out = x;
        return TAC_OK;
    }
    TAC_TRY(tac__tensor_view(t, x, x->ndim, x->shape, &y));
    y->dtype = dtype;
    y->data = p->data;
    if (dtype != p->dtype) TAC_TRY(param_as(t, p, dtype, &y->data));
    *out = y;
    return TAC_OK;
}

/* --- what an operation's rule asks for --- */

static int takes_part(const tac_tensor *x)
{
    return x != NULL && !x->is_loss && tac_dtype_is_float(x->dtype);
}

static int is_param(tac_tensor *x)
{
    return tac__root(x)->param >= 0;
}

static int any_f64(tac_tensor *const *in)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i)
        if (takes_part(in[i]) && in[i]->dtype == TAC_F64) return 1;
    return 0;
}

/* f32 is wider than both 16-bit types, of which neither holds the other. */
static tac_dtype widest(tac_tensor *const *in)
{
    tac_dtype dtype = TAC_DTYPE_COUNT;

    for (int i = 0; i < TAC__NODE_INPUTS; ++i) {
        if (!takes_part(in[i])) continue;
        if (dtype == TAC_DTYPE_COUNT) dtype = in[i]->dtype;
        if (dtype != in[i]->dtype) dtype = TAC_F32;
    }
    return dtype;
}

/* The type of the first input that is no parameter. */
static tac_dtype given(tac_tensor *const *in)
{
    for (int i = 0; i < TAC__NODE_INPUTS; ++i)
        if (takes_part(in[i]) && !is_param(in[i])) return in[i]->dtype;
    return TAC_DTYPE_COUNT;
}

/* TAC_DTYPE_COUNT: nothing is to be cast. */
static tac_dtype wanted(const tac_tape *t, tac_cast_rule rule,
                        tac_tensor *const *in)
{
    switch (rule) {
    case TAC_CAST_NONE: return given(in);
    case TAC_CAST_LOW: return t->cast.a.low;
    case TAC_CAST_F32: return TAC_F32;
    case TAC_CAST_WIDEST: return widest(in);
    }
    return TAC_DTYPE_COUNT;
}

tac_status tac__autocast(tac_tape *t, const char *op, tac_tensor **in)
{
    if (!t->cast.on) return TAC_OK;
    TAC_TRY(tac__check_phase(t, op));
    if (any_f64(in)) return TAC_OK;
    const tac_cast_rule rule = t->cast.a.rule(op);
    const tac_dtype dtype = wanted(t, rule, in);
    if (dtype == TAC_DTYPE_COUNT) return TAC_OK;
    for (int i = 0; i < TAC__NODE_INPUTS; ++i) {
        if (!takes_part(in[i]) || in[i]->dtype == dtype) continue;
        if (rule == TAC_CAST_NONE && !is_param(in[i])) continue;
        TAC_TRY(tac_op_cast(t, in[i], dtype, &in[i]));
    }
    return TAC_OK;
}
