/* regroup_codec.c: codecs are made for a number of ranks, so other ranks need
 * new ones. What this rank owes moves with it: its residual, and what it has
 * kept of sums' encodings, which becomes a part of the residual, because slices
 * of a sum have other owners now. (A residual counts as much as a delta: of an
 * average one part in `ranks`.) */
#include <stdlib.h>
#include <string.h>

#include "impl.h"

/* ---- from one codec to the other ------------------------------------------
 */

typedef struct wanted {
    const char *name;
    const void *data;
    size_t bytes;
} wanted;

static size_t bytes_of(const tac_state_item *item)
{
    return tac_state_item_count(item) * tac_dtype_size(item->dtype);
}

static tac_status look(void *arg, const tac_state_item *item)
{
    wanted *w = arg;
    if (strcmp(w->name, item->name) != 0) return TAC_OK;
    w->data = item->data;
    w->bytes = bytes_of(item);
    return TAC_OK;
}

typedef struct copy {
    tac_codec *from;
    float by;        /* what a result's residual counts in the rank's own */
    float *residual; /* the item before */
} copy;

static int ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Items come parameter by parameter: calls, residual, result. */
static tac_status fill(void *arg, const tac_state_item *item)
{
    copy *c = arg;
    wanted w = {.name = item->name};
    const tac_state_visitor v = {look, &w, NULL};
    const size_t n = tac_state_item_count(item);
    TAC_TRY(tac_codec_visit(c->from, &v));
    if (w.data && ends_in(item->name, ".result") && c->residual)
        tac__add_scaled(c->residual, w.data, c->by, n);
    else if (w.data && w.bytes == bytes_of(item))
        memcpy(item->data, w.data, w.bytes);
    c->residual = ends_in(item->name, ".residual") ? item->data : NULL;
    return TAC_OK;
}

static tac_status expect(tac_localsgd *l, tac_codec *c)
{
    for (int64_t p = 0; p < l->n_fragments; p++)
        TAC_TRY(tac_codec_expect(c, &l->fragments[p].codec_layout));
    return TAC_OK;
}

/* Averages are of even shares; sums have them scaled already. */
static float share_of(const tac_localsgd *l, int level)
{
    const tac_localsgd_config *c = &l->config;
    const int even =
        c->weighting == TAC_WEIGHT_UNIFORM && c->drop_probability == 0;
    if (!even) return 1;
    return (float)(level < l->n_levels - 1 ? c->levels[level].ranks : l->size);
}

static tac_status renew(tac_localsgd *l, int level)
{
    tac__level *v = &l->levels[level];
    copy c = {.from = v->codec, .by = share_of(l, level)};
    const tac_state_visitor visitor = {fill, &c, NULL};
    tac_codec *codec = NULL;
    if (!v->codec) return TAC_OK;
    TAC_TRY(tac_codec_create(l->ctx, l->config.codec, &codec));
    tac_status s = expect(l, codec);
    if (s == TAC_OK) s = tac_codec_visit(codec, &visitor);
    tac_codec_destroy(s == TAC_OK ? v->codec : codec);
    if (s == TAC_OK) v->codec = codec;
    return s;
}

tac_status tac__regroup_codecs(tac_localsgd *l)
{
    for (int i = 0; i < l->n_levels; i++) TAC_TRY(renew(l, i));
    return TAC_OK;
}

/* ---- how often they were called -------------------------------------------
 */

typedef struct sender {
    tac_localsgd *l;
    int lead;
} sender;

static tac_status send_calls(void *arg, const tac_state_item *item)
{
    const sender *s = arg;
    if (!ends_in(item->name, ".calls")) return TAC_OK;
    return tac__regroup_send(s->l, s->lead, item->data, bytes_of(item));
}

tac_status tac__regroup_calls(tac_localsgd *l, int lead)
{
    sender s = {l, lead};
    const tac_state_visitor v = {send_calls, &s, NULL};
    for (int i = 0; i < l->n_levels; i++)
        TAC_TRY(tac_codec_visit(l->levels[i].codec, &v));
    return TAC_OK;
}
