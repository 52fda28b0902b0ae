/* lanes.c: messages under way: starting them, and seeing that they are complete
 * (see direct.h). */
#include "algs/direct.h"

#include <string.h>

#include "tacit/clock.h"

#define LONGEST_GAP_NS UINT64_C(2000000)
/* Incomplete messages looked at in a call. */
#define LOOKS 3
/* Messages looked at in one call, where all are. */
#define ALL 256

static tac__lane *send_lane(const tac_req *req, int peer)
{
    return &req->comm->scratch.lanes[peer];
}

static tac__lane *recv_lane(const tac_req *req, int peer)
{
    return &req->comm->scratch.lanes[req->comm->size + peer];
}

int tac__rank_shown(const tac_comm *c, int r)
{
    return c->outer_rank ? c->outer_rank[r] : r;
}

static tac_status report(tac_req *req, tac_status s, const char *what, int peer)
{
    const tac_comm *c = req->comm;
    if (s >= 0) return s;
    return tac__comm_poison(
        req->comm, s, "%s #%llu: %s rank %d failed on rank %d",
        tac_coll_name(req->coll), (unsigned long long)req->seq, what,
        tac__rank_shown(c, peer), tac__rank_shown(c, c->rank));
}

static void **next_op(tac_req *req, tac__lane *l)
{
    TAC_ASSERT(l->begun - l->done < TAC__LANE);
    req->moved = req->fresh = 1;
    return &l->op[l->begun++ % TAC__LANE];
}

tac_status tac__direct_send(tac_req *req, int peer, const void *buf,
                            size_t bytes)
{
    tac_comm *c = req->comm;
    void **op = next_op(req, send_lane(req, peer));
    if (c->peers[peer].host != c->peers[c->rank].host)
        req->between_hosts += bytes;
    return report(
        req,
        c->transport->isend(c->link, peer, TAC_CHANNEL_COLL, buf, bytes, op),
        "sending to", peer);
}

tac_status tac__direct_recv(tac_req *req, int peer, void *buf, size_t bytes)
{
    tac_comm *c = req->comm;
    void **op = next_op(req, recv_lane(req, peer));
    return report(
        req,
        c->transport->irecv(c->link, peer, TAC_CHANNEL_COLL, buf, bytes, op),
        "receiving from", peer);
}

unsigned tac__direct_sent(const tac_req *req, int peer)
{
    return send_lane(req, peer)->done;
}

unsigned tac__direct_got(const tac_req *req, int peer)
{
    return recv_lane(req, peer)->done;
}

static unsigned room(const tac__lane *l)
{
    return TAC__LANE - (l->begun - l->done);
}

unsigned tac__direct_send_room(const tac_req *req, int peer)
{
    return room(send_lane(req, peer));
}

unsigned tac__direct_recv_room(const tac_req *req, int peer)
{
    return room(recv_lane(req, peer));
}

/* Nothing is under way. */
void tac__direct_reset(tac_req *req)
{
    tac__scratch *s = &req->comm->scratch;
    memset(s->lanes, 0, 2 * (size_t)req->comm->size * sizeof *s->lanes);
}

tac_status tac__direct_start(tac_req *req)
{
    tac__scratch *s = &req->comm->scratch;
    tac__direct_reset(req);
    memset(s->program, 0, sizeof s->program);
    req->stage = TAC__CHECK;
    req->turn = 0;
    return TAC_OK;
}

void *tac__direct_program(const tac_req *req)
{
    return req->comm->scratch.program;
}

/* ---- looking ----------------------------------------------------------------
 */

static void count_waiting(tac_req *req, int moved)
{
    const uint64_t now = tac_clock_ns(), gap = now - req->polled_ns;
    if (!moved) req->wait_ns += gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS;
    req->polled_ns = now;
}

/* Takes what is complete off a lane; *looks counts the incomplete. */
static tac_status look(tac_req *req, int i, int *moved, int *looks)
{
    tac_comm *c = req->comm;
    tac__lane *l = &c->scratch.lanes[i];
    while (l->done != l->begun) {
        void **op = &l->op[l->done % TAC__LANE];
        const tac_status s = c->transport->test(c->link, op);
        if (s < 0)
            return report(req, s, i < c->size ? "sending to" : "receiving from",
                          i % c->size);
        if (*op) {
            ++*looks;
            return TAC_OK;
        }
        l->done++;
        *moved = 1;
    }
    return TAC_OK;
}

/* All that is under way at once, for transports where each look costs. */
static tac_status look_at_all(tac_req *req)
{
    tac_comm *c = req->comm;
    void **ops[ALL];
    int n = 0;
    for (int i = 0; i < 2 * c->size; i++) {
        tac__lane *l = &c->scratch.lanes[i];
        for (unsigned k = l->done; k != l->begun && n < ALL; k++)
            if (l->op[k % TAC__LANE]) ops[n++] = &l->op[k % TAC__LANE];
    }
    return n > 0 ? c->transport->test_many(c->link, ops, n) : TAC_OK;
}

/* Those that it found complete, without asking again. */
static void take_complete(tac_req *req, int *moved)
{
    tac_comm *c = req->comm;
    for (int i = 0; i < 2 * c->size; i++) {
        tac__lane *l = &c->scratch.lanes[i];
        for (; l->done != l->begun && !l->op[l->done % TAC__LANE]; l->done++)
            *moved = 1;
    }
}

/* In turn, from where the last call stopped: a few that are incomplete a call
 * are enough. */
static tac_status look_in_turn(tac_req *req, int *moved)
{
    const int n = 2 * req->comm->size;
    int looks = 0;
    if (req->comm->transport->test_many) {
        const tac_status s = look_at_all(req);
        take_complete(req, moved);
        if (s == TAC_OK) return TAC_OK; /* else: which one? */
    }
    for (int k = 0, i = req->turn % n; k < n && looks < LOOKS; k++) {
        TAC_TRY(look(req, i, moved, &looks));
        i = i + 1 < n ? i + 1 : 0;
        req->turn = i;
    }
    return TAC_OK;
}

int tac__direct_any_open(const tac_req *req)
{
    const tac_comm *c = req->comm;
    for (int i = 0; i < 2 * c->size; i++)
        if (c->scratch.lanes[i].done != c->scratch.lanes[i].begun) return 1;
    return 0;
}

/* What has just been started is not looked at at once: it can hardly be
 * complete, and the caller may have better things to do. */
tac_status tac__direct_poll(tac_req *req)
{
    int moved = req->fresh;
    req->fresh = 0;
    if (!moved) TAC_TRY(look_in_turn(req, &moved));
    count_waiting(req, moved);
    if (moved) req->moved = 1;
    return TAC_OK;
}

tac_status tac__direct_wait(tac_req *req)
{
    TAC_TRY(tac__direct_poll(req));
    if (tac__direct_any_open(req)) return TAC_INPROGRESS;
    req->moved = 1;
    return TAC_OK;
}

/* ---- ending -----------------------------------------------------------------
 */

void tac__direct_finish(tac_req *req)
{
    tac_comm *c = req->comm;
    for (int i = 0; i < 2 * c->size; i++) {
        tac__lane *l = &c->scratch.lanes[i];
        for (; l->done != l->begun; l->done++)
            if (l->op[l->done % TAC__LANE])
                c->transport->cancel(c->link, &l->op[l->done % TAC__LANE]);
    }
}

int tac__direct_waits_for(const tac_req *req, int r)
{
    if (req->comm->domain && req->stage < TAC__DIRECT_BEGIN)
        return !tac__domain_has(req->comm->domain, r);
    const tac__lane *l = recv_lane(req, r);
    return l->done != l->begun;
}
