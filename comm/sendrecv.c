/* sendrecv.c: tac_send and tac_recv.
 *
 * All of a request's messages are started at its submission: an envelope of 32
 * bytes (count, dtype, number), then the elements in pieces of at most
 * config.message_bytes. Messages of a pair arrive in order, so requests of a
 * pair and direction complete in order too, and only the earliest of them is
 * looked at. Receives that name another count or dtype than their send fail on
 * both sides. What a rank sends to itself is copied when both are submitted.
 *
 * Cost: one message more than the elements need. Nothing is allocated after the
 * first calls: requests and lists of messages are kept. */
#include "sendrecv.h"

#include <stdlib.h>
#include <string.h>

#include "coll_check.h"
#include "tacit/clock.h"

#define GONE_NS UINT64_C(20000000)

enum { UNDER_WAY = 0, COPIED };

int tac__req_is_p2p(const tac_req *req)
{
    return req->coll == TAC_COLL_SEND || req->coll == TAC_COLL_RECV;
}

/* ---- memory ---------------------------------------------------------------
 */

int tac__p2p_open(tac__p2p *p, int size)
{
    p->number = calloc(2 * (size_t)size, sizeof *p->number);
    p->waits = calloc(2 * (size_t)size, 1);
    return p->number && p->waits;
}

void tac__p2p_close(tac__p2p *p, int healthy)
{
    while (p->store) {
        tac__flight *f = p->store;
        p->store = f->next;
        free(f->op);
        if (healthy) free(f);
    }
    free(p->number);
    free(p->waits);
    memset(p, 0, sizeof *p);
}

/* 1 + the pieces; their operations are NULL. */
static tac__flight *get_flight(tac_comm *c, size_t n)
{
    tac__flight *f = c->p2p.store;
    if (f)
        c->p2p.store = f->next;
    else
        f = calloc(1, sizeof *f);
    if (!f) return NULL;
    if (f->room < n) {
        free(f->op);
        f->op = malloc(n * sizeof *f->op);
        f->room = f->op ? n : 0;
    }
    f->at = 0;
    f->n = n;
    if (f->op) {
        memset(f->op, 0, n * sizeof *f->op);
        return f;
    }
    f->next = c->p2p.store;
    c->p2p.store = f;
    return NULL;
}

/* ---- the life of a request ------------------------------------------------
 */

static int slot_of(const tac_req *req)
{
    return 2 * req->root + (req->coll == TAC_COLL_RECV);
}

static size_t piece_bytes(const tac_req *req, size_t i)
{
    const size_t all = req->count * req->esize;
    const size_t most = req->comm->config.message_bytes;
    const size_t left = all - i * most;
    return left < most ? left : most;
}

static tac_status post_one(tac_req *req, void *buf, size_t bytes, void **op)
{
    const tac_comm *c = req->comm;
    const tac_transport *t = c->transport;
    if (req->coll == TAC_COLL_RECV)
        return t->irecv(c->link, req->root, TAC_CHANNEL_USER, buf, bytes, op);
    if (c->peers[req->root].host != c->peers[c->rank].host)
        req->between_hosts += bytes;
    return t->isend(c->link, req->root, TAC_CHANNEL_USER, buf, bytes, op);
}

static tac_status post(tac_req *req)
{
    tac__flight *f = req->plan;
    char *buf = req->dst;
    if (!f) return TAC_OK; /* to myself */
    if (req->coll == TAC_COLL_SEND)
        f->envelope =
            (tac__envelope){req->count, req->turn_id, (int)req->dtype, {0}};
    TAC_TRY(post_one(req, &f->envelope, sizeof f->envelope, &f->op[0]));
    for (size_t i = 0; i + 1 < f->n; i++) {
        const size_t bytes = piece_bytes(req, i);
        TAC_TRY(post_one(req, buf, bytes, &f->op[i + 1]));
        buf += bytes;
    }
    return TAC_OK;
}

static tac_status disagree(const tac_req *req, size_t count, int dtype)
{
    const tac_comm *c = req->comm;
    return tac__comm_poison(
        req->comm, TAC_ERR_MISMATCH,
        "ranks disagree: send #%llu from rank %d to rank %d is of %s x %zu, "
        "and the receive of rank %d is of %s x %zu",
        (unsigned long long)req->turn_id, req->root, c->rank,
        tac_dtype_name((tac_dtype)dtype), count, c->rank,
        tac_dtype_name(req->dtype), req->count);
}

static tac_status open_envelope(const tac_req *req, const tac__envelope *e)
{
    if (e->count == req->count && e->dtype == (int)req->dtype &&
        e->number == req->turn_id)
        return TAC_OK;
    return disagree(req, e->count, e->dtype);
}

