/* api_matmul.c: descriptions of matrix products, and what all descriptions
 * share, in oneDNN's C API 2 (by value) or 3 (by handle). */
#include <string.h>

#include "cpu/onednn/api.h"

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

dnnl_data_type_t tac__api_type(tac_dtype t)
{
    return t == TAC_BF16 ? dnnl_bf16 : dnnl_f32;
}

int tac__api_is(const_dnnl_primitive_desc_t pd, const char *name)
{
    const char *is = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&is);
    return is && strncmp(is, name, strlen(name)) == 0;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1);
#endif
}

static dnnl_status_t append_relu(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
#else
    return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
#endif
}

static dnnl_status_t set_post_ops(dnnl_primitive_attr_t attr, int accumulate,
                                  int relu)
{
    dnnl_post_ops_t ops = NULL;
    if (!accumulate && !relu) return dnnl_success;
    dnnl_status_t s = dnnl_post_ops_create(&ops);
    if (s == dnnl_success && accumulate) s = append_sum(ops);
    if (s == dnnl_success && relu) s = append_relu(ops);
    if (s == dnnl_success) s = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return s;
}

dnnl_status_t tac__api_attr(int accumulate, int relu,
                            dnnl_primitive_attr_t *out)
{
    dnnl_primitive_attr_t attr;
    TRY(dnnl_primitive_attr_create(&attr));
    dnnl_status_t s = dnnl_primitive_attr_set_scratchpad_mode(
        attr, dnnl_scratchpad_mode_user);
    if (s == dnnl_success)
        s = dnnl_primitive_attr_set_fpmath_mode(attr, dnnl_fpmath_mode_strict);
    if (s == dnnl_success) s = set_post_ops(attr, accumulate, relu);
    if (s == dnnl_success)
        *out = attr;
    else
        dnnl_primitive_attr_destroy(attr);
    return s;
}

typedef struct descs {
    dnnl_memory_desc_t a, b, bias, c;
} descs;

/* A matrix of which neighbours in a row are `across` apart, rows `down`. */
static dnnl_status_t make_matrix(size_t rows, size_t columns, size_t down,
                                 size_t across, tac_dtype type,
                                 dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    const dnnl_dims_t strides = {(dnnl_dim_t)down, (dnnl_dim_t)across};
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_strides(out, 2, dims,
                                                tac__api_type(type), strides);
#else
    return dnnl_memory_desc_init_by_strides(out, 2, dims, tac__api_type(type),
                                            strides);
#endif
}

static dnnl_status_t make_descs(const tac__matmul_spec *s, descs *d)
{
    TRY(make_matrix(s->m, s->k, s->ta ? 1 : s->lda, s->ta ? s->lda : 1, s->in,
                    &d->a));
    TRY(make_matrix(s->k, s->n, s->tb ? 1 : s->ldb, s->tb ? s->ldb : 1, s->in,
                    &d->b));
    TRY(make_matrix(1, s->n, s->n, 1, s->in, &d->bias));
    return make_matrix(s->m, s->n, s->ldc, 1, s->out, &d->c);
}

#if DNNL_VERSION_MAJOR >= 3

static void free_descs(const descs *d)
{
    if (d->a) dnnl_memory_desc_destroy(d->a);
    if (d->b) dnnl_memory_desc_destroy(d->b);
    if (d->bias) dnnl_memory_desc_destroy(d->bias);
    if (d->c) dnnl_memory_desc_destroy(d->c);
}

static dnnl_status_t describe(dnnl_engine_t engine, const descs *d, int bias,
                              dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out)
{
    return dnnl_matmul_primitive_desc_create(out, engine, d->a, d->b,
                                             bias ? d->bias : NULL, d->c, attr);
}

#else

static void free_descs(const descs *d)
{
    (void)d;
}

static dnnl_status_t describe(dnnl_engine_t engine, const descs *d, int bias,
                              dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t desc;
    TRY(dnnl_matmul_desc_init(&desc, &d->a, &d->b, bias ? &d->bias : NULL,
                              &d->c));
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

#endif

dnnl_status_t tac__api_matmul(dnnl_engine_t engine,
                              const tac__matmul_spec *spec,
                              dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    descs d;
    memset(&d, 0, sizeof d);
    TRY(tac__api_attr(spec->accumulate, spec->relu, &attr));
    dnnl_status_t s = make_descs(spec, &d);
    if (s == dnnl_success) s = describe(engine, &d, spec->bias, attr, out);
    free_descs(&d);
    dnnl_primitive_attr_destroy(attr);
    return s;
}
