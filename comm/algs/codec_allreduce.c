/* codec_allreduce.c: "codec": an allreduce as a program of inner requests,
 * which the codec's method writes. Any algorithm may be underneath.
 *
 * The first call of an arrangement of parameters compares the codecs of all
 * ranks (one all-gather of 160 bytes a rank). Calls before `start`, and those
 * in a world of one, are one inner allreduce of f32. At the end the result is
 * read once: if it is finite on this rank it is so on all, and what was lost
 * becomes the residual. */
#include <string.h>

#include "algs/algs.h"
#include "codecs/codec_impl.h"
#include "tacit/hash.h"

enum { COMPARE = 0, COMPARED, PLAIN, CODED };

static int applicable(const tac_comm *c, const tac_req *req)
{
    (void)c;
    return req->codec != NULL;
}

/* A codec runs in no other way. */
static double cost(const tac_comm *c, const tac_req *req)
{
    (void)c, (void)req;
    return -1;
}

/* The codec's words, so that they are the communicator's error on all ranks. */
static tac_status cannot_arrange(tac_req *req, tac_status s)
{
    char text[400], what[64];
    tac_context_error(req->codec->ctx, text, sizeof text);
    tac__req_describe(req, what, sizeof what);
    return tac__comm_poison(req->comm, s, "%s on rank %d: %s", what,
                            req->comm->rank, text);
}

/* A call of no elements sends nothing that a codec could change. */
static int is_plain(const tac_req *req, uint64_t calls)
{
    return req->comm->size == 1 || req->count == 0 ||
           calls < req->codec->spec.start;
}

static tac_status start(tac_req *req)
{
    tac_codec *c = req->codec;
    tac__codec_set *set = NULL;
    const tac_status s = tac__codec_arrange(req, &set);
    if (s < 0) return cannot_arrange(req, s);
    const uint64_t calls = tac__codec_calls(set);
    const int plain = is_plain(req, calls);
    req->plan = set;
    req->bytes_wire = plain ? req->bytes_logical
                            : tac__codec_bytes(c, req->count, req->layout,
                                               calls - c->spec.start);
    req->stage = set->agreed || req->comm->size == 1 ? PLAIN : COMPARE;
    if (req->stage == PLAIN && !plain) req->stage = CODED;
    return TAC_OK;
}

/* ---- comparing ------------------------------------------------------------
 */

static tac_status begin_compare(tac_req *req)
{
    tac_codec *c = req->codec;
    const tac__codec_set *set = req->plan;
    tac__codec_card *mine = &c->cards[req->comm->size];
    memset(mine, 0, sizeof *mine);
    mine->spec = tac_hash_str(TAC_HASH_INIT, c->text);
    mine->set = set->hash;
    mine->calls = tac__codec_calls(set);
    mine->count = req->count;
    memcpy(mine->text, c->text, sizeof mine->text);
    req->stage = COMPARED;
    c->inner = (tac_req){.coll = TAC_COLL_ALLGATHER,
                         .src = (const char *)mine,
                         .dst = (char *)c->cards,
                         .count = sizeof *mine,
                         .dtype = TAC_U8,
                         .prescale = 1,
                         .postscale = 1};
    TAC_TRY(tac__inner_begin(req, &c->inner));
    return TAC_INPROGRESS;
}

static tac_status differ(tac_req *req, int r)
{
    const tac__codec_card *a = &req->codec->cards[0];
    const tac__codec_card *b = &req->codec->cards[r];
    char what[64];
    tac__req_describe(req, what, sizeof what);
    if (a->spec != b->spec)
        return tac__comm_poison(req->comm, TAC_ERR_MISMATCH,
                                "%s: rank %d compresses with %.127s, rank 0 "
                                "with %.127s; give every rank the same codec",
                                what, r, b->text, a->text);
    if (a->calls != b->calls)
        return tac__comm_poison(req->comm, TAC_ERR_MISMATCH,
                                "%s: rank %d's codec has seen %llu calls, rank "
                                "0's %llu; load saved state on all ranks or on "
                                "none",
                                what, r, (unsigned long long)b->calls,
                                (unsigned long long)a->calls);
    return tac__comm_poison(req->comm, TAC_ERR_MISMATCH,
                            "%s: codec %.127s: rank %d's buffer of %llu "
                            "elements has other parameters than rank 0's of "
                            "%llu; give every rank the same layout",
                            what, a->text, r, (unsigned long long)b->count,
                            (unsigned long long)a->count);
}

static tac_status compare(tac_req *req)
{
    const tac__codec_card *cards = req->codec->cards;
    tac__codec_set *set = req->plan;
    for (int r = 1; r < req->comm->size; r++)
        if (memcmp(&cards[r], &cards[0], sizeof *cards) != 0)
            return differ(req, r);
    set->agreed = 1;
    req->stage = is_plain(req, tac__codec_calls(set)) ? PLAIN : CODED;
    return TAC_OK;
}

/* ---- the call -------------------------------------------------------------
 */

static tac_status step_plain(tac_req *req)
{
    tac_codec *c = req->codec;
    if (req->turn++ > 0) return TAC_OK;
    c->inner = tac__codec_inner_like(req);
    TAC_TRY(tac__inner_begin(req, &c->inner));
    return TAC_INPROGRESS;
}

static void swap(tac__lost *l)
{
    float *old = l->old;
    if (!old) return;
    l->old = l->next;
    l->next = old;
}

static int is_finite(const tac_req *req)
{
    const float *x = (const float *)(const void *)req->dst;
    return req->comm->codec_kernels->max_bits(x, req->count) < TAC__F32_INF;
}

static void keep_state(tac_req *req)
{
    tac_codec *c = req->codec;
    tac__codec_set *set = req->plan;
    if (!is_finite(req)) {
        c->stats.calls_not_finite++;
        return;
    }
    swap(&set->lost);
    swap(&set->result);
    if (c->spec.method->commit) c->spec.method->commit(c, set);
}

static void count(tac_req *req)
{
    tac_codec *c = req->codec;
    tac__codec_set *set = req->plan;
    if (req->stage != PLAIN)
        keep_state(req);
    else if (req->count > 0 || req->comm->size == 1)
        c->stats.calls_plain++;
    c->stats.calls++;
    c->stats.bytes_before += req->bytes_logical;
    c->stats.bytes_after += req->bytes_wire;
    for (size_t i = 0; i < set->n; i++) set->places[i].param->calls++;
}

static tac_status advance(tac_req *req)
{
    if (req->stage == COMPARE) return begin_compare(req);
    if (req->stage == COMPARED) TAC_TRY(compare(req));
    const tac_status s = req->stage == PLAIN
                             ? step_plain(req)
                             : req->codec->spec.method->step(req);
    if (s == TAC_OK) count(req);
    return s;
}

/* An inner request that has just begun is looked at once. */
static tac_status step(tac_req *req)
{
    tac_status s;
    do {
        s = req->inner ? tac__inner_step(req) : TAC_OK;
        if (s == TAC_OK)
            s = advance(req);
        else
            return s;
    } while (s == TAC_INPROGRESS);
    return s;
}

static void finish(tac_req *req)
{
    if (req->inner) req->codec->in_use = 1; /* it has failed half-way */
    tac__inner_drop(req);
}

static int waits_for(const tac_req *req, int r)
{
    const tac_req *inner = req->inner;
    return inner ? inner->alg->waits_for(inner, r) : 0;
}

const tac__alg tac__alg_codec_allreduce = {
    .name = "codec",
    .doc = "what a codec does, in other collectives",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = finish,
    .waits_for = waits_for,
};
