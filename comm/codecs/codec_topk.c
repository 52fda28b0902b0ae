/* codec_topk.c: of each parameter the elements of the largest magnitude, as
 * (index, value).
 *
 * Steps: add the residual, select, all-gather, add the ranks' values in rank
 * order. Bytes a rank contributes: 8 k for each parameter; an all-gather brings
 * p times that to every rank, so this pays while p k is well below n. Scratch:
 * 8 k (p + 1) bytes, and the residuals; with a warm-up 2 n (p + 1). Parameters
 * below `min` elements are sent whole, as values without indices, in the same
 * message.
 *
 * The message: the indices of all parameters, then the values in their order,
 * then the parameters that are sent whole. References: Aji and Heafield,
 * "Sparse Communication for Distributed Gradient Descent", EMNLP 2017; the
 * warm-up: Lin et al., "Deep Gradient Compression", ICLR 2018. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"

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

static size_t chosen(const tac__codec_spec *s, size_t n, uint64_t call)
{
    const size_t k = (size_t)(share(s, call) * (double)n + 0.5);
    if (n == 0) return 0;
    return k < 1 ? 1 : k < n ? k : n;
}

static int is_whole(const tac__codec_spec *s, size_t n)
{
    return n < s->min;
}

static size_t bytes(const tac__codec_spec *s, const tac__extents *e,
                    uint64_t call)
{
    return is_whole(s, e->count)
               ? sizeof(float) * e->count
               : (sizeof(uint32_t) + sizeof(float)) * chosen(s, e->count, call);
}

/* Its message and those of all ranks. */
static size_t room(const tac__codec_spec *s, const tac__extents *e, int size)
{
    return bytes(s, e, 0) * ((size_t)size + 1);
}

/* What an arrangement sends: n_values indexed elements, n_sums whole ones. */
static size_t message_bytes(const tac__codec_set *set)
{
    return (sizeof(uint32_t) + sizeof(float)) * set->n_values +
           sizeof(float) * set->n_sums;
}

static void measure(const tac_codec *c, tac__codec_set *set, uint64_t call)
{
    set->n_values = set->n_sums = 0;
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = set->places[i].param->count;
        if (is_whole(&c->spec, n))
            set->n_sums += n;
        else
            set->n_values += chosen(&c->spec, n, call);
    }
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

typedef struct message {
    uint32_t *index;
    float *value, *whole;
} message;

static message message_at(const tac__codec_set *set, char *at)
{
    message m = {.index = (uint32_t *)(void *)at};
    m.value = (float *)(void *)(m.index + set->n_values);
    m.whole = m.value + set->n_values;
    return m;
}

/* Writes what is sent and takes it out of what is left. */
static void pack(const tac_codec *c, tac__codec_set *set, uint64_t call)
{
    message m = message_at(set, (char *)set->values);
    float *left = set->lost.next;
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = set->places[i].param->count, at = set->places[i].at;
        if (n == 0) continue;
        if (is_whole(&c->spec, n)) {
            memcpy(m.whole, left + at, n * sizeof *left);
            memset(left + at, 0, n * sizeof *left);
            m.whole += n;
            continue;
        }
        const size_t k = chosen(&c->spec, n, call);
        tac__topk_select(left + at, n, k, at, m.index, m.value);
        for (size_t j = 0; j < k; j++) left[m.index[j]] = 0;
        m.index += k;
        m.value += k;
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

/* Indices come from peers: a wrong one must not write elsewhere. */
static tac_status add_message(tac_req *req, const tac__codec_set *set, int r)
{
    const tac_codec *c = req->codec;
    float *dst = (float *)(void *)req->dst;
    message m = message_at(set, set->all + (size_t)r * message_bytes(set));
    for (size_t j = 0; j < set->n_values; j++) {
        if (m.index[j] >= set->count)
            return tac_fail(c->ctx, TAC_ERR_INTERNAL,
                            "codec %s: rank %d sent element %u of %zu", c->text,
                            r, m.index[j], set->count);
        dst[m.index[j]] += m.value[j];
    }
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = set->places[i].param->count;
        if (!is_whole(&c->spec, n)) continue;
        req->comm->kernels->combine[TAC_SUM](dst + set->places[i].at, m.whole,
                                             n);
        m.whole += n;
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
    .options = "min=N warmup=N",
    .feedback = 1,
    .own_feedback = 1,
    .bytes = bytes,
    .room = room,
    .open = open,
    .step = step,
};
