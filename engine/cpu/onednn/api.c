/* api.c: oneDNN descriptions, in its C API 2 (by value) or 3 (by handle). */
#include "cpu/onednn/api.h"

#include <string.h>

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

typedef struct shapes {
    dnnl_dims_t x, w, b, y, strides, pads, dilates;
} shapes;

static shapes shapes_of(const tac_conv2d *d)
{
    const dnnl_dim_t n = (dnnl_dim_t)d->n;
    const dnnl_dim_t ic = (dnnl_dim_t)d->ic, oc = (dnnl_dim_t)d->oc;
    const dnnl_dim_t stride = (dnnl_dim_t)d->stride, pad = (dnnl_dim_t)d->pad;
    return (shapes){
        .x = {n, ic, (dnnl_dim_t)d->h, (dnnl_dim_t)d->w},
        .w = {oc, ic, (dnnl_dim_t)d->kh, (dnnl_dim_t)d->kw},
        .b = {oc},
        .y = {n, oc, (dnnl_dim_t)d->oh, (dnnl_dim_t)d->ow},
        .strides = {stride, stride},
        .pads = {pad, pad},
    };
}

static dnnl_status_t make_attr(const tac__conv_spec *spec,
                               dnnl_primitive_attr_t *out)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s;
    TRY(dnnl_primitive_attr_create(&attr));
    s = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                dnnl_scratchpad_mode_user);
    if (s == dnnl_success)
        s = dnnl_primitive_attr_set_fpmath_mode(attr, dnnl_fpmath_mode_strict);
    if (s == dnnl_success && spec->relu && spec->kind == TAC__CONV_FORWARD) {
        s = dnnl_post_ops_create(&ops);
#if DNNL_VERSION_MAJOR >= 3
        if (s == dnnl_success)
            s = dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
#else
        if (s == dnnl_success)
            s = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
#endif
        if (s == dnnl_success) s = dnnl_primitive_attr_set_post_ops(attr, ops);
        if (ops) dnnl_post_ops_destroy(ops);
    }
    if (s == dnnl_success)
        *out = attr;
    else
        dnnl_primitive_attr_destroy(attr);
    return s;
}

#if DNNL_VERSION_MAJOR >= 3

typedef struct descs {
    dnnl_memory_desc_t x, w, b, y;
} descs;

static void free_descs(descs *m)
{
    if (m->x) dnnl_memory_desc_destroy(m->x);
    if (m->w) dnnl_memory_desc_destroy(m->w);
    if (m->b) dnnl_memory_desc_destroy(m->b);
    if (m->y) dnnl_memory_desc_destroy(m->y);
}

static dnnl_status_t make_descs(const shapes *s, tac__md weights, descs *m)
{
    *m = (descs){NULL, NULL, NULL, NULL};
    TRY(dnnl_memory_desc_create_with_tag(&m->x, 4, s->x, dnnl_f32, dnnl_nhwc));
    if (weights)
        TRY(dnnl_memory_desc_clone(&m->w, weights));
    else
        TRY(dnnl_memory_desc_create_with_tag(&m->w, 4, s->w, dnnl_f32,
                                             dnnl_format_tag_any));
    TRY(dnnl_memory_desc_create_with_tag(&m->b, 1, s->b, dnnl_f32, dnnl_x));
    return dnnl_memory_desc_create_with_tag(&m->y, 4, s->y, dnnl_f32,
                                            dnnl_nhwc);
}

static dnnl_status_t describe(dnnl_engine_t engine, const tac__conv_spec *spec,
                              const shapes *s, const descs *m,
                              dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t bias = spec->bias ? m->b : NULL;
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    dnnl_primitive_desc_t forward;
    dnnl_status_t status;
    TRY(dnnl_convolution_forward_primitive_desc_create(
        &forward, engine, dnnl_forward_training, alg, m->x, m->w, bias, m->y,
        s->strides, s->dilates, s->pads, s->pads, attr));
    if (spec->kind == TAC__CONV_FORWARD) {
        *out = forward;
        return dnnl_success;
    }
    if (spec->kind == TAC__CONV_BACKWARD_DATA)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, alg, m->x, m->w, m->y, s->strides, s->dilates, s->pads,
            s->pads, forward, attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, alg, m->x, m->w, bias, m->y, s->strides, s->dilates,
            s->pads, s->pads, forward, attr);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static dnnl_status_t plain_desc(const tac__conv_spec *spec,
                                dnnl_memory_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    return dnnl_memory_desc_create_with_tag(out, 4, s.w, dnnl_f32, dnnl_oihw);
}

