/* ucx_open.c: a worker, everybody's address, an endpoint to every peer, and a
 * greeting over each, so that what can't work is found now, by all ranks.
 *
 * Cost: one all-gather for the lengths of the addresses, one for every 512
 * bytes of the longest (a few hundred bytes), three agreements, p - 1 small
 * messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transports/ucx/ucx.h"

/* The all-gather of a split carries 560 bytes. */
#define PIECE 512u
/* A greeting may take half the time that is left, but no longer than this. */
#define GREETING_NS UINT64_C(60000000000)

typedef struct addresses {
    uint64_t *bytes; /* [size] */
    size_t stride;
    char *all; /* [size][stride] */
} addresses;

/* ---- this rank's own --------------------------------------------------------
 */

static tac__ucx_link *new_link(const tac__boot *b)
{
    tac__ucx_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->ops = b->ops;
    l->ctx = b->ctx;
    l->rank = b->rank;
    l->size = b->size;
    l->event_fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    l->peer = calloc((size_t)b->size, sizeof *l->peer);
    if (!l->peer) {
        tac__ucx_close(l, 1);
        return NULL;
    }
    for (int r = 0; r < b->size; r++) l->peer[r].link = l;
    return l;
}

static ucs_status_t start_worker(ucp_context_h context, tac__ucx_link *l,
                                 uint64_t *bytes)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    size_t length = 0;
    ucs_status_t s = ucp_worker_create(context, &params, &l->worker);
    if (s == UCS_OK) s = ucp_worker_get_efd(l->worker, &l->event_fd);
    if (s == UCS_OK)
        s = ucp_worker_get_address(l->worker, &l->address, &length);
    *bytes = length;
    return s;
}

static tac_status start(tac__boot *b, tac__ucx_link **out, uint64_t *bytes)
{
    char why[TAC__TEXT - 32] = "";
    ucp_context_h context = tac__ucx_context(b, why, sizeof why);
    tac__ucx_link *l = *out = new_link(b);
    if (!l) return b->ops->note(b, TAC_ERR_NOMEM, "no memory for UCX");
    if (!context) return b->ops->note(b, TAC_ERR_UNSUPPORTED, "%s", why);
    const ucs_status_t s = start_worker(context, l, bytes);
    if (s == UCS_OK) return TAC_OK;
    return b->ops->note(b, TAC_ERR_UNSUPPORTED,
                        "UCX made no worker (%s): check UCX_TLS and "
                        "UCX_NET_DEVICES, and the limit of open files",
                        ucs_status_string(s));
}

/* ---- everybody's addresses -------------------------------------------------
 */

static tac_status gather_lengths(tac__boot *b, addresses *a, uint64_t mine)
{
    a->bytes = calloc((size_t)b->size, sizeof *a->bytes);
    tac_status s = TAC_OK;
    if (!a->bytes) s = b->ops->note(b, TAC_ERR_NOMEM, "no memory for UCX");
    s = b->ops->agree(b, s);
    if (s == TAC_OK) s = b->ops->exchange(b, &mine, a->bytes, sizeof mine);
    for (int r = 0; r < b->size && s == TAC_OK; r++)
        if (a->bytes[r] > a->stride) a->stride = a->bytes[r];
    a->stride = (a->stride + PIECE - 1) / PIECE * PIECE;
    return s;
}

static tac_status gather_pieces(tac__boot *b, addresses *a, const void *mine)
{
    const size_t n = (size_t)b->size;
    char send[PIECE];
    char *recv = malloc(n * PIECE);
    a->all = malloc(n * a->stride);
    tac_status s = TAC_OK;
    if (!a->all || !recv)
        s = b->ops->note(b, TAC_ERR_NOMEM, "no memory for UCX");
    s = b->ops->agree(b, s);
    for (size_t at = 0; at < a->stride && s == TAC_OK; at += PIECE) {
        const size_t have = (size_t)a->bytes[b->rank];
        const size_t left = have > at ? have - at : 0;
        memset(send, 0, sizeof send);
        memcpy(send, (const char *)mine + at, left < PIECE ? left : PIECE);
        s = b->ops->exchange(b, send, recv, PIECE);
        for (size_t r = 0; r < n && s == TAC_OK; r++)
            memcpy(a->all + r * a->stride + at, recv + r * PIECE, PIECE);
    }
    free(recv);
    return s;
}

/* ---- endpoints --------------------------------------------------------------
 */

/* Called by UCX under the lock. */
static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t s)
{
    tac__ucx_peer *p = arg;
    (void)ep;
    p->failed = 1;
    p->failure = s;
}