static tac_status failed(const tac_req *req, tac_status s)
{
    return tac__comm_poison(
        req->comm, s,
        "%s #%llu: %s rank %d failed on rank "
        "%d",
        tac_coll_name(req->coll), (unsigned long long)req->turn_id,
        req->coll == TAC_COLL_SEND ? "sending to" : "receiving from", req->root,
        req->comm->rank);
}

static tac_status step_messages(tac_req *req)
{
    const tac_comm *c = req->comm;
    tac__flight *f = req->plan;
    for (; f->at < f->n; f->at++) {
        const tac_status s = c->transport->test(c->link, &f->op[f->at]);
        if (s == TAC_INPROGRESS) return s;
        if (s < 0) return failed(req, s);
        req->moved = 1;
        if (f->at == 0 && req->coll == TAC_COLL_RECV)
            TAC_TRY(open_envelope(req, &f->envelope));
    }
    return TAC_OK;
}

static tac_req *first_to_myself(const tac_comm *c, tac_coll coll)
{
    tac_req *req = c->p2p.first;
    while (req &&
           (req->root != c->rank || req->coll != coll || req->stage == COPIED))
        req = req->next;
    return req;
}

static tac_status step_copy(tac_req *req)
{
    const tac_comm *c = req->comm;
    if (req->stage == COPIED) return TAC_OK;
    tac_req *from = first_to_myself(c, TAC_COLL_SEND);
    tac_req *to = first_to_myself(c, TAC_COLL_RECV);
    if (!from || !to) return TAC_INPROGRESS;
    if (from->count != to->count || from->dtype != to->dtype)
        return disagree(to, from->count, (int)from->dtype);
    if (to->count > 0) memmove(to->dst, from->src, to->count * to->esize);
    from->stage = to->stage = COPIED;
    req->moved = 1;
    return req->stage == COPIED ? TAC_OK : TAC_INPROGRESS;
}

static tac_status step(tac_req *req)
{
    return req->plan ? step_messages(req) : step_copy(req);
}

static void finish(tac_req *req)
{
    tac_comm *c = req->comm;
    tac__flight *f = req->plan;
    if (!f) return;
    for (size_t i = f->at; i < f->n; i++)
        if (f->op[i]) c->transport->cancel(c->link, &f->op[i]);
    f->next = c->p2p.store;
    c->p2p.store = f;
    req->plan = NULL;
}

static int waits_for(const tac_req *req, int r)
{
    return r == req->root && r != req->comm->rank;
}

/* What a rank has sent before it left may not have been looked at, or may be on
 * an emulated wire. */
int tac__p2p_misses(tac_req *req, int r, uint64_t now)
{
    const tac_comm *c = req->comm;
    if (!waits_for(req, r)) return 0;
    if (!req->turn || (c->transport->due && c->transport->due(c->link) > 0)) {
        req->turn = 1;
        req->polled_ns = now;
    }
    return now - req->polled_ns > GONE_NS;
}

static const tac__alg alg_send = {.name = "p2p",
                                  .doc = "messages: an envelope, then pieces",
                                  .coll = TAC_COLL_SEND,
                                  .step = step,
                                  .finish = finish,
                                  .waits_for = waits_for};
static const tac__alg alg_recv = {.name = "p2p",
                                  .doc = "messages: an envelope, then pieces",
                                  .coll = TAC_COLL_RECV,
                                  .step = step,
                                  .finish = finish,
                                  .waits_for = waits_for};

/* ---- the list -------------------------------------------------------------
 */

int tac__p2p_step(tac_comm *c)
{
    int moved = 0;
    memset(c->p2p.waits, 0, 2 * (size_t)c->size);
    for (tac_req *req = c->p2p.first, *next; req; req = next) {
        unsigned char *waits = &c->p2p.waits[slot_of(req)];
        next = req->next;
        if (*waits) continue;
        req->moved = 0;
        const tac_status s = step(req);
        moved |= req->moved;
        if (s == TAC_INPROGRESS) *waits = 1;
        if (s == TAC_OK) tac__req_complete(req, s);
        if (s < 0) return 1;
    }
    return moved;
}

static void append(tac_comm *c, tac_req *req)
{
    if (c->p2p.last)
        c->p2p.last->next = req;
    else
        c->p2p.first = req;
    c->p2p.last = req;
    tac__comm_activity(c);
}

void tac__p2p_detach(tac_comm *c, tac_req *req)
{
    tac_req *before = NULL, **at = &c->p2p.first;
    while (*at != req) {
        before = *at;
        at = &before->next;
    }
    *at = req->next;
    if (c->p2p.last == req) c->p2p.last = before;
    tac__comm_activity(c);
}

