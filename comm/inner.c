/* inner.c: a collective as a part of another.
 *
 * It runs in the turn of the request that it belongs to, so it needs no place
 * in the queue: its algorithm's start, step and finish are called from there.
 * What it costs is counted on the outer request. */
#include "comm_impl.h"
#include "tacit/clock.h"

tac_status tac__inner_begin(tac_req *outer, tac_req *inner)
{
    tac_comm *c = outer->comm;
    inner->comm = c;
    inner->esize = tac_dtype_size(inner->dtype);
    inner->seq = outer->seq;
    inner->tag = outer->tag;
    inner->timeout_ms = outer->timeout_ms;
    inner->bytes_logical = inner->count * inner->esize;
    inner->stage = inner->turn = inner->fresh = 0;
    inner->pos = inner->chunk = 0;
    inner->wait_ns = inner->cpu_ns = inner->between_hosts = 0;
    inner->symmetric = inner->mine_symmetric = 0;
    inner->plan = NULL;
    inner->inner = NULL;
    TAC_TRY(tac__alg_choose(c, inner, NULL, &inner->alg));
    inner->started = 1;
    inner->started_ns = inner->polled_ns = tac_clock_ns();
    outer->inner = inner;
    outer->moved = 1;
    return inner->alg->start(inner);
}

tac_status tac__inner_step(tac_req *outer)
{
    tac_req *inner = outer->inner;
    inner->moved = 0;
    const tac_status s = inner->alg->step(inner);
    if (inner->moved) outer->moved = 1;
    if (s != TAC_INPROGRESS) tac__inner_drop(outer);
    return s;
}

void tac__inner_drop(tac_req *outer)
{
    tac_req *inner = outer->inner;
    if (!inner) return;
    inner->alg->finish(inner);
    outer->wait_ns += inner->wait_ns;
    outer->cpu_ns += inner->cpu_ns;
    outer->between_hosts += inner->between_hosts;
    outer->inner = NULL;
}
