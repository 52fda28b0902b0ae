/* layout.c: fragments and stretches, and all memory that is ever needed. Local:
 * nothing is communicated. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"

void *tac__lsgd_alloc(tac_localsgd *l, size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (p) l->bytes += n * size;
    return p;
}

/* Kept and frozen parameters are not sent. */
static int is_sent(const tac__tensor *t)
{
    return t->t.role == TAC_ROLE_PARAM && t->t.merge == TAC_MERGE_AVERAGE;
}

/* ---- layers ---------------------------------------------------------------
 */

/* Without layers each tensor is one. */
static tac_status number_layers(tac_localsgd *l)
{
    int64_t order = 0, named = 0;
    for (size_t i = 0; i < l->n_tensors; i++)
        if (is_sent(&l->tensors[i]))
            order++, named += l->tensors[i].t.layer >= 0;
    if (named != 0 && named != order)
        return tac_fail(l->ctx, TAC_ERR_ARG,
                        "localsgd: %" PRId64 " of %" PRId64
                        " parameters have a layer; give all of them one, or "
                        "none (-1)",
                        named, order);
    order = 0;
    for (size_t i = 0; i < l->n_tensors; i++) {
        tac_localsgd_tensor *t = &l->tensors[i].t;
        if (!is_sent(&l->tensors[i])) continue;
        if (named == 0) t->layer = order++;
        if (t->layer >= l->layers) l->layers = t->layer + 1;
    }
    return TAC_OK;
}

static tac_status count_layers(tac_localsgd *l)
{
    l->layer_elements = calloc((size_t)l->layers + 1, sizeof(size_t));
    if (!l->layer_elements) return tac__lsgd_no_memory(l, (size_t)l->layers);
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        if (!is_sent(&l->tensors[i])) continue;
        l->layer_elements[t->layer] += t->count;
        l->elements += t->count;
    }
    return TAC_OK;
}

/* ---- fragments ------------------------------------------------------------
 */

static void name_fragment(tac__fragment *f, int64_t i)
{
    snprintf(f->name, sizeof f->name, "fragment %" PRId64, i);
    f->part = (tac_codec_part){.name = f->name, .count = f->n};
    f->codec_layout =
        (tac_codec_layout){.n = 1, .parts = &f->part, .grad_scale = 1};
}

static void add_stretch(tac_localsgd *l, tac__fragment *f,
                        const tac_localsgd_tensor *t)
{
    tac__stretch *last = &l->stretches[l->n_stretches - (f->stretches > 0)];
    if (t->count == 0) return;
    if (f->stretches > 0 && last->data + last->n == (float *)t->data) {
        last->n += t->count;
    } else {
        l->stretches[l->n_stretches++] =
            (tac__stretch){t->data, f->at + f->n, t->count};
        f->stretches++;
    }
    f->n += t->count;
}

static tac_status deal(tac_localsgd *l)
{
    size_t at = 0;
    l->n_fragments = l->config.fragments > 1 ? l->config.fragments : 1;
    l->fragments = calloc((size_t)l->n_fragments, sizeof *l->fragments);
    l->stretches = calloc(l->n_tensors + 1, sizeof *l->stretches);
    if (!l->fragments || !l->stretches)
        return tac__lsgd_no_memory(l, l->n_tensors * sizeof *l->stretches);
    for (int64_t p = 0; p < l->n_fragments; p++) {
        tac__fragment *f = &l->fragments[p];
        f->at = at;
        f->first = l->n_stretches;
        for (size_t i = 0; i < l->n_tensors; i++) {
            const tac_localsgd_tensor *t = &l->tensors[i].t;
            if (is_sent(&l->tensors[i]) &&
                tac_localsgd_fragment_of(&l->config, t->layer, l->layers) == p)
                add_stretch(l, f, t);
        }
        at += f->n;
        name_fragment(f, p);
    }
    return TAC_OK;
}

static size_t largest(const tac_localsgd *l)
{
    size_t n = 0;
    for (int64_t p = 0; p < l->n_fragments; p++)
        if (l->fragments[p].n > n) n = l->fragments[p].n;
    return n;
}

/* ---- merges ---------------------------------------------------------------
 */

static void place_merges(tac_localsgd *l)
{
    tac__merges *m = &l->merges;
    for (size_t i = 0; i < l->n_tensors; i++) {
        tac__tensor *t = &l->tensors[i];
        size_t *n = NULL;
        if (t->t.role == TAC_ROLE_PARAM) continue;
        if (t->t.merge == TAC_MERGE_AVERAGE) n = &m->average;
        if (t->t.merge == TAC_MERGE_MOMENTS) n = &m->moments;
        if (t->t.merge == TAC_MERGE_MAX)
            n = t->t.role == TAC_ROLE_COUNTER ? &m->counters : &m->max;
        if (!n) continue;
        t->at = *n;
        *n += t->t.count;
    }
}

