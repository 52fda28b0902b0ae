/* Laying out an optimizer's state in one piece of memory.
 *
 * First come the moments of dense parameters (sgd, adamw, what adamw8bit keeps
 * in f32), one moment after the other, each with the values' own padding and in
 * their order, so that neighbours can share a kernel call. Then each other
 * array, at a multiple of 64 bytes. Frozen and empty parameters have none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "optim_impl.h"
#include "tacit/context.h"

enum { LINE = 64 };

static size_t up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Moments, statistics and gradients are of A. */
static tac_dtype a_type(const tac_params *params)
{
    return tac_params_dtype(params) == TAC_F64 ? TAC_F64 : TAC_F32;
}

size_t tac__optimizer_padded(const tac_params *params, size_t index)
{
    const size_t unit = LINE / tac_dtype_size(tac_params_dtype(params));
    return up(tac_params_get(params, index)->count, unit);
}

static tac__state_part *add(tac__slot *slot, const char *name, tac_dtype dtype,
                            int ndim, const size_t *shape)
{
    tac__state_part *part = &slot->parts[slot->n_parts++];
    size_t count = 1;

    part->name = name;
    part->dtype = dtype;
    part->ndim = ndim;
    for (int i = 0; i < ndim; ++i) {
        part->shape[i] = shape[i];
        count *= shape[i];
    }
    part->bytes = count * tac_dtype_size(dtype);
    return part;
}

static void add_dense(tac__slot *slot, const tac_optimizer_config *c,
                      const tac_param *q, tac_dtype a)
{
    slot->form = TAC__FORM_DENSE;
    if (c->kind == TAC_OPTIMIZER_SGD) {
        if (c->momentum > 0) add(slot, "momentum_buffer", a, q->ndim, q->shape);
        return;
    }
    add(slot, "exp_avg", a, q->ndim, q->shape);
    add(slot, "exp_avg_sq", a, q->ndim, q->shape);
}

static void add_quantised(tac__slot *slot, const tac_param *q)
{
    const size_t blocks = (q->count + TAC_QUANT_BLOCK - 1) / TAC_QUANT_BLOCK;

    slot->form = TAC__FORM_QUANT;
    add(slot, "exp_avg", TAC_U8, q->ndim, q->shape);
    add(slot, "exp_avg_absmax", TAC_F32, 1, &blocks);
    add(slot, "exp_avg_sq", TAC_U8, q->ndim, q->shape);
    add(slot, "exp_avg_sq_absmax", TAC_F32, 1, &blocks);
}

static tac_adafactor_shape factor_shape(const tac_param *q)
{
    tac_adafactor_shape d = {1, 0, q->count};

    if (q->ndim < 2) return d;
    d.rows = q->shape[q->ndim - 2];
    d.cols = q->shape[q->ndim - 1];
    d.batch = q->count / (d.rows * d.cols);
    return d;
}

/* Row factors lack the last dimension, column factors the one before it. */
static void add_factored(tac__slot *slot, const tac_optimizer_config *c,
                         const tac_param *q, tac_dtype a)
{
    size_t shape[TAC_MAX_DIMS];

    slot->form = TAC__FORM_FACTOR;
    slot->shape = factor_shape(q);
    memcpy(shape, q->shape, sizeof shape);
    if (q->ndim >= 2) {
        add(slot, "exp_avg_sq_row", a, q->ndim - 1, shape);
        shape[q->ndim - 2] = shape[q->ndim - 1];
        add(slot, "exp_avg_sq_col", a, q->ndim - 1, shape);
    } else {
        add(slot, "exp_avg_sq", a, q->ndim, shape);
    }
    if (!isnan(c->beta1)) add(slot, "exp_avg", a, q->ndim, q->shape);
}

static void choose(tac__slot *slot, const tac_optimizer_config *c,
                   const tac_param *q, tac_dtype a)
{
    slot->n_parts = 0;
    slot->form = TAC__FORM_NONE;
    if ((q->flags & TAC_PARAM_FROZEN) != 0 || q->count == 0) return;
    if (c->kind == TAC_OPTIMIZER_ADAFACTOR)
        add_factored(slot, c, q, a);
    else if (c->kind == TAC_OPTIMIZER_ADAMW8BIT && !slot->wide &&
             q->count >= c->min_8bit_size)
        add_quantised(slot, q);
    else
        add_dense(slot, c, q, a);
}

/* "exp_avg u8 / 256, ...": an array of absmax belongs to the codes before. */
static void describe(tac__slot *slot)
{
    char *at = slot->text;
    size_t left = sizeof slot->text;

    snprintf(at, left, "none");
    for (int i = 0; i < slot->n_parts; ++i) {
        const tac__state_part *part = &slot->parts[i];
        if (strstr(part->name, "_absmax") != NULL) continue;
        const int used = snprintf(
            at, left, "%s%s %s%s", at == slot->text ? "" : ", ", part->name,
            tac_dtype_name(part->dtype), part->dtype == TAC_U8 ? " / 256" : "");
        if (used < 0 || (size_t)used >= left) return;
        at += used;
        left -= (size_t)used;
    }
}

/* The parameter at place k of the arenas; before layout, parameter k. */
static size_t at_place(const tac_params *params, size_t k)
{
    const size_t *order = tac_params_order(params);
    return order != NULL ? order[k] : k;
}

static size_t place_dense(const tac_params *params, tac__slot *slots, int m,
                          size_t end)
{
    const size_t size = tac_dtype_size(a_type(params));

    for (size_t k = 0; k < tac_params_count(params); ++k) {
        const size_t i = at_place(params, k);
        tac__slot *slot = &slots[i];
        if (slot->form != TAC__FORM_DENSE || m >= slot->n_parts) continue;
        slot->parts[m].offset = end;
        end = up(end + tac__optimizer_padded(params, i) * size, LINE);
    }
    return end;
}

static size_t place_others(const tac_params *params, tac__slot *slots,
                           size_t end)
{
    for (size_t k = 0; k < tac_params_count(params); ++k) {
        tac__slot *slot = &slots[at_place(params, k)];
        if (slot->form == TAC__FORM_DENSE) continue;
        for (int m = 0; m < slot->n_parts; ++m) {
            slot->parts[m].offset = end;
            end += up(slot->parts[m].bytes, LINE);
        }
    }
    return end;
}

static size_t scratch_of(const tac_params *params, const tac__slot *slot)
{
    const tac_context *ctx = tac_device_context(tac_params_device(params));

    if (slot->form != TAC__FORM_FACTOR) return 0;
    return tac_adafactor_work(&slot->shape, tac_context_threads(ctx));
}

void tac__optimizer_plan(const tac_params *params,
                         const tac_optimizer_config *c, tac__slot *slots,
                         tac__plan *plan)
{
    size_t end = 0;

    *plan = (tac__plan){0, 0, 0};
    for (size_t i = 0; i < tac_params_count(params); ++i) {
        choose(&slots[i], c, tac_params_get(params, i), a_type(params));
        describe(&slots[i]);
        const size_t scratch = scratch_of(params, &slots[i]);
        if (scratch > plan->scratch_bytes) plan->scratch_bytes = scratch;
        plan->trained += slots[i].form != TAC__FORM_NONE;
    }
    for (int m = 0; m < 2; ++m) end = place_dense(params, slots, m, end);
    plan->state_bytes = place_others(params, slots, end);
}
