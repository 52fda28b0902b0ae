/* codec.c: creating codecs, and what can be asked about them. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"

const tac__codec_method *const tac__codec_methods[] = {
    &tac__codec_fp16,
    &tac__codec_bf16,
    &tac__codec_int8,
    &tac__codec_fp4,
    &tac__codec_topk,
    &tac__codec_powersgd,
    NULL,
};

tac_status tac_codec_create(tac_context *ctx, const char *spec, tac_codec **out)
{
    tac__codec_spec parsed;
    if (!spec || !out) return TAC_ERR_ARG;
    if (strcmp(spec, "none") == 0) {
        *out = NULL;
        return TAC_OK;
    }
    TAC_TRY(tac__codec_parse(ctx, spec, &parsed));
    tac_codec *c = calloc(1, sizeof *c);
    if (!c) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for codec %s", spec);
    c->ctx = ctx;
    c->spec = parsed;
    tac__codec_print(&parsed, c->text, sizeof c->text);
    *out = c;
    return TAC_OK;
}

tac_status tac__codec_make_cards(tac_codec *c, int size)
{
    if (!c->cards) c->cards = calloc((size_t)size + 1, sizeof *c->cards);
    return c->cards ? TAC_OK
                    : tac__codec_no_memory(c, "the comparison of ranks");
}

void tac_codec_destroy(tac_codec *c)
{
    if (!c) return;
    tac__codec_free_state(c);
    if (!c->in_use) free(c->cards);
    free(c);
}

const char *tac_codec_spec(const tac_codec *c)
{
    return c ? c->text : "none";
}

int tac_codec_has_state(const tac_codec *c)
{
    return c && (c->spec.feedback || c->spec.method == &tac__codec_powersgd ||
                 c->spec.stochastic || c->spec.warmup || c->spec.start);
}

/* ---- bytes ----------------------------------------------------------------
 */

static tac__extents extents(const tac_codec_part *p)
{
    if (p->ndim < 2 || p->count == 0)
        return (tac__extents){p->count, p->count, 1};
    return (tac__extents){p->count, p->shape[0], p->count / p->shape[0]};
}

size_t tac__codec_bytes(const tac_codec *c, size_t count,
                        const tac_codec_layout *layout, uint64_t call)
{
    const tac__codec_method *m = c->spec.method;
    char name[32];
    tac_codec_part part;
    tac_codec_layout single = tac__codec_single(&part, count, 0, name);
    const tac_codec_layout *l = layout ? layout : &single;
    size_t sum = 0;
    if (m->wire) return m->wire->bytes(count);
    for (size_t i = 0; i < l->n; i++) {
        const tac__extents e = extents(&l->parts[i]);
        sum += m->bytes(&c->spec, &e, call);
    }
    return sum;
}

size_t tac_codec_wire_bytes(const tac_codec *c, size_t count,
                            const tac_codec_layout *layout)
{
    return c ? tac__codec_bytes(c, count, layout, UINT64_MAX)
             : count * sizeof(float);
}

/* Residuals are two copies each (tac__lost); without feedback some methods
 * work in the second. */
static size_t residual_bytes(const tac_codec *c, size_t count)
{
    const tac__codec_method *m = c->spec.method;
    size_t copies = m->own_feedback ? 1 : 0;
    if (c->spec.feedback) copies = m->keeps_result ? 4 : 2;
    return copies * count * sizeof(float);
}

size_t tac_codec_predict(const tac_codec *c, size_t count,
                         const tac_codec_layout *layout, int ranks)
{
    char name[32];
    tac_codec_part part;
    tac_codec_layout single = tac__codec_single(&part, count, 0, name);
    const tac_codec_layout *l = layout ? layout : &single;
    if (!c || ranks < 2) return 0;
    size_t sum = residual_bytes(c, count);
    for (size_t i = 0; i < l->n && c->spec.method->room; i++) {
        const tac__extents e = extents(&l->parts[i]);
        sum += c->spec.method->room(&c->spec, &e, ranks);
    }
    return sum;
}

size_t tac_codec_held(const tac_codec *c)
{
    size_t sum = 0;
    for (const tac__codec_set *s = c ? c->sets : NULL; s; s = s->next)
        sum += s->held;
    return sum;
}

size_t tac_codec_wire_bytes_at(const tac_codec *c, size_t count,
                               const tac_codec_layout *layout, uint64_t call)
{
    if (!c || call < c->spec.start) return count * sizeof(float);
    return tac__codec_bytes(c, count, layout, call - c->spec.start);
}

uint64_t tac__codec_settles(const tac_codec *c)
{
    return c->spec.start + c->spec.warmup;
}

size_t tac__codec_next_bytes(const tac_codec *c, size_t count,
                             const tac_codec_layout *layout, int size)
{
    uint64_t calls = UINT64_MAX;
    for (size_t i = 0; layout && i < layout->n; i++) {
        const tac__codec_param *p = tac__codec_find(c, layout->parts[i].name);
        const uint64_t seen = p ? p->calls : 0;
        if (seen < calls) calls = seen;
    }
    if (!layout || layout->n == 0) calls = 0;
    if (size == 1 || calls < c->spec.start) return count * sizeof(float);
    return tac__codec_bytes(c, count, layout, calls - c->spec.start);
}
