/* reducer_params.c: the reducer's own copy of the list and the configuration.
 *
 * Checks everything about them that one rank can check alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"
#include "reducer_impl.h"

/* ---- parameters -----------------------------------------------------------
 */

static tac_status bad_param(tac_reducer *r, size_t i, const char *name,
                            const char *what)
{
    return tac_fail(r->ctx, TAC_ERR_ARG, "reducer: parameter %zu ('%s') %s", i,
                    name ? name : "", what);
}

/* "f32[128,784]"; cut short if there are many extents. */
static void write_shape(const tac_param_desc *d, char *text, size_t bytes)
{
    const size_t *shape = d->ndim ? d->shape : &d->count;
    const int ndim = d->ndim ? d->ndim : 1;
    size_t at = (size_t)snprintf(text, bytes, "%s[", tac_dtype_name(d->dtype));
    for (int k = 0; k < ndim && at + 24 < bytes; ++k)
        at += (size_t)snprintf(text + at, bytes - at, k ? ",%zu" : "%zu",
                               shape[k]);
    snprintf(text + at, bytes - at, "]");
}

static uint64_t hash_param(const tac_param_desc *d, const char *name)
{
    const size_t *shape = d->ndim ? d->shape : &d->count;
    const int ndim = d->ndim ? d->ndim : 1;
    uint64_t h = tac_hash_str(TAC_HASH_INIT, name);
    h = tac_hash_u64(h, (uint64_t)d->dtype);
    h = tac_hash_u64(h, (uint64_t)ndim);
    for (int k = 0; k < ndim; ++k) h = tac_hash_u64(h, shape[k]);
    return h;
}

static int shape_fits(const tac_param_desc *d)
{
    size_t product = 1;
    if (!d->ndim) return 1;
    if (d->ndim < 0 || !d->shape) return 0;
    for (int k = 0; k < d->ndim; ++k) {
        const size_t e = d->shape[k];
        if (e && product > SIZE_MAX / e) return 0;
        product *= e;
    }
    return product == d->count;
}

static tac_status check_param(tac_reducer *r, size_t i, const tac_param_desc *d)
{
    const size_t element = tac_dtype_size(d->dtype);
    if (!element) return bad_param(r, i, d->name, "has no known dtype");
    if (d->count > SIZE_MAX / 2 / element)
        return bad_param(r, i, d->name, "is larger than memory");
    if (!shape_fits(d))
        return bad_param(r, i, d->name,
                         "has a shape whose product is not its count");
    if (d->count && (d->grad == NULL) != r->own_memory)
        return bad_param(r, i, d->name,
                         "differs from those before it in having a gradient "
                         "pointer; give one for all parameters or for none");
    if (d->grad && (uintptr_t)d->grad % element)
        return bad_param(r, i, d->name,
                         "has a gradient that is not aligned to its elements");
    return TAC_OK;
}

static tac_status copy_param(tac_reducer *r, size_t i, const tac_param_desc *d)
{
    char numbered[32];
    tac__param *p = &r->params[i];
    const char *name = d->name;
    if (!name) {
        snprintf(numbered, sizeof numbered, "#%zu", i);
        name = numbered;
    }
    TAC_TRY(check_param(r, i, d));
    p->name = strdup(name);
    if (!p->name) return TAC_ERR_NOMEM;
    p->count = d->count;
    p->bytes = d->count * tac_dtype_size(d->dtype);
    p->dtype = d->dtype;
    p->grad = d->grad;
    p->ndim = d->ndim;
    if (d->ndim) {
        p->extents = malloc((size_t)d->ndim * sizeof *p->extents);
        if (!p->extents) return TAC_ERR_NOMEM;
        memcpy(p->extents, d->shape, (size_t)d->ndim * sizeof *p->extents);
    }
    p->hash = hash_param(d, name);
    write_shape(d, p->shape, sizeof p->shape);
    return TAC_OK;
}

/* Gradients are the reducer's if no parameter with elements brings its own. */
static int wants_own_memory(const tac_param_desc *params, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (params[i].count) return params[i].grad == NULL;
    return 1;
}

tac_status tac__reducer_copy_params(tac_reducer *r,
                                    const tac_param_desc *params, size_t n)
{
    if (!params && n)
        return tac_fail(r->ctx, TAC_ERR_ARG, "reducer: %zu parameters at NULL",
                        n);
    if (n > SIZE_MAX / 1024)
        return tac_fail(r->ctx, TAC_ERR_ARG, "reducer: %zu parameters", n);
    r->params = calloc(n + 1, sizeof *r->params);
    if (!r->params) return TAC_ERR_NOMEM;
    r->n = n;
    r->own_memory = wants_own_memory(params, n);
    for (size_t i = 0; i < n; ++i) TAC_TRY(copy_param(r, i, &params[i]));
    return TAC_OK;
}

/* ---- configuration --------------------------------------------------------
 */

tac_status tac__reducer_copy_config(tac_reducer *r,
                                    const tac_reducer_config *config)
{
    tac_reducer_config c = TAC_REDUCER_CONFIG_INIT;
    if (config && config->struct_size != sizeof c)
        return tac_fail(r->ctx, TAC_ERR_ARG,
                        "reducer: config.struct_size is %zu, not %zu; start "
                        "from TAC_REDUCER_CONFIG_INIT",
                        config->struct_size, sizeof c);
    if (config) c = *config;
    const size_t two[2] = {c.first_bucket_bytes ? c.first_bucket_bytes
                                                : TAC_FIRST_BUCKET_BYTES,
                           c.bucket_bytes ? c.bucket_bytes : TAC_BUCKET_BYTES};
    const size_t *limits = c.limits && c.n_limits ? c.limits : two;
    if (limits == two) c.n_limits = 2;
    r->limits = calloc(c.n_limits, sizeof *r->limits);
    if (!r->limits) return TAC_ERR_NOMEM;
    memcpy(r->limits, limits, c.n_limits * sizeof *limits);
    c.limits = r->limits;
    if (c.find_unused || !r->own_memory) c.no_rebuild = 1;
    r->config = c;
    return TAC_OK;
}
