/* api.c: descriptions of convolutions, in oneDNN's C API 2 (by value) or 3 (by
 * handle). */
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

/* Types of the activations, of the weights and of the bias. */
typedef struct types {
    dnnl_data_type_t x, y, w;
} types;

static types types_of(const tac__conv_spec *spec)
{
    const dnnl_data_type_t in = tac__api_type(spec->in);
    const dnnl_data_type_t out = tac__api_type(spec->out);
    if (spec->kind == TAC__CONV_FORWARD) return (types){in, out, in};
    if (spec->kind == TAC__CONV_BACKWARD_DATA) return (types){out, in, in};
    return (types){in, in, dnnl_f32};
}

typedef struct descs {
    dnnl_memory_desc_t x, w, b, y;
} descs;

#if DNNL_VERSION_MAJOR >= 3

static void free_descs(descs *m)
{
    if (m->x) dnnl_memory_desc_destroy(m->x);
    if (m->w) dnnl_memory_desc_destroy(m->w);
    if (m->b) dnnl_memory_desc_destroy(m->b);
    if (m->y) dnnl_memory_desc_destroy(m->y);
}

static dnnl_status_t make_descs(const shapes *s, const types *t,
                                tac__md weights, descs *m)
{
    *m = (descs){NULL, NULL, NULL, NULL};
    TRY(dnnl_memory_desc_create_with_tag(&m->x, 4, s->x, t->x, dnnl_nhwc));
    if (weights)
        TRY(dnnl_memory_desc_clone(&m->w, weights));
    else
        TRY(dnnl_memory_desc_create_with_tag(&m->w, 4, s->w, t->w,
                                             dnnl_format_tag_any));
    TRY(dnnl_memory_desc_create_with_tag(&m->b, 1, s->b, t->w, dnnl_x));
    return dnnl_memory_desc_create_with_tag(&m->y, 4, s->y, t->y, dnnl_nhwc);
}

static dnnl_status_t forward_desc(dnnl_engine_t engine, const shapes *s,
                                  const descs *m, int bias,
                                  dnnl_primitive_attr_t attr,
                                  dnnl_primitive_desc_t *out)
{
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, dnnl_convolution_direct, m->x, m->w,
        bias ? m->b : NULL, m->y, s->strides, s->dilates, s->pads, s->pads,
        attr);
}

static dnnl_status_t backward_desc(dnnl_engine_t engine,
                                   const tac__conv_spec *spec, const shapes *s,
                                   const descs *m, dnnl_primitive_attr_t attr,
                                   dnnl_primitive_desc_t forward,
                                   dnnl_primitive_desc_t *out)
{
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    if (spec->kind == TAC__CONV_BACKWARD_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, alg, m->x, m->w, m->y, s->strides, s->dilates, s->pads,
            s->pads, forward, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, alg, m->x, m->w, spec->bias ? m->b : NULL, m->y,
        s->strides, s->dilates, s->pads, s->pads, forward, attr);
}

static dnnl_status_t plain_desc(const tac__conv_spec *spec,
                                dnnl_memory_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    return dnnl_memory_desc_create_with_tag(out, 4, s.w, types_of(spec).w,
                                            dnnl_oihw);
}

#define REF(desc)        (desc)
#define FREE_PLAIN(desc) dnnl_memory_desc_destroy(desc)

#else

static void free_descs(descs *m)
{
    (void)m;
}

static dnnl_status_t make_descs(const shapes *s, const types *t,
                                tac__md weights, descs *m)
{
    TRY(dnnl_memory_desc_init_by_tag(&m->x, 4, s->x, t->x, dnnl_nhwc));
    if (weights)
        m->w = *weights;
    else
        TRY(dnnl_memory_desc_init_by_tag(&m->w, 4, s->w, t->w,
                                         dnnl_format_tag_any));
    TRY(dnnl_memory_desc_init_by_tag(&m->b, 1, s->b, t->w, dnnl_x));
    return dnnl_memory_desc_init_by_tag(&m->y, 4, s->y, t->y, dnnl_nhwc);
}

static dnnl_status_t forward_desc(dnnl_engine_t engine, const shapes *s,
                                  const descs *m, int bias,
                                  dnnl_primitive_attr_t attr,
                                  dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    TRY(dnnl_convolution_forward_desc_init(
        &desc, dnnl_forward_training, dnnl_convolution_direct, &m->x, &m->w,
        bias ? &m->b : NULL, &m->y, s->strides, s->pads, s->pads));
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

static dnnl_status_t backward_desc(dnnl_engine_t engine,
                                   const tac__conv_spec *spec, const shapes *s,
                                   const descs *m, dnnl_primitive_attr_t attr,
                                   dnnl_primitive_desc_t forward,
                                   dnnl_primitive_desc_t *out)
{
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    if (spec->kind == TAC__CONV_BACKWARD_DATA)
        TRY(dnnl_convolution_backward_data_desc_init(
            &desc, alg, &m->x, &m->w, &m->y, s->strides, s->pads, s->pads));
    else
        TRY(dnnl_convolution_backward_weights_desc_init(
            &desc, alg, &m->x, &m->w, spec->bias ? &m->b : NULL, &m->y,
            s->strides, s->pads, s->pads));
    return dnnl_primitive_desc_create(out, &desc, attr, engine, forward);
}

static dnnl_status_t plain_desc(const tac__conv_spec *spec,
                                dnnl_memory_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    return dnnl_memory_desc_init_by_tag(out, 4, s.w, types_of(spec).w,
                                        dnnl_oihw);
}

#define REF(desc)        (&(desc))
#define FREE_PLAIN(desc) ((void)(desc))

#endif

/* The forward convolution that a backward one asks for as a hint: all its
 * arrays have the type that is read. */
static dnnl_status_t hint_desc(dnnl_engine_t engine, const tac__conv_spec *spec,
                               const shapes *s, dnnl_primitive_desc_t *out)
{
    const dnnl_data_type_t in = tac__api_type(spec->in);
    const types t = {in, in, in};
    descs m;
    dnnl_status_t status = make_descs(s, &t, NULL, &m);
    if (status == dnnl_success)
        status = forward_desc(engine, s, &m, spec->bias, NULL, out);
    free_descs(&m);
    return status;
}

static dnnl_status_t describe(dnnl_engine_t engine, const tac__conv_spec *spec,
                              const shapes *s, const descs *m,
                              dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t hint = NULL;
    if (spec->kind == TAC__CONV_FORWARD)
        return forward_desc(engine, s, m, spec->bias, attr, out);
    TRY(hint_desc(engine, spec, s, &hint));
    const dnnl_status_t status =
        backward_desc(engine, spec, s, m, attr, hint, out);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

dnnl_status_t tac__api_conv(dnnl_engine_t engine, const tac__conv_spec *spec,
                            tac__md weights, dnnl_primitive_desc_t *out)
{
    const shapes s = shapes_of(&spec->d);
    const types t = types_of(spec);
    dnnl_primitive_attr_t attr;
    descs m;
    TRY(tac__api_attr(0, spec->relu && spec->kind == TAC__CONV_FORWARD, &attr));
    dnnl_status_t status = make_descs(&s, &t, weights, &m);
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