#define REF(desc)        (desc)
#define FREE_PLAIN(desc) dnnl_memory_desc_destroy(desc)

#else

typedef struct descs {
    dnnl_memory_desc_t x, w, b, y;
} descs;

static void free_descs(descs *m)
{
    (void)m;
}

static dnnl_status_t make_descs(const shapes *s, tac__md weights, descs *m)
{
    TRY(dnnl_memory_desc_init_by_tag(&m->x, 4, s->x, dnnl_f32, dnnl_nhwc));
    if (weights)
        m->w = *weights;
    else
        TRY(dnnl_memory_desc_init_by_tag(&m->w, 4, s->w, dnnl_f32,
                                         dnnl_format_tag_any));
    TRY(dnnl_memory_desc_init_by_tag(&m->b, 1, s->b, dnnl_f32, dnnl_x));
    return dnnl_memory_desc_init_by_tag(&m->y, 4, s->y, dnnl_f32, dnnl_nhwc);
}

static dnnl_status_t describe(dnnl_engine_t engine, const tac__conv_spec *spec,
                              const shapes *s, const descs *m,
                              dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *bias = spec->bias ? &m->b : NULL;
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t forward;
    dnnl_status_t status;
    TRY(dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, alg,
                                           &m->x, &m->w, bias, &m->y,
                                           s->strides, s->pads, s->pads));
    TRY(dnnl_primitive_desc_create(&forward, &desc, attr, engine, NULL));
    if (spec->kind == TAC__CONV_FORWARD) {
        *out = forward;
        return dnnl_success;
    }
    if (spec->kind == TAC__CONV_BACKWARD_DATA)
        status = dnnl_convolution_backward_data_desc_init(
            &desc, alg, &m->x, &m->w, &m->y, s->strides, s->pads, s->pads);
    else
        status = dnnl_convolution_backward_weights_desc_init(
            &desc, alg, &m->x, &m->w, bias, &m->y, s->strides, s->pads,
            s->pads);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(out, &desc, attr, engine, forward);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static dnnl_status_t plain_desc(const tac__conv_spec *spec,
                                dnnl_memory_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    return dnnl_memory_desc_init_by_tag(out, 4, s.w, dnnl_f32, dnnl_oihw);
}

#define REF(desc)        (&(desc))
#define FREE_PLAIN(desc) ((void)(desc))

#endif

dnnl_status_t tac__api_conv(dnnl_engine_t engine, const tac__conv_spec *spec,
                            tac__md weights, dnnl_primitive_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    dnnl_primitive_attr_t attr;
    descs m;
    TRY(make_attr(spec, &attr));
    dnnl_status_t status = make_descs(&s, weights, &m);
    if (status == dnnl_success)
        status = describe(engine, spec, &s, &m, attr, out);
    free_descs(&m);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

dnnl_status_t tac__api_reorder(dnnl_engine_t engine, const tac__conv_spec *spec,
                               tac__md md, int back, dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t plain;
    dnnl_primitive_attr_t attr;
    TRY(plain_desc(spec, &plain));
    dnnl_status_t s = dnnl_primitive_attr_create(&attr);
    if (s == dnnl_success) {
        s = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                    dnnl_scratchpad_mode_user);
        *out = NULL;
        if (s == dnnl_success && !dnnl_memory_desc_equal(REF(plain), md))
            s = back ? dnnl_reorder_primitive_desc_create(
                           out, md, engine, REF(plain), engine, attr)
                     : dnnl_reorder_primitive_desc_create(
                           out, REF(plain), engine, md, engine, attr);
        dnnl_primitive_attr_destroy(attr);
    }
    FREE_PLAIN(plain);
    return s;
}

dnnl_status_t tac__api_plain_weights(dnnl_engine_t engine,
                                     const tac__conv_spec *spec,
                                     dnnl_memory_t *out)
{
    dnnl_memory_desc_t plain;
    TRY(plain_desc(spec, &plain));
    const dnnl_status_t s =
        dnnl_memory_create(out, REF(plain), engine, DNNL_MEMORY_NONE);
    FREE_PLAIN(plain);
    return s;
}
