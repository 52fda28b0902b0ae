/* codec_params.c: the parameters that a codec knows, sorted by name. A new one
 * costs O(n), finding one O(log n). */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"

/* Place of the first name that is not before `name`. */
static size_t lower_bound(const tac_codec *c, const char *name)
{
    size_t low = 0, high = c->n_params;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(c->params[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tac__codec_param *tac__codec_find(const tac_codec *c, const char *name)
{
    const size_t i = lower_bound(c, name);
    return i < c->n_params && strcmp(c->params[i]->name, name) == 0
               ? c->params[i]
               : NULL;
}

tac_status tac__codec_no_memory(const tac_codec *c, const char *what)
{
    return tac_fail(c->ctx, TAC_ERR_NOMEM, "codec %s: no memory for %s",
                    c->text, what);
}

static tac_status grow(tac_codec *c)
{
    if (c->n_params < c->room) return TAC_OK;
    const size_t room = 2 * c->room + 8;
    void *p = realloc(c->params, room * sizeof(*c->params));
    if (!p) return tac__codec_no_memory(c, "parameters");
    c->params = p;
    c->room = room;
    return TAC_OK;
}

static tac_status add_param(tac_codec *c, const tac_codec_part *part,
                            tac__codec_param **out)
{
    const size_t at = lower_bound(c, part->name);
    TAC_TRY(grow(c));
    tac__codec_param *p = calloc(1, sizeof *p);
    if (p) p->name = strdup(part->name);
    if (!p || !p->name) {
        free(p);
        return tac__codec_no_memory(c, part->name);
    }
    p->count = part->count;
    p->rows = part->ndim > 1 && part->count ? part->shape[0] : part->count;
    p->columns = part->ndim > 1 && part->count ? part->count / p->rows : 1;
    memmove(c->params + at + 1, c->params + at,
            (c->n_params - at) * sizeof *c->params);
    c->params[at] = p;
    c->n_params++;
    *out = p;
    return TAC_OK;
}

/* Quiet: in a call the communicator says it. */
tac_status tac__codec_know(tac_codec *c, const tac_codec_part *part,
                           tac__codec_param **out)
{
    tac__codec_param *p = tac__codec_find(c, part->name);
    if (!p) return add_param(c, part, out);
    if (p->count != part->count)
        return tac_fail_quiet(c->ctx, TAC_ERR_ARG,
                              "codec %s: parameter '%s' had %zu elements and "
                              "now has %zu; state is kept by name (without a "
                              "layout, by tag), so give each parameter its own",
                              c->text, p->name, p->count, part->count);
    *out = p;
    return TAC_OK;
}

static float **state_of(tac__codec_param *p, int result)
{
    return result ? &p->result : &p->residual;
}

/* Memory for what will be loaded. */
static tac_status reserve(tac_codec *c, tac__codec_param *p)
{
    const tac__codec_method *m = c->spec.method;
    for (int result = 0; result <= m->keeps_result; result++) {
        float **state = state_of(p, result);
        if (!c->spec.feedback || p->home || *state) continue;
        *state = calloc(p->count + 1, sizeof **state);
        if (!*state) return tac__codec_no_memory(c, p->name);
    }
    return TAC_OK;
}

/* What was quiet, said aloud. */
static tac_status know_aloud(tac_codec *c, const tac_codec_part *part,
                             tac__codec_param **out)
{
    char text[TAC__ERROR];
    const tac_status s = tac__codec_know(c, part, out);
    if (s != TAC_ERR_ARG) return s;
    tac_context_error(c->ctx, text, sizeof text);
    return tac_fail(c->ctx, s, "%s", text);
}

tac_status tac_codec_expect(tac_codec *c, const tac_codec_layout *layout)
{
    if (!c || !layout || (layout->n && !layout->parts)) return TAC_ERR_ARG;
    for (size_t i = 0; i < layout->n; i++) {
        tac__codec_param *p = NULL;
        if (!layout->parts[i].name) return TAC_ERR_ARG;
        for (size_t k = 0; k < i; k++)
            if (strcmp(layout->parts[k].name, layout->parts[i].name) == 0)
                return tac_fail(c->ctx, TAC_ERR_ARG,
                                "codec %s: two parameters are called '%s'; "
                                "state is kept by name",
                                c->text, layout->parts[i].name);
        TAC_TRY(know_aloud(c, &layout->parts[i], &p));
        TAC_TRY(reserve(c, p));
    }
    return TAC_OK;
}
