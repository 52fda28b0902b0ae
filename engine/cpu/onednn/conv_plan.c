/* conv_plan.c: making, finding and freeing plans of convolutions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/onednn/conv.h"

static dnnl_status_t make_chunks(tac__onednn *o, tac__conv_plan *plan)
{
    const size_t n = plan->key.spec.d.n;
    const tac__conv_kind kind = plan->key.spec.kind;
    for (size_t i = 0; i < plan->count; ++i) {
        tac__conv_chunk *c = &plan->chunks[i];
        tac__conv_spec spec = plan->key.spec;
        size_t bytes = 0;
        c->begin = n * i / plan->count;
        c->end = n * (i + 1) / plan->count;
        spec.d.n = c->end - c->begin;
        const dnnl_status_t s = tac__conv_chunk_make(
            o->engine, &spec,
            i ? tac__conv_chunk_weights(&plan->chunks[0], kind) : NULL, c,
            &bytes);
        if (s != dnnl_success) return s;
        if (bytes > plan->bytes) plan->bytes = bytes;
    }
    return dnnl_success;
}

static tac_status fill_plan(tac__onednn *o, tac__conv_plan *plan)
{
    const int before = tac__omp_enter(&o->omp);
    const dnnl_status_t s = make_chunks(o, plan);
    tac__omp_leave(&o->omp, before);
    plan->unsupported = s == dnnl_unimplemented || s == dnnl_invalid_arguments;
    if (s == dnnl_success || plan->unsupported) return TAC_OK;
    return tac__onednn_fail(o, s, "planning a convolution");
}

void tac__conv_plans_destroy(tac__conv_plan *plan)
{
    while (plan) {
        tac__conv_plan *next = plan->next;
        for (size_t i = 0; i < plan->count; ++i)
            tac__conv_chunk_destroy(&plan->chunks[i]);
        free(plan->chunks);
        free(plan);
        plan = next;
    }
}

static tac_status make_plan(tac__onednn *o, const tac__conv_key *key,
                            tac__conv_plan **out)
{
    tac__conv_plan *plan = calloc(1, sizeof *plan);
    tac__conv_chunk *chunks = calloc(key->chunks, sizeof *chunks);
    if (!plan || !chunks) {
        free(plan);
        free(chunks);
        return tac_fail(o->ctx, TAC_ERR_NOMEM, "no memory for a plan");
    }
    plan->key = *key;
    plan->count = key->chunks;
    plan->chunks = chunks;
    const tac_status s = fill_plan(o, plan);
    if (s < 0)
        tac__conv_plans_destroy(plan);
    else
        *out = plan;
    return s;
}

/* FNV-1a over the key's words. */
static size_t bucket_of(const tac__conv_key *key)
{
    const tac_conv2d *d = &key->spec.d;
    const size_t words[] = {
        d->n,   d->h,        d->w,      d->ic,
        d->oc,  d->kh,       d->kw,     (size_t)key->spec.kind,
        d->pad, key->chunks, d->stride, (size_t)key->spec.in};
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        h = (h ^ words[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h >> 32) % TAC__PLAN_BUCKETS;
}

static int same_key(const tac__conv_key *a, const tac__conv_key *b)
{
    const tac__conv_spec *s = &a->spec, *t = &b->spec;
    return a->chunks == b->chunks && s->kind == t->kind && s->bias == t->bias &&
           s->relu == t->relu && s->accumulate == t->accumulate &&
           s->in == t->in && s->out == t->out &&
           memcmp(&s->d, &t->d, sizeof s->d) == 0; /* size_t: no padding */
}

tac_status tac__conv_plan_get(tac__onednn *o, const tac__conv_spec *spec,
                              size_t chunks, const tac__conv_plan **out)
{
    const tac__conv_key key = {*spec, chunks};
    tac__conv_plan **bucket = &o->plans[bucket_of(&key)];
    tac__conv_plan *plan = *bucket;
    while (plan && !same_key(&plan->key, &key)) plan = plan->next;
    if (!plan) {
        TAC_TRY(make_plan(o, &key, &plan));
        plan->next = *bucket;
        *bucket = plan;
    }
    *out = plan;
    return TAC_OK;
}
