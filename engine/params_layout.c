/* Laying the parameters out: two arenas of one layout in elements, each tensor
 * at a multiple of 64 bytes in both, the rest zero. Gradients are at least as
 * wide as values, so values decide the padding. */
#include <stdint.h>
#include <stdlib.h>

#include "params_impl.h"

enum { ALIGN_BYTES = 64 };

static size_t padded_count(const tac_params *p, size_t count)
{
    const size_t unit = ALIGN_BYTES / tac_dtype_size(p->dtype);
    return (count + unit - 1) / unit * unit;
}

/* A permutation has every index once: `seen` is place + 1, 0 for not yet. */
static tac_status check_order(const tac_params *p, const size_t *order,
                              size_t *seen)
{
    for (size_t k = 0; k < p->count; ++k) {
        if (order[k] >= p->count || seen[order[k]] != 0)
            return tac_fail(p->ctx, TAC_ERR_ARG,
                            "parameter layout: order[%zu] = %zu is %s "
                            "(%zu parameters)",
                            k, order[k],
                            order[k] >= p->count ? "out of range" : "repeated",
                            p->count);
        seen[order[k]] = k + 1;
    }
    return TAC_OK;
}

static tac_status copy_order(const tac_params *p, const size_t *order,
                             size_t **out)
{
    size_t *copy = calloc(p->count + 1, sizeof *copy);
    size_t *seen = calloc(p->count + 1, sizeof *seen);
    tac_status s = TAC_OK;

    if (copy == NULL || seen == NULL) {
        s = tac_fail(p->ctx, TAC_ERR_NOMEM, "parameter layout: no memory");
        goto out;
    }
    if (order != NULL) s = check_order(p, order, seen);
    if (s < 0) goto out;
    for (size_t k = 0; k < p->count; ++k)
        copy[k] = order != NULL ? order[k] : k;
    *out = copy;
    copy = NULL;
out:
    free(seen);
    free(copy);
    return s;
}

static tac_status make_arena(const tac_params *p, const tac_allocator *alloc,
                             size_t bytes, void **out)
{
    const tac_device_ops *ops = tac_device_ops_of(p->dev);
    void *impl = tac_device_impl(p->dev);
    void *mem = NULL;

    TAC_TRY(alloc->alloc(alloc->arg, bytes, &mem));
    const tac_status s = ops->fill(impl, mem, 0, bytes, NULL);
    if (s < 0) {
        alloc->free(alloc->arg, mem);
        return s;
    }
    *out = mem;
    return TAC_OK;
}

static size_t set_offsets(tac_params *p, const size_t *order)
{
    size_t at = 0;

    for (size_t k = 0; k < p->count; ++k) {
        p->list[order[k]].offset = at;
        at += padded_count(p, p->list[order[k]].count);
    }
    return at;
}

tac_status tac_params_layout(tac_params *p, const size_t *order,
                             const tac_allocator *values,
                             const tac_allocator *grads)
{
    const tac_allocator own = tac_device_allocator(p->dev);
    size_t *copy = NULL;
    void *value_mem = NULL, *grad_mem = NULL;
    tac_status s;

    if (p->laid_out)
        return tac_fail(p->ctx, TAC_ERR_STATE,
                        "parameter layout: it was made before");
    if (p->count > 0 && p->elements > SIZE_MAX / 64 - p->count * ALIGN_BYTES)
        return tac_fail(p->ctx, TAC_ERR_NOMEM,
                        "parameter layout: %zu elements are too many",
                        p->elements);
    p->value_alloc = values != NULL ? *values : own;
    p->grad_alloc = grads != NULL ? *grads : own;
    TAC_TRY(copy_order(p, order, &copy));
    const size_t padded = set_offsets(p, copy);
    s = make_arena(p, &p->value_alloc, padded * tac_dtype_size(p->dtype),
                   &value_mem);
    if (s < 0) goto fail_values;
    s = make_arena(p, &p->grad_alloc, padded * tac_dtype_size(p->grad_dtype),
                   &grad_mem);
    if (s < 0) goto fail_grads;
    p->values = value_mem;
    p->grads = grad_mem;
    p->order = copy;
    p->padded = padded;
    p->laid_out = 1;
    return TAC_OK;

fail_grads:
    p->value_alloc.free(p->value_alloc.arg, value_mem);
fail_values:
    free(copy);
    return s;
}