/* ---- memory ---------------------------------------------------------------
 */

static tac_status open_flights(tac_localsgd *l)
{
    const int64_t n = tac__lsgd_flights(&l->config, l->n_fragments);
    l->flights = calloc((size_t)n + 1, sizeof *l->flights);
    if (!l->flights) return tac__lsgd_no_memory(l, sizeof *l->flights);
    l->n_flights = n;
    for (int64_t i = 0; i < n; i++) {
        tac__flight *f = &l->flights[i];
        f->room = n == l->n_fragments ? l->fragments[i].n : largest(l);
        f->buf = tac__lsgd_alloc(l, f->room, sizeof(float));
        if (!f->buf) return tac__lsgd_no_memory(l, f->room * sizeof(float));
    }
    return TAC_OK;
}

static tac_status open_arrays(tac_localsgd *l)
{
    const size_t n = l->elements, f = sizeof(float);
    const tac__merges *m = &l->merges;
    const size_t merged = m->average + m->moments + m->max;
    int ok = 1;
    if (tac_localsgd_has_anchor(&l->config)) {
        ok = (l->anchor = tac__lsgd_alloc(l, n, f)) != NULL;
        l->n_outer = tac__outer_arrays(&l->config.outer);
    }
    for (int i = 0; i < l->n_outer; i++)
        ok = ok && (l->outer[i] = tac__lsgd_alloc(l, n, f)) != NULL;
    if (l->config.stale == TAC_STALE_EAGER)
        ok = ok && (l->own = tac__lsgd_alloc(l, n, f)) != NULL;
    ok = ok && (l->staging = tac__lsgd_alloc(l, largest(l), f)) != NULL;
    ok = ok && (l->merged = tac__lsgd_alloc(l, merged, f)) != NULL;
    ok = ok && (l->counters = tac__lsgd_alloc(l, m->counters, 8)) != NULL;
    l->cards = calloc((size_t)l->size, sizeof *l->cards);
    return ok && l->cards ? TAC_OK : tac__lsgd_no_memory(l, n * f);
}

static tac_status open_codecs(tac_localsgd *l)
{
    for (int i = 0; i < l->n_levels && l->config.codec; i++) {
        tac__level *v = &l->levels[i];
        TAC_TRY(tac_codec_create(l->ctx, l->config.codec, &v->codec));
        for (int64_t p = 0; p < l->n_fragments; p++)
            TAC_TRY(tac_codec_expect(v->codec, &l->fragments[p].codec_layout));
    }
    return TAC_OK;
}

static uint64_t bytes_of_all(const tac_localsgd *l)
{
    const tac_codec *codec = l->levels[l->n_levels - 1].codec;
    uint64_t sum = 0;
    for (int64_t p = 0; p < l->n_fragments; p++) {
        const tac__fragment *f = &l->fragments[p];
        sum += codec ? tac_codec_wire_bytes(codec, f->n, &f->codec_layout)
                     : f->n * sizeof(float);
    }
    return sum;
}

static tac_status open_all(tac_localsgd *l)
{
    TAC_TRY(number_layers(l));
    TAC_TRY(tac_localsgd_check(l->ctx, &l->config, l->size, l->layers));
    TAC_TRY(count_layers(l));
    TAC_TRY(deal(l));
    place_merges(l);
    TAC_TRY(open_arrays(l));
    TAC_TRY(open_flights(l));
    TAC_TRY(open_codecs(l));
    tac__clock_open(&l->clock, &l->config, bytes_of_all(l));
    l->stats.consensus_distance = l->stats.cosine = l->stats.delta_norm = NAN;
    l->figures = (tac__card){.distance2 = NAN, .dot = NAN, .own2 = NAN};
    l->hash_config = tac__lsgd_hash_config(&l->config, 0);
    return TAC_OK;
}

tac_status tac__lsgd_open(tac_localsgd *l)
{
    if (l->opened) return l->failed;
    l->opened = 1;
    return tac__lsgd_poison(l, open_all(l));
}

tac_localsgd_model tac_localsgd_model_of(const tac_localsgd *l)
{
    const tac__merges *m = &l->merges;
    return (tac_localsgd_model){.layers = l->layers,
                                .params = l->layer_elements,
                                .merged = m->average + m->moments + m->max,
                                .counters = m->counters};
}
