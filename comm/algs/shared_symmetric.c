/* shared_symmetric.c: allreduce without staging, in the ranks' own memory.
 *
 * Each rank reduces its slice over all ranks' sources and writes the result
 * into every rank's destination. In place is safe, because a slice is touched
 * by its owner only. Two phases (entered, written); a rank reads n and writes n
 * bytes in all, whatever the number of ranks. */
#include "algs/shared_symmetric.h"

#include <string.h>

tac__shared_need tac__shared_need_both(const tac_req *req)
{
    const size_t bytes = req->count * req->esize;
    return (tac__shared_need){bytes, bytes};
}

void tac__shared_reduce_symmetric(tac_req *req)
{
    tac_comm *c = req->comm;
    const tac__range s = tac__slice(req->count, req->esize, c->size, c->rank);
    const size_t at = s.begin * req->esize;
    const size_t bytes = (s.end - s.begin) * req->esize;
    if (bytes == 0) return;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__shared_src(req, r) + at;
    tac__reduce_srcs(req, req->dst + at, s.end - s.begin);
    const tac__work w = tac__work_begin(bytes * (size_t)(c->size - 1));
    for (int i = 1; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        memcpy(tac__shared_dst(req, r) + at, req->dst + at, bytes);
    }
    tac__work_end(req, w);
}
