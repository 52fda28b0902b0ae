/* coll.c: the collectives that callers see: describe, check, submit. */
#include <string.h>

#include "coll_check.h"

tac_status tac__coll_submit(tac_comm *c, tac_req *want, const tac_coll_opt *opt,
                            tac_req **out)
{
    const tac_coll_opt o = tac__opt_fill(opt);
    if (!out) return tac_fail(c->ctx, TAC_ERR_ARG, "a collective needs a req");
    TAC_TRY(tac__comm_status(c));
    want->comm = c;
    want->esize = tac_dtype_size(want->dtype);
    TAC_TRY(tac__check_buffers(c, want));
    TAC_TRY(tac__check_opt(c, want, &o));
    if (!want->wire) want->wire = tac__wire_of(o.wire_dtype);
    want->codec = o.codec;
    want->layout = o.layout;
    want->prescale = o.prescale;
    want->postscale = o.postscale;
    want->tag = o.tag;
    want->timeout_ms = o.timeout_ms > 0 ? o.timeout_ms : c->config.timeout_ms;
    TAC_TRY(tac__alg_choose(c, want, o.algorithm, &want->alg));

    pthread_mutex_lock(&c->lock);
    tac__comm_listen(c);
    const tac_status s = tac__comm_status(c);
    tac_req *req = s == TAC_OK ? tac__req_new(c, want) : NULL;
    if (req) return tac__req_submit(req, out);
    pthread_mutex_unlock(&c->lock);
    if (s < 0) return s;
    return tac_fail(c->ctx, TAC_ERR_NOMEM, "no memory for a request");
}

tac_status tac_allreduce(tac_comm *c, const void *src, void *dst, size_t count,
                         tac_dtype dtype, tac_op op, const tac_coll_opt *opt,
                         tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_ALLREDUCE,
                    .src = src ? src : dst,
                    .dst = dst,
                    .count = count,
                    .dtype = dtype,
                    .op = op};
    want.bytes_logical = count * tac_dtype_size(dtype);
    return tac__coll_submit(c, &want, opt, req);
}

tac_status tac_reduce_scatter(tac_comm *c, const void *src, void *dst,
                              size_t recvcount, tac_dtype dtype, tac_op op,
                              const tac_coll_opt *opt, tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_REDUCE_SCATTER,
                    .src = src,
                    .dst = dst,
                    .count = recvcount,
                    .dtype = dtype,
                    .op = op};
    want.bytes_logical = recvcount * tac_dtype_size(dtype) * (size_t)c->size;
    return tac__coll_submit(c, &want, opt, req);
}

tac_status tac_allgather(tac_comm *c, const void *src, void *dst,
                         size_t sendcount, tac_dtype dtype,
                         const tac_coll_opt *opt, tac_req **req)
{
    const size_t bytes = sendcount * tac_dtype_size(dtype);
    tac_req want = {.coll = TAC_COLL_ALLGATHER,
                    .src = src,
                    .dst = dst,
                    .count = sendcount,
                    .dtype = dtype};
    if (!src && dst) want.src = want.dst + bytes * (size_t)c->rank;
    want.bytes_logical = bytes;
    return tac__coll_submit(c, &want, opt, req);
}

tac_status tac_broadcast(tac_comm *c, void *buf, size_t count, tac_dtype dtype,
                         int root, const tac_coll_opt *opt, tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_BROADCAST,
                    .src = buf,
                    .dst = buf,
                    .count = count,
                    .dtype = dtype,
                    .root = root};
    if (root == c->rank) want.bytes_logical = count * tac_dtype_size(dtype);
    return tac__coll_submit(c, &want, opt, req);
}

tac_status tac_barrier(tac_comm *c, const tac_coll_opt *opt, tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_BARRIER, .dtype = TAC_U8};
    return tac__coll_submit(c, &want, opt, req);
}
