/* The registry of parameters: names, shapes, hash, walk. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "params_impl.h"
#include "tacit/hash.h"

tac_status tac_params_create(tac_device *dev, tac_dtype dtype, tac_params **out)
{
    tac_context *ctx = tac_device_context(dev);

    if (!tac_dtype_is_float(dtype))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "parameters: dtype %s: f32, f64, f16 and bf16 are "
                        "possible",
                        tac_dtype_name(dtype));
    tac_params *p = calloc(1, sizeof *p);
    if (p == NULL) return tac_fail(ctx, TAC_ERR_NOMEM, "parameters: no memory");
    p->dev = dev;
    p->ctx = ctx;
    p->dtype = dtype;
    p->grad_dtype = dtype == TAC_F64 ? TAC_F64 : TAC_F32;
    *out = p;
    return TAC_OK;
}

static void free_name(const char *name)
{
    free((void *)(uintptr_t)name);
}

void tac_params_destroy(tac_params *p)
{
    if (p == NULL) return;
    if (p->values != NULL) p->value_alloc.free(p->value_alloc.arg, p->values);
    if (p->grads != NULL) p->grad_alloc.free(p->grad_alloc.arg, p->grads);
    for (size_t i = 0; i < p->count; ++i) free_name(p->list[i].name);
    free(p->order);
    free(p->list);
    free(p);
}

static tac_status grow(tac_params *p)
{
    const size_t capacity = p->capacity == 0 ? 32 : 2 * p->capacity;
    tac_param *list;

    if (p->count < p->capacity) return TAC_OK;
    list = realloc(p->list, capacity * sizeof *list);
    if (list == NULL)
        return tac_fail(p->ctx, TAC_ERR_NOMEM,
                        "parameters: no memory for %zu entries", capacity);
    p->list = list;
    p->capacity = capacity;
    return TAC_OK;
}

static tac_status check_new(const tac_params *p, const char *name, int ndim,
                            const size_t *shape, size_t *count)
{
    if (name == NULL || *name == '\0')
        return tac_fail(p->ctx, TAC_ERR_ARG, "parameter %zu: it needs a name",
                        p->count);
    if (p->laid_out)
        return tac_fail(p->ctx, TAC_ERR_STATE,
                        "parameter %s: added after tac_params_layout", name);
    if (ndim < 0 || ndim > TAC_MAX_DIMS)
        return tac_fail(p->ctx, TAC_ERR_ARG,
                        "parameter %s: %d dimensions; 0 to %d are possible",
                        name, ndim, TAC_MAX_DIMS);
    if (!tac_shape_count(ndim, shape, count) ||
        *count > SIZE_MAX / 64 - p->elements)
        return tac_fail(p->ctx, TAC_ERR_ARG, "parameter %s: its size overflows",
                        name);
    if (tac_params_find(p, name) != SIZE_MAX)
        return tac_fail(p->ctx, TAC_ERR_ARG,
                        "parameter %s: registered twice; to tie weights, use "
                        "one index twice",
                        name);
    return TAC_OK;
}

tac_status tac_params_add(tac_params *p, const char *name, int ndim,
                          const size_t *shape, tac_init init, unsigned flags,
                          size_t *index)
{
    size_t count = 0;

    TAC_TRY(check_new(p, name, ndim, shape, &count));
    TAC_TRY(grow(p));
    tac_param *q = &p->list[p->count];
    memset(q, 0, sizeof *q);
    q->name = strdup(name);
    if (q->name == NULL)
        return tac_fail(p->ctx, TAC_ERR_NOMEM, "parameter %s: no memory", name);
    q->ndim = ndim;
    for (int i = 0; i < ndim; ++i) q->shape[i] = shape[i];
    q->count = count;
    q->init = init;
    q->flags = flags;
    if (index != NULL) *index = p->count;
    p->count += 1;
    p->elements += count;
    return TAC_OK;
}

size_t tac_params_count(const tac_params *p)
{
    return p->count;
}

tac_dtype tac_params_dtype(const tac_params *p)
{
    return p->dtype;
}

tac_dtype tac_params_grad_dtype(const tac_params *p)
{
    return p->grad_dtype;
}

/* Bisection over places. Parameters without elements lie where the next one
 * does: the last place that begins at `at` or before is the one with room. */
size_t tac_params_at(const tac_params *p, size_t at)
{
    size_t low = 0, high = p->count;

    if (!p->laid_out || at >= p->padded) return SIZE_MAX;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (p->list[p->order[middle]].offset <= at)
            low = middle;
        else
            high = middle;
    }
    const tac_param *q = &p->list[p->order[low]];
    return at - q->offset < q->count ? p->order[low] : SIZE_MAX;
}

tac_device *tac_params_device(const tac_params *p)
{
    return p->dev;
}

size_t tac_params_elements(const tac_params *p)
{
    return p->elements;
}

size_t tac_params_padded(const tac_params *p)
{
    return p->padded;
}

const tac_param *tac_params_get(const tac_params *p, size_t index)
{
    return index < p->count ? &p->list[index] : NULL;
}

size_t tac_params_find(const tac_params *p, const char *name)
{
    for (size_t i = 0; i < p->count; ++i)
        if (strcmp(p->list[i].name, name) == 0) return i;
    return SIZE_MAX;
}

const size_t *tac_params_order(const tac_params *p)
{
    return p->order;
}

void *tac_params_values(const tac_params *p)
{
    return p->values;
}

void *tac_params_grads(const tac_params *p)
{
    return p->grads;
}

static void *part(const tac_params *p, void *arena, tac_dtype dtype,
                  size_t index)
{
    if (arena == NULL || index >= p->count) return NULL;
    return (unsigned char *)arena +
           p->list[index].offset * tac_dtype_size(dtype);
}

void *tac_params_value(const tac_params *p, size_t index)
{
    return part(p, p->values, p->dtype, index);
}

void *tac_params_grad(const tac_params *p, size_t index)
{
    return part(p, p->grads, p->grad_dtype, index);
}

uint64_t tac_params_hash(const tac_params *p)
{
    uint64_t h = tac_hash_u64(TAC_HASH_INIT, (uint64_t)p->dtype);

    for (size_t i = 0; i < p->count; ++i) {
        const tac_param *q = &p->list[i];
        h = tac_hash_str(h, q->name);
        h = tac_hash_u64(h, (uint64_t)q->ndim);
        for (int d = 0; d < q->ndim; ++d) h = tac_hash_u64(h, q->shape[d]);
    }
    return h;
}

/* Names are composed here because a registry's names have no "model.". */
tac_status tac_params_walk(void *params, const tac_state_visitor *v)
{
    const tac_params *p = params;
    char name[512];

    for (size_t i = 0; i < p->count; ++i) {
        const tac_param *q = &p->list[i];
        snprintf(name, sizeof name, "model.%s", q->name);
        TAC_TRY(tac_state_visit(v, name, p->dtype, q->ndim, q->shape,
                                tac_params_value(p, i)));
    }
    return TAC_OK;
}
