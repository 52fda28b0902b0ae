/* state.c: helpers for the visit functions of objects with state. */
#include "tacit/state.h"

#include <stdlib.h>
#include <string.h>

size_t tac_state_item_count(const tac_state_item *item)
{
    size_t n = 1;
    for (int i = 0; i < item->ndim; ++i) n *= item->shape[i];
    return n;
}

/* A visit function's mistakes: found in debug builds, refused in all. */
static int item_is_valid(const tac_state_item *item)
{
    const size_t size = tac_dtype_size(item->dtype);
    size_t most = size > 0 ? SIZE_MAX / size : 0;
    if (size == 0) return 0;
    for (int i = 0; i < item->ndim; ++i) {
        if (item->shape[i] == 0) return 1;
        if (item->shape[i] > most) return 0;
        most /= item->shape[i];
    }
    return 1;
}

/* prefix + name, malloc'd; NULL: out of memory. */
static char *join_names(const char *prefix, const char *name)
{
    const size_t a = prefix ? strlen(prefix) : 0, b = strlen(name);
    char *text = malloc(a + b + 1);
    if (!text) return NULL;
    if (a > 0) memcpy(text, prefix, a);
    memcpy(text + a, name, b + 1);
    return text;
}

tac_status tac_state_visit(const tac_state_visitor *v, const char *name,
                           tac_dtype dtype, int ndim, const size_t *shape,
                           void *data)
{
    tac_state_item item = {.dtype = dtype, .ndim = ndim, .data = data};
    const int fits = ndim >= 0 && ndim <= TAC_STATE_MAX_DIMS;
    TAC_ASSERT(fits && name);
    if (!fits || !name) return TAC_ERR_ARG;
    for (int i = 0; i < ndim; ++i) item.shape[i] = shape[i];
    const int valid = item_is_valid(&item);
    TAC_ASSERT(valid);
    if (!valid) return TAC_ERR_ARG;

    char *full = join_names(v->prefix, name);
    if (!full) return TAC_ERR_NOMEM;
    item.name = full;
    const tac_status s = v->visit(v->arg, &item);
    free(full);
    return s;
}

tac_status tac_state_visit_u64(const tac_state_visitor *v, const char *name,
                               uint64_t *value)
{
    return tac_state_visit(v, name, TAC_I64, 0, NULL, value);
}

tac_status tac_state_visit_f64(const tac_state_visitor *v, const char *name,
                               double *value)
{
    return tac_state_visit(v, name, TAC_F64, 0, NULL, value);
}

tac_status tac_state_walk(const tac_state_visitor *v, const char *prefix,
                          tac_state_walk_fn *walk, void *object)
{
    char *full = join_names(v->prefix, prefix);
    if (!full) return TAC_ERR_NOMEM;
    const tac_state_visitor inner = {v->visit, v->arg, full};
    const tac_status s = walk(object, &inner);
    free(full);
    return s;
}
