/* codec_topk.c: of each parameter the elements of the largest magnitude, as
 * (index, value).
 *
 * Steps: add the residual, select, all-gather, add the ranks' values in rank
 * order. Bytes a rank contributes: a record for each parameter (topk.h); an
 * all-gather brings p times that to every rank, so this pays while p k is well
 * below n. Scratch: p + 1 messages, and the residuals; with a warm-up messages
 * are larger. Parameters below `min` elements are sent whole, as values without
 * indices, in the same message.
 *
 * What rounding to few bits loses stays in the residual with what is not sent.
 * References: Aji and Heafield, "Sparse Communication for Distributed Gradient
 * Descent", EMNLP 2017; the warm-up: Lin et al., "Deep Gradient Compression",
 * ICLR 2018; chunks with short indices and two bits: SparseLoCo,
 * arXiv:2508.15706. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"
#include "codecs/topk.h"

/* The share that is sent in this call: in equal parts of the warm-up 1/4, 1/16,
 * 1/64, ... as long as that is more than asked for. */
static double share(const tac__codec_spec *s, uint64_t call)
{
    uint64_t stages = 0, stage;
    double f = 0.25;
    if (call >= s->warmup) return s->fraction;
    for (; f > s->fraction; f /= 4) stages++;
    if (stages == 0) return s->fraction;
    f = 0.25;
    for (stage = call * stages / s->warmup; stage > 0; stage--) f /= 4;
    return f;
}

static unsigned bits_below(size_t n)
{
    unsigned bits = 0;
    while ((size_t)1 << bits < n) bits++;
    return bits;
}

/* How a parameter of n elements is sent. */
static tac__topk record_of(const tac__codec_spec *s, size_t n, uint64_t call)
{
    return (tac__topk){.n = n,
                       .chunk = s->chunk ? s->chunk : n,
                       .share = share(s, call),
                       .index_bits = s->chunk ? bits_below(s->chunk) : 32,
                       .value_bits = s->bits};
}

static int is_whole(const tac__codec_spec *s, size_t n)
{
    return n < s->min;
}

/* Everything is a row of 32-bit words. */
static size_t words(const tac__codec_spec *s, size_t n, uint64_t call)
{
    const tac__topk t = record_of(s, n, call);
    return is_whole(s, n) ? n : tac__topk_words(&t);
}

static size_t bytes(const tac__codec_spec *s, const tac__extents *e,
                    uint64_t call)
{
    return sizeof(uint32_t) * words(s, e->count, call);
}

/* Its message and those of all ranks. */
static size_t room(const tac__codec_spec *s, const tac__extents *e, int size)
{
    return bytes(s, e, 0) * ((size_t)size + 1);
}

static size_t message_bytes(const tac__codec_set *set)
{
    return sizeof(uint32_t) * set->n_values;
}

static void measure(const tac_codec *c, tac__codec_set *set, uint64_t call)
{
    set->n_values = 0;
    for (size_t i = 0; i < set->n; i++)
        set->n_values += words(&c->spec, set->places[i].param->count, call);
}

/* Room for the longest message, that of the first call. */
static tac_status open(tac_codec *c, tac__codec_set *set, int size)
{
    if (set->count > UINT32_MAX)
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "codec %s: %zu elements are more than its indices "
                        "reach; use smaller buckets",
                        c->text, set->count);
    measure(c, set, 0);
    const size_t one = message_bytes(set);
    set->values = malloc(one + 1);
    set->all = malloc(one * (size_t)size + 1);
    if (set->values && set->all) return TAC_OK;
    return tac_fail(c->ctx, TAC_ERR_NOMEM,
                    "codec %s: no memory for %zu bytes from each of %d ranks",
                    c->text, one, size);
}

/* ---- out ------------------------------------------------------------------
 */

