/* reducer_codec.c: buckets that travel through a codec or a cast.
 *
 * A codec is told which parameters lie where in a bucket. The descriptions are
 * made once a layout, so a step allocates nothing. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_bytes.h"
#include "reducer_impl.h"
#include "wire.h"

void tac__layouts_free(tac_reducer *r)
{
    free(r->parts);
    free(r->layouts);
}

static tac_codec_part part_of(const tac_reducer *r, size_t i, size_t offset)
{
    const tac__param *p = &r->params[i];
    return (tac_codec_part){.name = p->name,
                            .offset = offset,
                            .count = p->count,
                            .ndim = p->ndim,
                            .shape = p->extents};
}

tac_status tac__layouts_fill(tac_reducer *r)
{
    const tac__layout *l = &r->layout;
    size_t at = 0;
    for (size_t b = 0; b < l->n_buckets; b++) {
        const tac__bucket *k = &l->buckets[b];
        r->layouts[b] = (tac_codec_layout){.parts = r->parts + at};
        for (size_t m = k->first; m < k->first + k->n_params; m++) {
            const size_t i = l->members[m];
            if (r->params[i].count == 0) continue;
            r->parts[at++] = part_of(r, i, l->offsets[m]);
            r->layouts[b].n++;
        }
    }
    return TAC_OK;
}

/* All parameters, so that the codec's state can be loaded. */
static tac_status declare(tac_reducer *r, tac_codec *codec)
{
    size_t n = 0;
    r->parts = calloc(r->n + 1, sizeof *r->parts);
    r->layouts = calloc(r->n + 1, sizeof *r->layouts);
    if (!r->parts || !r->layouts)
        return tac_fail(r->ctx, TAC_ERR_NOMEM,
                        "reducer: no memory to describe %zu parameters", r->n);
    for (size_t i = 0; i < r->n; i++)
        if (r->params[i].count) r->parts[n++] = part_of(r, i, 0);
    return tac_codec_expect(codec, &(tac_codec_layout){n, r->parts, 1.0});
}

/* What hooks, codecs and casts have in common. */
static tac_status check(tac_reducer *r, const char *what)
{
    if (r->hook || r->codec || r->wire_dtype != TAC_WIRE_SAME || r->begun)
        return tac_fail(r->ctx, TAC_ERR_STATE,
                        "reducer: %s is set once, instead of a hook, before "
                        "the first step",
                        what);
    for (size_t i = 0; i < r->n; i++)
        if (r->params[i].count && r->params[i].dtype != TAC_F32)
            return tac_fail(r->ctx, TAC_ERR_UNSUPPORTED,
                            "reducer: %s compresses f32, but '%s' is %s", what,
                            r->params[i].name,
                            tac_dtype_name(r->params[i].dtype));
    return TAC_OK;
}

tac_status tac_reducer_set_codec(tac_reducer *r, tac_codec *codec)
{
    if (!r) return TAC_ERR_ARG;
    if (!codec) return TAC_OK; /* "none" */
    TAC_TRY(check(r, "a codec"));
    const tac_status s = declare(r, codec);
    if (s < 0) {
        tac__layouts_free(r);
        r->parts = NULL;
        r->layouts = NULL;
        return s;
    }
    r->codec = codec;
    return tac__layouts_fill(r);
}

tac_status tac_reducer_set_wire(tac_reducer *r, int wire_dtype)
{
    if (!r) return TAC_ERR_ARG;
    if (wire_dtype != TAC_WIRE_SAME && !tac__wire_of(wire_dtype))
        return tac_fail(r->ctx, TAC_ERR_ARG,
                        "reducer: buckets travel as TAC_F16 or TAC_BF16 (or "
                        "TAC_WIRE_SAME), not as dtype %d",
                        wire_dtype);
    TAC_TRY(check(r, "a cast"));
    r->wire_dtype = wire_dtype;
    return TAC_OK;
}

/* Residuals could move along with a rebuild, but their codec may count calls;
 * so one with state waits until the layout is final. */
static int waits(const tac_reducer *r)
{
    return tac_codec_has_state(r->codec) && !r->rebuilt &&
           !r->config.no_rebuild;
}

size_t tac__bucket_encoding(tac_reducer *r, size_t b, tac_coll_opt *opt)
{
    const tac__bucket *k = &r->layout.buckets[b];
    opt->wire_dtype = r->wire_dtype;
    if (r->wire_dtype != TAC_WIRE_SAME && r->world > 1)
        return tac__wire_of(r->wire_dtype)->bytes(k->count);
    if (!r->codec || waits(r)) return k->count * tac_dtype_size(k->dtype);
    r->layouts[b].grad_scale = r->grad_scale;
    opt->codec = r->codec;
    opt->layout = &r->layouts[b];
    return tac__codec_next_bytes(r->codec, k->count, opt->layout, r->world);
}
