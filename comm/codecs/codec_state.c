/* codec_state.c: arrangements of parameters (see codec_impl.h). Allocates only
 * when one is new. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"
#include "tacit/hash.h"

tac_codec_layout tac__codec_single(tac_codec_part *part, size_t count,
                                   uint64_t tag, char *name)
{
    snprintf(name, 32, "tag %" PRIu64, tag);
    *part = (tac_codec_part){.name = name, .count = count};
    return (tac_codec_layout){.n = 1, .parts = part};
}

static int is_like(const tac__codec_set *s, size_t count,
                   const tac_codec_layout *l)
{
    if (s->count != count || s->n != l->n) return 0;
    for (size_t i = 0; i < l->n; i++) {
        const tac_codec_part *p = &l->parts[i];
        const tac__codec_place *q = &s->places[i];
        if (p->offset != q->at || p->count != q->param->count ||
            strcmp(p->name, q->param->name) != 0)
            return 0;
    }
    return 1;
}

/* Parts must lie in the buffer, one after the other. */
static tac_status check(tac_codec *c, size_t count, const tac_codec_layout *l)
{
    size_t end = 0;
    for (size_t i = 0; i < l->n; i++) {
        const tac_codec_part *p = &l->parts[i];
        if (!p->name || p->offset < end || p->offset > count ||
            p->count > count - p->offset)
            return tac_fail_quiet(
                c->ctx, TAC_ERR_ARG,
                "codec %s: part %zu of the layout ('%s', elements "
                "%zu to %zu of %zu) is out of order or outside the "
                "buffer",
                c->text, i, p->name ? p->name : "", p->offset,
                p->offset + p->count, count);
        end = p->offset + p->count;
    }
    return TAC_OK;
}

/* Messages that may still arrive are left to the communicator. */
static void free_set(tac__codec_set *s, int in_use)
{
    free(s->places);
    free(s->lost.old);
    free(s->lost.next);
    free(s->result.old);
    free(s->result.next);
    if (!in_use) {
        free(s->values);
        free(s->sums);
        free(s->all);
    }
    free(s);
}

/* Large pieces come as zeros that cost nothing until they are written. */
static int zeros(float **p, size_t n, int wanted)
{
    if (wanted) *p = calloc(n + 1, sizeof **p);
    return !wanted || *p;
}

static tac_status open_lost(tac_codec *c, tac__codec_set *s)
{
    const tac__codec_method *m = c->spec.method;
    const int ef = c->spec.feedback, sum = ef && m->keeps_result;
    return zeros(&s->lost.old, s->count, ef) &&
                   zeros(&s->lost.next, s->count, ef || m->own_feedback) &&
                   zeros(&s->result.old, s->count, sum) &&
                   zeros(&s->result.next, s->count, sum)
               ? TAC_OK
               : tac__codec_no_memory(c, "residuals");
}

static tac_status fill_places(tac_codec *c, tac__codec_set *s,
                              const tac_codec_layout *l)
{
    uint64_t h = tac_hash_u64(TAC_HASH_INIT, s->count);
    for (size_t i = 0; i < l->n; i++) {
        tac__codec_place *place = &s->places[i];
        TAC_TRY(tac__codec_know(c, &l->parts[i], &place->param));
        for (size_t k = 0; k < i; k++)
            if (s->places[k].param == place->param)
                return tac_fail_quiet(
                    c->ctx, TAC_ERR_ARG,
                    "codec %s: two parameters are called '%s'; "
                    "state is kept by name",
                    c->text, place->param->name);
        place->at = l->parts[i].offset;
        h = tac_hash_str(h, place->param->name);
        h = tac_hash_u64(h, place->at);
        h = tac_hash_u64(h, place->param->count);
        h = tac_hash_u64(h, place->param->rows);
    }
    s->hash = h;
    return TAC_OK;
}

static tac_status make_set(tac_codec *c, size_t count,
                           const tac_codec_layout *l, int size,
                           tac__codec_set **out)
{
    TAC_TRY(check(c, count, l));
    tac__codec_set *s = calloc(1, sizeof *s);
    if (s) s->places = calloc(l->n + 1, sizeof *s->places);
    if (!s || !s->places) {
        free(s);
        return tac__codec_no_memory(c, "an arrangement of parameters");
    }
    s->count = count;
    s->n = l->n;
    tac_status st = fill_places(c, s, l);
    if (st == TAC_OK && size > 1) st = open_lost(c, s);
    if (st == TAC_OK && size > 1) st = c->spec.method->open(c, s, size);
    if (st == TAC_OK) st = tac__codec_make_cards(c, size);
    if (st < 0) {
        free_set(s, 0);
        return st;
    }
    s->held = tac_codec_predict(c, count, l, size);
    s->next = c->sets;
    c->sets = s;
    *out = s;
    return TAC_OK;
}

/* Moves one kind of residual of a parameter to its new home. */
static void move_state(float **own, const tac__lost *from, size_t from_at,
                       const tac__lost *to, size_t to_at, size_t count)
{
    const float *src = from && from->old ? from->old + from_at : *own;
    if (to->old && src) memcpy(to->old + to_at, src, count * sizeof *src);
    free(*own);
    *own = NULL;
}

static void move_in(tac__codec_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        tac__codec_param *p = s->places[i].param;
        const tac__codec_set *from = p->home;
        if (from == s) continue;
        move_state(&p->residual, from ? &from->lost : NULL, p->at, &s->lost,
                   s->places[i].at, p->count);
        move_state(&p->result, from ? &from->result : NULL, p->at, &s->result,
                   s->places[i].at, p->count);
        p->home = s;
        p->at = s->places[i].at;
    }
}

tac_status tac__codec_arrange(tac_req *req, tac__codec_set **out)
{
    tac_codec *c = req->codec;
    char name[32];
    tac_codec_part part;
    tac_codec_layout l = tac__codec_single(&part, req->count, req->tag, name);
    tac__codec_set *s = c->sets;
    if (req->layout)
        l = *req->layout;
    else if (req->count == 0)
        l.n = 0; /* nothing under that tag */
    while (s && !is_like(s, req->count, &l)) s = s->next;
    if (!s) TAC_TRY(make_set(c, req->count, &l, req->comm->size, &s));
    if (req->comm->size > 1) move_in(s);
    *out = s;
    return TAC_OK;
}

uint64_t tac__codec_calls(const tac__codec_set *s)
{
    uint64_t calls = s->n ? UINT64_MAX : 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->places[i].param->calls < calls)
            calls = s->places[i].param->calls;
    return calls;
}

void tac__codec_free_state(tac_codec *c)
{
    while (c->sets) {
        tac__codec_set *s = c->sets;
        c->sets = s->next;
        free_set(s, c->in_use);
    }
    for (size_t i = 0; i < c->n_params; i++) {
        free(c->params[i]->name);
        free(c->params[i]->residual);
        free(c->params[i]->result);
        free(c->params[i]->q);
        free(c->params[i]);
    }
    free(c->params);
}
