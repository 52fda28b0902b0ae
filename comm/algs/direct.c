/* direct.c: messages with all peers (see direct.h). */
#include "algs/direct.h"

#include <string.h>

#include "tacit/clock.h"

#define LONGEST_GAP_NS UINT64_C(2000000)

static void **send_op(const tac_req *req, int peer)
{
    return &req->comm->scratch.ops[peer];
}

static void **recv_op(const tac_req *req, int peer)
{
    return &req->comm->scratch.ops[req->comm->size + peer];
}

static tac_status report(tac_req *req, tac_status s, const char *what, int peer)
{
    if (s >= 0) return s;
    return tac__comm_poison(req->comm, s,
                            "%s #%llu: %s rank %d failed on rank "
                            "%d",
                            tac_coll_name(req->coll),
                            (unsigned long long)req->seq, what, peer,
                            req->comm->rank);
}

tac_status tac__direct_send(tac_req *req, int peer, const void *buf,
                            size_t bytes)
{
    tac_comm *c = req->comm;
    if (c->peers[peer].host != c->peers[c->rank].host)
        req->between_hosts += bytes;
    req->moved = req->fresh = 1;
    return report(req,
                  c->transport->isend(c->link, peer, TAC_CHANNEL_COLL, buf,
                                      bytes, send_op(req, peer)),
                  "sending to", peer);
}

tac_status tac__direct_recv(tac_req *req, int peer, void *buf, size_t bytes)
{
    tac_comm *c = req->comm;
    req->moved = req->fresh = 1;
    return report(req,
                  c->transport->irecv(c->link, peer, TAC_CHANNEL_COLL, buf,
                                      bytes, recv_op(req, peer)),
                  "receiving from", peer);
}

static void count_waiting(tac_req *req, int moved)
{
    const uint64_t now = tac_clock_ns(), gap = now - req->polled_ns;
    if (!moved) req->wait_ns += gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS;
    req->polled_ns = now;
}

/* Tests operations in turn, from where the last call stopped, up to the first
 * that is not complete. Testing an incomplete one lets MPI make progress for
 * all, and where cores are shared also lets it yield the core: once a call is
 * enough. */
static tac_status test_in_turn(tac_req *req, int *moved)
{
    tac_comm *c = req->comm;
    const int n = 2 * c->size;
    for (int k = 0; k < n; k++) {
        const int i = (req->turn + k) % n;
        void **op = &c->scratch.ops[i];
        if (!*op) continue;
        const tac_status s = c->transport->test(c->link, op);
        if (s < 0)
            return report(req, s, i < c->size ? "sending to" : "receiving from",
                          i % c->size);
        if (*op) {
            req->turn = (i + 1) % n;
            return TAC_OK;
        }
        *moved = 1;
    }
    return TAC_OK;
}

static int any_open(const tac_req *req)
{
    const tac_comm *c = req->comm;
    for (int i = 0; i < 2 * c->size; i++)
        if (c->scratch.ops[i]) return 1;
    return 0;
}

/* What has just been started is not looked at at once: it can hardly be
 * complete, and the caller may have better things to do. */
tac_status tac__direct_wait(tac_req *req)
{
    int moved = req->fresh;
    req->fresh = 0;
    if (!moved) TAC_TRY(test_in_turn(req, &moved));
    const int open = any_open(req);
    count_waiting(req, moved);
    if (moved || !open) req->moved = 1;
    return open ? TAC_INPROGRESS : TAC_OK;
}

tac_status tac__direct_exchange(tac_req *req, tac__piece_fn *piece)
{
    const tac_comm *c = req->comm;
    for (int i = 1; i < c->size; i++) {
        const int from = (c->rank - i + c->size) % c->size;
        const tac__piece p = piece(req, from);
        if (p.recv_bytes > 0)
            TAC_TRY(tac__direct_recv(req, from, p.recv, p.recv_bytes));
    }
    for (int i = 1; i < c->size; i++) {
        const int to = (c->rank + i) % c->size;
        const tac__piece p = piece(req, to);
        if (p.send_bytes > 0)
            TAC_TRY(tac__direct_send(req, to, p.send, p.send_bytes));
    }
    return TAC_OK;
}

static tac__piece sig_piece(tac_req *req, int peer)
{
    tac_comm *c = req->comm;
    const size_t bytes = sizeof(tac__sig);
    return (tac__piece){&c->scratch.sigs[c->size], &c->scratch.sigs[peer],
                        bytes, bytes};
}

tac_status tac__direct_check(tac_req *req)
{
    tac_comm *c = req->comm;
    if (req->stage == TAC__CHECK) {
        req->stage = TAC__CHECKING;
        if (!c->config.check) return TAC_OK;
        c->scratch.sigs[c->size] = tac__req_sig(req);
        TAC_TRY(tac__direct_exchange(req, sig_piece));
    }
    const tac_status s = tac__direct_wait(req);
    if (s != TAC_OK || !c->config.check) return s;
    const tac__sig *mine = &c->scratch.sigs[c->size];
    for (int r = 0; r < c->size; r++)
        if (r != c->rank &&
            memcmp(&c->scratch.sigs[r], mine, sizeof *mine) != 0)
            return tac__sig_mismatch(req, r, &c->scratch.sigs[r]);
    return TAC_OK;
}

size_t tac__direct_slice(const tac_comm *c, size_t esize)
{
    const size_t share = c->config.staging_bytes / (size_t)c->size;
    return tac__min(share, c->config.message_bytes) / 64 * (64 / esize);
}

char *tac__direct_staging(const tac_req *req, int r, size_t slice_bytes)
{
    return req->comm->scratch.staging + (size_t)r * slice_bytes;
}

int tac__direct_applicable(const tac_comm *c, const tac_req *req)
{
    return (c->transport->flags & TAC_TRANSPORT_P2P) != 0 && !req->wire &&
           !req->codec;
}

void tac__direct_finish(tac_req *req)
{
    tac_comm *c = req->comm;
    for (int i = 0; i < 2 * c->size; i++)
        if (c->scratch.ops[i])
            c->transport->cancel(c->link, &c->scratch.ops[i]);
}

int tac__direct_waits_for(const tac_req *req, int r)
{
    return *recv_op(req, r) != NULL;
}

double tac__direct_cost(double messages, double bytes)
{
    return 5e-6 * messages + 1e-9 * bytes;
}
