/* conv_chunk.c: the oneDNN objects of one chunk, and its workspace's layout. */
#include "cpu/onednn/conv.h"

enum { ALIGNMENT = 64 };

#define TRY(expr)                                            \
    do {                                                     \
        const dnnl_status_t try_status_ = (expr);            \
        if (try_status_ != dnnl_success) return try_status_; \
    } while (0)

static tac__md query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int i)
{
    return dnnl_primitive_desc_query_md(pd, what, i);
}

/* Appends a piece of `bytes` to the workspace whose end is *end. */
static void add_bytes(size_t bytes, size_t *end, tac__piece *piece)
{
    piece->offset = *end;
    piece->bytes = bytes;
    *end += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static dnnl_status_t add_memory(dnnl_engine_t engine, tac__md md, size_t *end,
                                tac__piece *piece)
{
    add_bytes(dnnl_memory_desc_get_size(md), end, piece);
    if (piece->bytes == 0) return dnnl_success;
    return dnnl_memory_create(&piece->memory, md, engine, DNNL_MEMORY_NONE);
}

static dnnl_query_t weights_query(tac__conv_kind kind)
{
    return kind == TAC__CONV_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md
                                              : dnnl_query_weights_md;
}

static dnnl_status_t make_activations(dnnl_engine_t engine,
                                      const tac__conv_spec *spec,
                                      const_dnnl_primitive_desc_t pd,
                                      tac__conv_chunk *c)
{
    const dnnl_query_t xs = spec->kind == TAC__CONV_BACKWARD_DATA
                                ? dnnl_query_diff_src_md
                                : dnnl_query_src_md;
    const dnnl_query_t ys = spec->kind == TAC__CONV_FORWARD
                                ? dnnl_query_dst_md
                                : dnnl_query_diff_dst_md;
    TRY(dnnl_memory_create(&c->x, query(pd, xs, 0), engine, DNNL_MEMORY_NONE));
    TRY(dnnl_memory_create(&c->y, query(pd, ys, 0), engine, DNNL_MEMORY_NONE));
    if (!spec->bias) return dnnl_success;
    return dnnl_memory_create(&c->bias, query(pd, weights_query(spec->kind), 1),
                              engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t make_reorder(dnnl_engine_t engine,
                                  const tac__conv_spec *spec, tac__md md,
                                  size_t *end, tac__conv_chunk *c)
{
    dnnl_primitive_desc_t pd = NULL;
    TRY(tac__api_reorder(engine, spec, md,
                         spec->kind == TAC__CONV_BACKWARD_WEIGHTS, &pd));
    if (!pd) return dnnl_success;
    dnnl_status_t s = dnnl_primitive_create(&c->reorder, pd);
    if (s == dnnl_success)
        s = add_memory(engine, query(pd, dnnl_query_scratchpad_md, 0), end,
                       &c->reorder_scratch);
    dnnl_primitive_desc_destroy(pd);
    return s;
}

/* What has the same size in all chunks comes first. */
static dnnl_status_t make_weights(dnnl_engine_t engine,
                                  const tac__conv_spec *spec, tac__md md,
                                  size_t *end, tac__conv_chunk *c)
{
    const tac_conv2d *d = &spec->d;
    const size_t floats = d->oc * d->ic * d->kh * d->kw + 2 * d->oc;
    TRY(add_memory(engine, md, end, &c->weights));
    if (spec->kind == TAC__CONV_BACKWARD_WEIGHTS) {
        TRY(add_memory(engine, md, end, &c->total));
        add_bytes(floats * sizeof(float), end, &c->sums);
    }
    TRY(make_reorder(engine, spec, md, end, c));
    return tac__api_plain_weights(engine, spec, &c->plain);
}

static dnnl_status_t make_objects(dnnl_engine_t engine,
                                  const tac__conv_spec *spec,
                                  const_dnnl_primitive_desc_t pd,
                                  tac__conv_chunk *c, size_t *bytes)
{
    const tac_conv2d *d = &spec->d;
    TRY(dnnl_stream_create(&c->stream, engine, dnnl_stream_default_flags));
    TRY(dnnl_primitive_create(&c->conv, pd));
    TRY(make_activations(engine, spec, pd, c));
    TRY(make_weights(engine, spec, query(pd, weights_query(spec->kind), 0),
                     bytes, c));
    TRY(add_memory(engine, query(pd, dnnl_query_scratchpad_md, 0), bytes,
                   &c->scratch));
    if (spec->accumulate)
        add_bytes(d->n * d->h * d->w * d->ic * sizeof(float), bytes, &c->copy);
    return dnnl_success;
}

/* What the base table does better. oneDNN 2.6's 1x1 kernel for AVX512-BF16
 * without AMX gives wrong gradients of images of 30 pixels if the number of
 * output channels is odd; the battery has the shape. */
static int is_refused(const tac__conv_spec *spec,
                      const_dnnl_primitive_desc_t pd)
{
    if (spec->in == TAC_F32) return 0;
    if (tac__api_is(pd, "ref")) return 1;
    return spec->kind == TAC__CONV_BACKWARD_DATA && spec->d.oc % 2 == 1 &&
           tac__api_is(pd, "jit_bf16_1x1");
}

dnnl_status_t tac__conv_chunk_make(dnnl_engine_t engine,
                                   const tac__conv_spec *spec, tac__md weights,
                                   tac__conv_chunk *chunk, size_t *bytes)
{
    dnnl_primitive_desc_t pd = NULL;
    *bytes = 0;
    TRY(tac__api_conv(engine, spec, weights, &pd));
    const dnnl_status_t s = is_refused(spec, pd)
                                ? dnnl_unimplemented
                                : make_objects(engine, spec, pd, chunk, bytes);
    dnnl_primitive_desc_destroy(pd);
    return s;
}

tac__md tac__conv_chunk_weights(const tac__conv_chunk *chunk,
                                tac__conv_kind kind)
{
    const_dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_get_primitive_desc(chunk->conv, &pd);
    return query(pd, weights_query(kind), 0);
}

static void destroy_memory(dnnl_memory_t m)
{
    if (m) dnnl_memory_destroy(m);
}

void tac__conv_chunk_destroy(tac__conv_chunk *c)
{
    destroy_memory(c->x);
    destroy_memory(c->y);
    destroy_memory(c->bias);
    destroy_memory(c->plain);
    destroy_memory(c->weights.memory);
    destroy_memory(c->total.memory);
    destroy_memory(c->scratch.memory);
    destroy_memory(c->reorder_scratch.memory);
    if (c->conv) dnnl_primitive_destroy(c->conv);
    if (c->reorder) dnnl_primitive_destroy(c->reorder);
    if (c->stream) dnnl_stream_destroy(c->stream);
}
