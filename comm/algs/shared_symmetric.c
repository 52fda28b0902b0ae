/* shared_symmetric.c: allreduce without staging, in the ranks' own memory.
 *
 * Each rank reduces its slice over all ranks' sources and writes the result
 * into every rank's destination, in one pass. In place is safe, because a slice
 * is touched by its owner only. Two phases (entered, written); a rank reads n
 * and writes n bytes in all, whatever the number of ranks. */
#include "algs/shared_symmetric.h"

tac__shared_need tac__shared_need_both(const tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return (tac__shared_need){bytes, bytes};
}

void tac__shared_reduce_symmetric(tac_req *req)
{
    tac_comm *c = req->comm;
    const tac__range s =
        tac__slice(req->count, 64 / req->esize, c->size, c->rank);
    const size_t at = s.begin * req->esize;
    void **dsts = c->domain->dsts;
    const unsigned stream =
        tac__shared_stream_dst(req) ? TAC__STREAM_DST | TAC__STREAM_ALSO : 0;
    if (s.begin == s.end) return;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_src(req, r) + at;
    for (int i = 1; i < c->size; i++)
        dsts[i - 1] = tac__shared_dst(req, (c->rank + i) % c->size) + at;
    tac__reduce_into(req, req->dst + at, s.end - s.begin, dsts, c->size - 1,
                     stream);
}