/* Writes what is sent and takes it out of what is left. */
static void pack(const tac_codec *c, tac__codec_set *set, uint64_t call)
{
    uint32_t *to = (uint32_t *)(void *)set->values;
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = set->places[i].param->count;
        float *left = set->lost.next + set->places[i].at;
        const tac__topk t = record_of(&c->spec, n, call);
        if (n == 0) continue;
        if (is_whole(&c->spec, n)) {
            memcpy(to, left, n * sizeof *left);
            memset(left, 0, n * sizeof *left);
        } else {
            tac__topk_pack(&t, left, to);
        }
        to += words(&c->spec, n, call);
    }
}

static void unscale(const tac_req *req, tac__codec_set *set)
{
    const float s = tac__codec_scale(req);
    if (s != 1.0f) req->comm->kernels->divide(set->lost.next, s, set->count);
}

static tac_status send(tac_req *req, tac__codec_set *set)
{
    tac_codec *c = req->codec;
    const uint64_t call = tac__codec_calls(set) - c->spec.start;
    const tac__work w = tac__work_begin(req->count * sizeof(float));
    measure(c, set, call);
    const size_t one = message_bytes(set);
    tac__codec_prepare(req, set);
    pack(c, set, call);
    unscale(req, set);
    tac__work_end(req, w);
    c->inner = (tac_req){.coll = TAC_COLL_ALLGATHER,
                         .src = (const char *)set->values,
                         .dst = set->all,
                         .count = one,
                         .dtype = TAC_U8,
                         .prescale = 1,
                         .postscale = 1};
    TAC_TRY(tac__inner_begin(req, &c->inner));
    return TAC_INPROGRESS;
}

/* ---- in -------------------------------------------------------------------
 */

static tac_status not_there(const tac_codec *c, int r,
                            const tac__codec_param *p)
{
    return tac_fail(c->ctx, TAC_ERR_INTERNAL,
                    "codec %s: rank %d sent an element beyond the %zu of '%s'",
                    c->text, r, p->count, p->name);
}

static tac_status add_message(tac_req *req, const tac__codec_set *set, int r)
{
    const tac_codec *c = req->codec;
    const uint64_t call = tac__codec_calls(set) - c->spec.start;
    const char *from = set->all + (size_t)r * message_bytes(set);
    for (size_t i = 0; i < set->n; i++) {
        const tac__codec_param *p = set->places[i].param;
        const tac__topk t = record_of(&c->spec, p->count, call);
        const void *record = from;
        float *dst = (float *)(void *)req->dst + set->places[i].at;
        if (is_whole(&c->spec, p->count))
            req->comm->kernels->combine[TAC_SUM](dst, record, p->count);
        else if (!tac__topk_add(&t, record, dst))
            return not_there(c, r, p);
        from += sizeof(uint32_t) * words(&c->spec, p->count, call);
    }
    return TAC_OK;
}

static tac_status receive(tac_req *req, const tac__codec_set *set)
{
    const tac_comm *c = req->comm;
    float *dst = (float *)(void *)req->dst;
    const tac__work w = tac__work_begin(req->count * sizeof *dst);
    memset(dst, 0, req->count * sizeof *dst);
    for (int r = 0; r < c->size; r++) TAC_TRY(add_message(req, set, r));
    if (req->op == TAC_AVG) c->kernels->divide(dst, (float)c->size, req->count);
    if (req->postscale != 1.0)
        c->kernels->scale(dst, (float)req->postscale, req->count);
    tac__work_end(req, w);
    return TAC_OK;
}

static tac_status step(tac_req *req)
{
    tac__codec_set *set = req->plan;
    return req->turn++ == 0 ? send(req, set) : receive(req, set);
}

const tac__codec_method tac__codec_topk = {
    .name = "topk",
    .doc = "the largest elements of each parameter",
    .argument = "F",
    .options = "bits=N chunk=N min=N warmup=N",
    .feedback = 1,
    .own_feedback = 1,
    .bytes = bytes,
    .room = room,
    .open = open,
    .step = step,
};
