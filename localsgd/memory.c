/* memory.c: what is held, counted and predicted. The two agree to the byte. */
#include <stdlib.h>

#include "impl.h"

int64_t tac__lsgd_flights(const tac_localsgd_config *c, int64_t fragments)
{
    const int64_t h =
        c->n_levels > 0 ? c->levels[c->n_levels - 1].every : c->schedule.every;
    if (c->delay == 0) return 0;
    if (c->schedule.kind != TAC_SYNC_FIXED || c->delay >= h) return fragments;
    const int64_t n =
        (int64_t)((double)c->delay / (double)h * (double)fragments) + 2;
    return n < fragments ? n : fragments;
}

/* ---- counted --------------------------------------------------------------
 */

/* Codecs allocate at their first calls; it is known what. */
static size_t codec_bytes(const tac_localsgd *l, int level)
{
    const tac__level *v = &l->levels[level];
    const int ranks =
        level < l->n_levels - 1 ? l->config.levels[level].ranks : l->size;
    size_t sum = 0;
    for (int64_t p = 0; v->codec && p < l->n_fragments; p++)
        if (l->fragments[p].n > 0)
            sum += tac_codec_predict(v->codec, l->fragments[p].n,
                                     &l->fragments[p].codec_layout, ranks);
    return sum;
}

size_t tac_localsgd_bytes(const tac_localsgd *l)
{
    size_t sum = l->bytes;
    for (int i = 0; i < l->n_levels; i++) sum += codec_bytes(l, i);
    return sum;
}

size_t tac_localsgd_comm_bytes(const tac_localsgd *l)
{
    size_t sum = 0;
    for (int i = 0; i < l->n_levels; i++) {
        const tac__level *v = &l->levels[i];
        if (v->data) sum += tac_comm_bytes(v->data);
        if (v->control) sum += tac_comm_bytes(v->control);
    }
    return sum;
}

/* ---- predicted ------------------------------------------------------------
 */

typedef struct sizes {
    int64_t fragments;
    size_t *n, all, largest; /* elements: of each, of the model */
} sizes;

static tac_status measure(tac_context *ctx, const tac_localsgd_config *c,
                          const tac_localsgd_model *m, sizes *out)
{
    *out = (sizes){.fragments = c->fragments > 1 ? c->fragments : 1};
    out->n = calloc((size_t)out->fragments, sizeof *out->n);
    if (!out->n)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a prediction");
    for (int64_t i = 0; i < m->layers; i++) {
        out->n[tac_localsgd_fragment_of(c, i, m->layers)] += m->params[i];
        out->all += m->params[i];
    }
    for (int64_t p = 0; p < out->fragments; p++)
        if (out->n[p] > out->largest) out->largest = out->n[p];
    return TAC_OK;
}

/* Arrays of the whole model. */
static size_t arrays(const tac_localsgd_config *c)
{
    if (!tac_localsgd_has_anchor(c)) return 0;
    return 1 + (size_t)tac__outer_arrays(&c->outer) +
           (c->stale == TAC_STALE_EAGER);
}

/* With one flight a fragment each is as large as its own. */
static size_t flights(const tac_localsgd_config *c, const sizes *s)
{
    const int64_t n = tac__lsgd_flights(c, s->fragments);
    return n == s->fragments ? s->all : (size_t)n * s->largest;
}

static size_t codecs(const tac_localsgd_config *c, const tac_codec *codec,
                     const sizes *s, int world)
{
    const int levels = c->n_levels > 0 ? c->n_levels : 1;
    size_t sum = 0;
    for (int i = 0; i < levels; i++)
        for (int64_t p = 0; p < s->fragments; p++)
            if (s->n[p] > 0)
                sum += tac_codec_predict(codec, s->n[p], NULL,
                                         i < levels - 1 ? c->levels[i].ranks
                                                        : world);
    return sum;
}

tac_status tac_localsgd_predict_memory(tac_context *ctx,
                                       const tac_localsgd_config *c,
                                       const tac_localsgd_model *m, int world,
                                       size_t *out)
{
    sizes s;
    tac_codec *codec = NULL;
    if (!c || !m || !out || world < 1) return TAC_ERR_ARG;
    TAC_TRY(tac_localsgd_check(ctx, c, world, m->layers));
    if (c->codec) TAC_TRY(tac_codec_create(ctx, c->codec, &codec));
    const tac_status status = measure(ctx, c, m, &s);
    if (status == TAC_OK)
        *out = sizeof(float) * (arrays(c) * s.all + s.largest + m->merged +
                                flights(c, &s)) +
               sizeof(int64_t) * m->counters + codecs(c, codec, &s, world);
    free(s.n);
    tac_codec_destroy(codec);
    return status;
}

size_t tac_localsgd_predict_comm_bytes(const tac_comm *comm,
                                       const tac_localsgd_config *c, int world)
{
    const int levels = c->n_levels > 0 ? c->n_levels : 1;
    size_t sum = 0;
    for (int i = 0; i < levels; i++) {
        const int ranks = i < levels - 1 ? c->levels[i].ranks : world;
        sum += tac_comm_child_bytes(comm, ranks, 0) +
               tac_comm_child_bytes(comm, ranks, TAC__CONTROL_STAGING);
    }
    return sum;
}