/* ---- what callers see -----------------------------------------------------
 */

static tac_status check(tac_comm *c, const tac_req *want, const tac_coll_opt *o)
{
    const char *what = tac_coll_name(want->coll);
    if (want->esize == 0)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: there is no dtype %d", what,
                        (int)want->dtype);
    if (want->root < 0 || want->root >= c->size)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: there is no rank %d in 0..%d",
                        what, want->root, c->size - 1);
    if (want->count > PTRDIFF_MAX / want->esize)
        return tac_fail(c->ctx, TAC_ERR_ARG,
                        "%s: %zu elements of %zu bytes are more than memory "
                        "can hold",
                        what, want->count, want->esize);
    if (want->count > 0 && !want->src)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s: the buffer is NULL", what);
    TAC_TRY(tac__check_opt(c, want, o));
    if (o->prescale != 1 || o->postscale != 1 || o->algorithm)
        return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                        "%s: scales and algorithms are for collectives", what);
    if (want->root == c->rank || (c->transport->flags & TAC_TRANSPORT_P2P))
        return TAC_OK;
    return tac_fail(c->ctx, TAC_ERR_UNSUPPORTED,
                    "%s: transport %s has no messages", what,
                    c->transport->name);
}

/* A request like `want` with room for its messages, or NULL. */
static tac_req *make(tac_comm *c, tac_req *want)
{
    const size_t bytes = want->count * want->esize;
    const size_t most = c->config.message_bytes;
    tac__flight *f = NULL;
    if (want->root != c->rank) {
        f = get_flight(c, 1 + bytes / most + (bytes % most != 0));
        if (!f) return NULL;
    }
    want->plan = f;
    tac_req *req = tac__req_new(c, want);
    if (!req && f) {
        f->next = c->p2p.store;
        c->p2p.store = f;
    }
    return req;
}

static void start(tac_req *req)
{
    tac_comm *c = req->comm;
    req->turn_id = req->seq = c->p2p.number[slot_of(req)]++;
    req->started = 1;
    req->started_ns = req->polled_ns = tac_clock_ns();
    tac__note_submitted(req);
    tac__note_started(req);
    append(c, req);
    const tac_status s = post(req);
    if (s < 0) failed(req, s); /* its step or tac_wait will tell */
}

static tac_status submit(tac_comm *c, tac_req *want, const tac_coll_opt *opt,
                         tac_req **out)
{
    const tac_coll_opt o = tac__opt_fill(opt);
    if (!out)
        return tac_fail(c->ctx, TAC_ERR_ARG, "%s needs a req",
                        tac_coll_name(want->coll));
    TAC_TRY(tac__comm_status(c));
    want->comm = c;
    want->esize = tac_dtype_size(want->dtype);
    TAC_TRY(check(c, want, &o));
    want->alg = want->coll == TAC_COLL_SEND ? &alg_send : &alg_recv;
    want->prescale = want->postscale = 1;
    want->tag = o.tag;
    want->timeout_ms = o.timeout_ms > 0 ? o.timeout_ms : c->config.timeout_ms;
    if (want->coll == TAC_COLL_SEND)
        want->bytes_logical = want->count * want->esize;

    pthread_mutex_lock(&c->lock);
    tac__comm_listen(c);
    const tac_status s = tac__comm_status(c);
    tac_req *req = s == TAC_OK ? make(c, want) : NULL;
    if (req) start(req);
    pthread_mutex_unlock(&c->lock);
    if (s < 0) return s;
    if (!req) return tac_fail(c->ctx, TAC_ERR_NOMEM, "no memory for a request");
    if (c->config.progress == TAC_PROGRESS_THREAD) {
        tac__engine_notify(c->engine);
        tac__bell_ring(c->bell);
    }
    *out = req;
    return TAC_OK;
}

tac_status tac_send(tac_comm *c, const void *buf, size_t count, tac_dtype dtype,
                    int peer, const tac_coll_opt *opt, tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_SEND,
                    .src = buf,
                    .dst = (char *)(uintptr_t)buf,
                    .count = count,
                    .dtype = dtype,
                    .root = peer};
    return submit(c, &want, opt, req);
}

tac_status tac_recv(tac_comm *c, void *buf, size_t count, tac_dtype dtype,
                    int peer, const tac_coll_opt *opt, tac_req **req)
{
    tac_req want = {.coll = TAC_COLL_RECV,
                    .src = buf,
                    .dst = buf,
                    .count = count,
                    .dtype = dtype,
                    .root = peer};
    return submit(c, &want, opt, req);
}
