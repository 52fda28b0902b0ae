/* common.c: what algorithms on any transport share. */
#include "algs/algs.h"

#include <stdio.h>
#include <string.h>

#include "tacit/hash.h"

tac__range tac__slice(size_t n, size_t unit, int size, int r)
{
    const size_t p = (size_t)size;
    const size_t even = n / p + (n % p != 0);
    const size_t part = (even + unit - 1) / unit * unit;
    const size_t begin = tac__min(n, part * (size_t)r);
    return (tac__range){begin, tac__min(n, begin + part)};
}

void tac__reduce_into(const tac_req *req, void *dst, size_t n,
                      void *const *also, int n_also, unsigned stream)
{
    const tac_comm *c = req->comm;
    tac__reduce(c->kernels, &(tac__reduce_args){.dst = dst,
                                                .srcs = c->scratch.srcs,
                                                .p = c->size,
                                                .n = n,
                                                .dtype = req->dtype,
                                                .op = req->op,
                                                .prescale = req->prescale,
                                                .postscale = req->postscale,
                                                .also = also,
                                                .n_also = n_also,
                                                .stream = stream});
}

void tac__reduce_srcs(tac_req *req, void *dst, size_t n)
{
    const tac__work w =
        tac__work_begin(n * req->esize * (size_t)req->comm->size);
    tac__reduce_into(req, dst, n, NULL, 0, 0);
    tac__work_end(req, w);
}

static uint64_t hash_scales(const tac_req *req)
{
    const double s[2] = {req->prescale, req->postscale};
    const uint64_t h = tac_hash_bytes(TAC_HASH_INIT, s, sizeof s);
    return tac_hash_str(h, req->codec  ? "codec"
                           : req->wire ? req->wire->name
                                       : "");
}

tac__sig tac__req_sig(const tac_req *req)
{
    return (tac__sig){
        .seq = req->seq,
        .count = req->count,
        .tag = req->tag,
        .scales = hash_scales(req),
        .coll = req->coll,
        .dtype = req->dtype,
        .op = req->op,
        .root = req->root,
    };
}

static void name_sig(const tac__sig *s, char *buf, size_t bytes)
{
    snprintf(buf, bytes, "%s #%llu (%s x %llu, %s, root %d, tag %llu)",
             tac_coll_name((tac_coll)s->coll), (unsigned long long)s->seq,
             tac_dtype_name((tac_dtype)s->dtype), (unsigned long long)s->count,
             tac_op_name((tac_op)s->op), s->root, (unsigned long long)s->tag);
}

tac_status tac__sig_mismatch(tac_req *req, int r, const tac__sig *theirs)
{
    char here[128], there[128];
    const tac__sig mine = tac__req_sig(req);
    name_sig(&mine, here, sizeof here);
    name_sig(theirs, there, sizeof there);
    return tac__comm_poison_all(
        req->comm, TAC_ERR_MISMATCH,
        "ranks disagree: rank %d runs %s, rank %d runs "
        "%s%s",
        req->comm->rank, here, r, there,
        strcmp(here, there) == 0 ? " with other scales or another wire format"
                                 : "");
}
