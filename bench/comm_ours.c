/* comm_ours.c: one operation through the library that is measured. */
#include "comm_bench.h"

/* A square-ish matrix and a rest, so that low-rank codecs have one. */
static tac_codec_layout layout_of(size_t count, tac_codec_part part[2],
                                  size_t shape[2])
{
    size_t side = 1;
    while (side * side <= count / 4) side *= 2;
    shape[0] = side;
    shape[1] = count / side;
    const size_t n = shape[0] * shape[1];
    part[0] = (tac_codec_part){"matrix", 0, n, 2, shape};
    part[1] = (tac_codec_part){"rest", n, count - n, 0, NULL};
    return (tac_codec_layout){n < count ? 2 : 1, part, 1};
}

static tac_status submit(tac__comm_bench *b, const tac__case *k,
                         const tac__set *s, const tac_coll_opt *opt,
                         tac_req **req)
{
    switch (k->coll) {
    case TAC_COLL_ALLREDUCE:
        return tac_allreduce(b->comm, s->src, s->dst, k->count, k->dtype, k->op,
                             opt, req);
    case TAC_COLL_REDUCE_SCATTER:
        return tac_reduce_scatter(b->comm, s->src, s->dst, k->part, k->dtype,
                                  k->op, opt, req);
    case TAC_COLL_ALLGATHER:
        return tac_allgather(b->comm, s->src, s->dst, k->part, k->dtype, opt,
                             req);
    default:
        return tac_broadcast(b->comm, s->dst, k->count, k->dtype, 0, opt, req);
    }
}

tac_status tac__ours_run(tac__comm_bench *b, const tac__case *k,
                         const tac__set *set)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_codec_part part[2];
    size_t shape[2];
    tac_codec_layout layout;
    tac_req *req = NULL;
    opt.wire_dtype = b->plan->wire_dtype;
    opt.algorithm = b->opt->algorithm;
    opt.codec = b->codec;
    if (b->codec) {
        layout = layout_of(k->count, part, shape);
        opt.layout = &layout;
    }
    TAC_TRY(submit(b, k, set, &opt, &req));
    return tac_wait(req, 0);
}
