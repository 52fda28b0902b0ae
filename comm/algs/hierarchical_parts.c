/* hierarchical_parts.c: see hierarchical.h. */
#include "algs/hierarchical.h"

/* A slice is about a quarter of what a carrier has, within these. */
#define LEAST_SLICE ((size_t)256 << 10)
#define MOST_SLICE  ((size_t)1 << 20)
/* Not worth slicing. */
#define SMALL ((size_t)8 << 10)
/* ---- chunks ----------------------------------------------------------------
 */

static size_t unit_of(const tac_req *req)
{
    return tac__direct_unit(req) * (size_t)req->comm->levels->carriers;
}

typedef struct chunk {
    size_t at, slice, tail; /* elements: where; of each carrier; behind them */
} chunk;

static chunk chunk_of(const tac_req *req, tac__hier h, size_t i)
{
    const size_t L = (size_t)req->comm->levels->carriers;
    chunk k = {.at = i * h.piece * L};
    const size_t left = req->count - k.at;
    const int sliced = req->count * req->esize > SMALL;
    if (i + 1 < h.chunks)
        k.slice = h.piece;
    else if (sliced)
        k.slice = left / unit_of(req) * tac__direct_unit(req);
    k.tail = i + 1 < h.chunks ? 0 : left - k.slice * L;
    return k;
}

tac__range tac__hier_carried(const tac_req *req, tac__hier h, size_t i, int l)
{
    const chunk k = chunk_of(req, h, i);
    const int last = l == req->comm->levels->carriers - 1;
    const size_t at = k.at + k.slice * (size_t)l;
    return (tac__range){at, at + k.slice + (last ? k.tail : 0)};
}

tac__hier tac__hier_cut(const tac_req *req)
{
    const size_t L = (size_t)req->comm->levels->carriers;
    const size_t unit = tac__direct_unit(req);
    size_t bytes = req->count / L * req->esize / 4;
    if (bytes < LEAST_SLICE) bytes = LEAST_SLICE;
    if (bytes > MOST_SLICE) bytes = MOST_SLICE;
    tac__hier h = {.piece = bytes / req->esize / unit * unit};
    h.chunks = req->count / (h.piece * L);
    if (h.chunks * h.piece * L < req->count) h.chunks++;
    return h;
}

/* ---- the parts as requests -------------------------------------------------
 */

static int is_half(const tac_req *req)
{
    return req->dtype == TAC_F16 || req->dtype == TAC_BF16;
}

tac__division tac__hier_division(const tac_req *req)
{
    const int p = req->comm->size;
    if (req->op != TAC_AVG) return TAC__DIVIDE_NOT;
    if (is_half(req)) return TAC__DIVIDE_LEVELS;
    return tac_dtype_is_float(req->dtype) && (p & (p - 1)) == 0
               ? TAC__DIVIDE_BEFORE
               : TAC__DIVIDE_AFTER;
}

static tac_req part(const tac_req *req, tac_coll coll, size_t from, size_t to,
                    size_t count)
{
    tac_req want = {.coll = coll,
                    .src = req->src + from * req->esize,
                    .dst = req->dst + to * req->esize,
                    .count = count,
                    .dtype = req->dtype,
                    .op = req->op};
    if (req->op == TAC_AVG && !is_half(req)) want.op = TAC_SUM;
    return want;
}

int tac__hier_in(const tac_req *req, tac__hier h, size_t i, int k,
                 tac_req *want)
{
    const tac__levels *l = req->comm->levels;
    const chunk x = chunk_of(req, h, i);
    const size_t body = x.slice * (size_t)l->carriers;
    const size_t mine = x.at + x.slice * (size_t)l->local->rank;
    if (l->local->size != l->carriers) {
        *want = part(req, TAC_COLL_ALLREDUCE, x.at, x.at, body + x.tail);
        return k == 0;
    }
    if (body > 0 && k == 0)
        *want = part(req, TAC_COLL_REDUCE_SCATTER, x.at, mine, x.slice);
    else if (x.tail > 0 && k == (body > 0))
        *want = part(req, TAC_COLL_ALLREDUCE, x.at + body, x.at + body, x.tail);
    else
        return 0;
    return 1;
}

int tac__hier_out(const tac_req *req, tac__hier h, size_t i, int k,
                  tac_req *want)
{
    const tac__levels *l = req->comm->levels;
    const chunk x = chunk_of(req, h, i);
    const size_t body = x.slice * (size_t)l->carriers;
    const size_t mine = x.at + x.slice * (size_t)l->local->rank;
    const tac__range r = tac__hier_carried(req, h, i, k < l->carriers ? k : 0);
    if (l->local->size == 1) return 0;
    if (l->local->size != l->carriers) {
        *want =
            part(req, TAC_COLL_BROADCAST, r.begin, r.begin, r.end - r.begin);
        want->root = k;
        want->src = want->dst;
        return k < l->carriers;
    }
    if (body > 0 && k == 0) {
        *want = part(req, TAC_COLL_ALLGATHER, mine, x.at, x.slice);
        want->src = req->dst + mine * req->esize;
    } else if (x.tail > 0 && k == (body > 0)) {
        *want = part(req, TAC_COLL_BROADCAST, x.at + body, x.at + body, x.tail);
        want->src = want->dst;
        want->root = l->carriers - 1;
    } else {
        return 0;
    }
    return 1;
}

tac_req tac__hier_cross(const tac_req *req, tac__hier h, size_t i)
{
    const tac__levels *l = req->comm->levels;
    const tac__range r = tac__hier_carried(req, h, i, l->local->rank);
    tac_req want =
        part(req, TAC_COLL_ALLREDUCE, r.begin, r.begin, r.end - r.begin);
    want.src = want.dst;
    want.wire = req->wire;
    want.feedback = tac__feedback_at(&req->feedback, r.begin);
    return want;
}
