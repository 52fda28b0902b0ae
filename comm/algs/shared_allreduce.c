/* shared_allreduce.c: "sliced": staged allreduce in shared memory.
 *
 * For each chunk (one slot): copy in; wait for all; reduce this rank's slice of
 * all slots, in rank order, into its own slot; wait for all; copy all slices
 * out. Two phases a chunk. Bytes a rank: reads 3 n, writes 2 n + n/p. Two slots
 * alternate, so that nobody waits for slow readers of the chunk before.
 * Rounding: one, at the end, after accumulation in f32 (f64, 64-bit integers).
 */
#include <string.h>

#include "algs/shared_symmetric.h"

enum { OUT = TAC__DIRECT + 1 };

static double cost(const tac_comm *c, const tac_req *req)
{
    (void)c;
    return tac__shared_cost(2, 3.0 * (double)(req->count * req->esize));
}

static void reduce_slice(tac_req *req)
{
    tac_comm *c = req->comm;
    const tac__range s = tac__slice(req->chunk, req->esize, c->size, c->rank);
    const size_t at = s.begin * req->esize;
    if (s.begin == s.end) return;
    for (int r = 0; r < c->size; r++)
        c->scratch.srcs[r] = tac__domain_slot(c->domain, r) + at;
    tac__reduce_srcs(req, tac__domain_slot(c->domain, c->rank) + at,
                     s.end - s.begin);
}

/* Starting with this rank's own slice, so that ranks read different ones. */
static void copy_out(tac_req *req)
{
    tac_comm *c = req->comm;
    char *dst = req->dst + req->pos * req->esize;
    const tac__work w = tac__work_begin(req->chunk * req->esize);
    for (int i = 0; i < c->size; i++) {
        const int r = (c->rank + i) % c->size;
        const tac__range s = tac__slice(req->chunk, req->esize, c->size, r);
        if (s.begin == s.end) continue;
        memcpy(dst + s.begin * req->esize,
               tac__domain_slot(c->domain, r) + s.begin * req->esize,
               (s.end - s.begin) * req->esize);
    }
    tac__work_end(req, w);
}

static tac_status start(tac_req *req)
{
    return tac__shared_enter(req, tac__shared_need_both(req),
                             tac__shared_stage_src);
}

/* The chunk is staged on all ranks. */
static void reduce(tac_req *req)
{
    if (req->symmetric)
        tac__shared_reduce_symmetric(req);
    else
        reduce_slice(req);
    tac__shared_publish(req, req->symmetric ? TAC__DIRECT : OUT);
}

static tac_status next_chunk(tac_req *req)
{
    copy_out(req);
    tac__shared_next_slot(req);
    req->pos += req->chunk;
    if (req->pos == req->count) return TAC_OK;
    tac__shared_stage_src(req);
    tac__shared_publish(req, TAC__STAGED);
    return TAC_INPROGRESS;
}

static tac_status step(tac_req *req)
{
    if (req->stage < TAC__OPEN) {
        const tac_status s = tac__shared_open(req, tac__shared_stage_src);
        if (s != TAC_OK) return s;
        if (req->count == 0) {
            tac__shared_next_slot(req);
            return TAC_OK;
        }
        reduce(req);
    }
    while (tac__shared_arrived(req)) {
        if (req->stage == TAC__DIRECT) {
            tac__shared_next_slot(req);
            return TAC_OK;
        }
        if (req->stage == TAC__STAGED)
            reduce(req);
        else if (next_chunk(req) == TAC_OK)
            return TAC_OK;
    }
    return TAC_INPROGRESS;
}

const tac__alg tac__alg_shared_allreduce = {
    .name = "sliced",
    .doc = "shared memory: each rank reduces a slice, two phases a chunk",
    .coll = TAC_COLL_ALLREDUCE,
    .applicable = tac__shared_applicable,
    .cost = cost,
    .start = start,
    .step = step,
    .finish = tac__shared_finish,
    .waits_for = tac__shared_waits_for,
};