static tac_status connect_peers(tac__boot *b, tac__ucx_link *l,
                                const addresses *a)
{
    for (int i = 1; i < l->size; i++) {
        const int r = (l->rank + i) % l->size;
        const ucp_ep_params_t params = {
            .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER,
            .address = (const void *)(a->all + (size_t)r * a->stride),
            .err_mode = UCP_ERR_HANDLING_MODE_PEER,
            .err_handler = {on_failure, &l->peer[r]},
        };
        const ucs_status_t s =
            ucp_ep_create(l->worker, &params, &l->peer[r].ep);
        if (s == UCS_OK) continue;
        l->peer[r].ep = NULL;
        return b->ops->note(b, TAC_ERR_UNSUPPORTED,
                            "UCX has no way from rank %d to rank %d (%s): "
                            "check UCX_TLS and UCX_NET_DEVICES",
                            l->rank, r, ucs_status_string(s));
    }
    return TAC_OK;
}

/* ---- the greeting -----------------------------------------------------------
 */

/* After the greeting an endpoint has all that it will ever need. UCX makes much
 * of it at first use, which for a long message takes an answer from the peer
 * and holds back all that is sent behind it, news too, until a peer that is
 * busy elsewhere gives it. So the greeting is synchronous, which needs the same
 * answer, and as long as news can be, for which UCX attaches itself to the
 * peer's memory. */
typedef struct hello {
    char text[sizeof(tac__ucx_news)];
} hello;

typedef struct greeting {
    hello mine, *from; /* [size] */
    void **op;         /* [2 * size]: sends, then receives */
} greeting;

/* Both return the rank with which it went wrong; -1: none. */
static int say_hello(tac__ucx_link *l, greeting *g)
{
    const int stream = TAC__UCX_GREETING;
    for (int r = 0; r < l->size; r++) {
        const size_t bytes = sizeof g->mine;
        if (r == l->rank) continue;
        if (tac__ucx_irecv(l, r, stream, &g->from[r], bytes,
                           &g->op[l->size + r]) < 0 ||
            tac__ucx_isend(l, r, stream, &g->mine, bytes, &g->op[r]) < 0)
            return r;
    }
    return -1;
}

static int await_hellos(tac__ucx_link *l, greeting *g, uint64_t until)
{
    for (;;) {
        int late = -1;
        for (int i = 0; i < 2 * l->size; i++) {
            const tac_status s = tac__ucx_test(l, &g->op[i]);
            if (s < 0) return i % l->size;
            if (s == TAC_INPROGRESS) late = i % l->size;
        }
        if (late < 0 || tac__ucx_now() > until) return late;
        tac__ucx_sleep(l, 1000000u);
    }
}

static tac_status greet(tac__boot *b, tac__ucx_link *l, greeting *g)
{
    const uint64_t now = tac__ucx_now();
    uint64_t ns = b->deadline_ns > now ? (b->deadline_ns - now) / 2 : 0;
    if (ns > GREETING_NS) ns = GREETING_NS;
    int wrong = say_hello(l, g);
    if (wrong < 0) wrong = await_hellos(l, g, now + ns);
    for (int i = 0; i < 2 * l->size; i++) tac__ucx_cancel(l, &g->op[i]);
    if (wrong < 0) {
        pthread_mutex_lock(&l->lock);
        tac__ucx_flush_locked(l, ns); /* answers to the peers' greetings */
        pthread_mutex_unlock(&l->lock);
        return TAC_OK;
    }
    return b->ops->note(b, TAC_ERR_UNSUPPORTED,
                        "UCX can't reach rank %d from rank %d (after %.1f s): "
                        "check UCX_NET_DEVICES, UCX_TLS, and firewalls",
                        wrong, l->rank, (double)(tac__ucx_now() - now) * 1e-9);
}

static tac_status meet(tac__boot *b, tac__ucx_link *l)
{
    const size_t n = (size_t)l->size;
    greeting g = {.from = calloc(n, sizeof *g.from),
                  .op = calloc(2 * n, sizeof *g.op)};
    tac_status s = TAC_OK;
    if (!g.from || !g.op)
        s = b->ops->note(b, TAC_ERR_NOMEM, "no memory for UCX");
    else
        s = greet(b, l, &g);
    free(g.from);
    free(g.op);
    return s;
}

tac_status tac__ucx_open(tac__boot *b, void *arg, const tac_comm_config *config,
                         void **state)
{
    addresses a = {0};
    tac__ucx_link *l = NULL;
    uint64_t bytes = 0;
    (void)arg, (void)config;
    tac_status s = b->ops->agree(b, start(b, &l, &bytes));
    if (s == TAC_OK) s = gather_lengths(b, &a, bytes);
    if (s == TAC_OK) s = gather_pieces(b, &a, l->address);
    if (s == TAC_OK) s = b->ops->agree(b, connect_peers(b, l, &a));
    if (s == TAC_OK) s = b->ops->agree(b, meet(b, l));
    free(a.bytes);
    free(a.all);
    if (s == TAC_OK)
        *state = l;
    else
        tac__ucx_close(l, 0);
    return s;
}
