/* ring.c: the pipelined ring (see ring.h).
 *
 * Slots. A received message that has to be worked on or passed on (partial
 * sums; anything in a wire format) lies in a slot of the staging until it has
 * been sent on; results in the elements' type are received where they belong.
 * What is sent in the first round, if the source itself can't be, is prepared
 * in slots of its own. Empty messages are sent too: counting stays simple. */
#include "algs/ring.h"

#include <string.h>

#include "algs/partial.h"

#define BLOCK TAC__REDUCE_BLOCK

static int next_rank(const tac_comm *c)
{
    return (c->rank + 1) % c->size;
}

static int previous_rank(const tac_comm *c)
{
    return (c->rank + c->size - 1) % c->size;
}

/* ---- wire formats ----------------------------------------------------------
 */

/* The message's sums and this rank's elements, encoded anew, a block at a time
 * in its place. */
static void add_encoded(tac_req *req, const tac__ring_message *m, char *msg,
                        int finish)
{
    const tac__codec_kernels *kernels = req->comm->codec_kernels;
    float x[BLOCK];
    for (size_t k = 0; k < m->n; k += BLOCK) {
        const size_t n = tac__min(BLOCK, m->n - k);
        req->wire->decode(kernels, msg, m->n, k, x, n);
        tac__partial_add(req, x, m->at + k, n);
        if (finish) tac__partial_finish(req, x, n);
        req->wire->encode(kernels, msg, m->n, k, x, n, 0, m->at);
    }
}

static void decode(tac_req *req, const tac__ring_message *m, const char *msg)
{
    const tac__codec_kernels *kernels = req->comm->codec_kernels;
    float *to = (float *)(void *)tac__ring_dst(req, m->at);
    for (size_t k = 0; k < m->n; k += BLOCK)
        req->wire->decode(kernels, msg, m->n, k, to + k,
                          tac__min(BLOCK, m->n - k));
}

/* ---- receiving -------------------------------------------------------------
 */

/* In place, an element is overwritten only after this rank has read it: sent it
 * in the chunk's first round, or added it p rounds before. */
static int was_read(const tac_req *req, size_t m)
{
    const tac__ring *g = tac__ring_of(req);
    const size_t in_chunk = m % tac__ring_a_chunk(g);
    const size_t whole = (size_t)req->comm->size * TAC__RING_SEGMENTS;
    if (req->src != req->dst || g->kind != TAC__RING_ALL) return 1;
    if (in_chunk >= whole) return g->got > m - whole;
    return tac__direct_sent(req, next_rank(req->comm)) >
           m - (whole - TAC__RING_SEGMENTS);
}

/* A slot is free when its message has been sent on. */
static int slot_is_free(const tac_req *req, size_t m)
{
    const tac__ring *g = tac__ring_of(req);
    if (m < TAC__RING_SLOTS) return 1;
    const size_t old = m - TAC__RING_SLOTS,
                 left = tac__ring_a_chunk(g) - old % tac__ring_a_chunk(g);
    if (left <= TAC__RING_SEGMENTS)
        return g->got > old; /* the chunk's last round */
    return tac__direct_sent(req, next_rank(req->comm)) >
           old + TAC__RING_SEGMENTS;
}

static tac_status post(tac_req *req, int *did)
{
    tac__ring *g = tac__ring_of(req);
    const size_t m = g->posted;
    *did = 0;
    if (m == g->messages || m >= g->got + TAC__RING_SEGMENTS) return TAC_OK;
    const tac__ring_message what = tac__ring_message_at(req, m, 1);
    char *to = tac__ring_lands(req, &what) ? tac__ring_dst(req, what.at)
                                           : tac__ring_in_slot(req, m);
    if (!slot_is_free(req, m)) return TAC_OK;
    if (tac__ring_lands(req, &what) && !was_read(req, m)) return TAC_OK;
    *did = 1;
    g->posted++;
    return tac__direct_recv(req, previous_rank(req->comm), to,
                            tac__ring_bytes(req, &what));
}

static void work_on(tac_req *req, size_t m)
{
    const tac__ring_message what = tac__ring_message_at(req, m, 1);
    const int last = what.round == req->comm->size - 2;
    char *msg = tac__ring_in_slot(req, m);
    if (tac__ring_lands(req, &what)) return;
    const tac__work w = tac__work_begin(what.n * req->esize);
    if (tac__ring_is_result(req, what.round)) {
        decode(req, &what, msg);
    } else if (req->wire) {
        add_encoded(req, &what, msg, last);
        if (last) decode(req, &what, msg);
    } else {
        tac__partial_add(req, msg, what.at, what.n);
        if (last)
            tac__partial_store(req, msg, what.n, tac__ring_dst(req, what.at));
    }
    tac__work_end(req, w);
}

/* ---- sending ---------------------------------------------------------------
 */

static void encode_own(tac_req *req, const tac__ring_message *m, char *msg)
{
    const tac__codec_kernels *kernels = req->comm->codec_kernels;
    float x[BLOCK];
    for (size_t k = 0; k < m->n; k += BLOCK) {
        const size_t n = tac__min(BLOCK, m->n - k);
        tac__partial_load(req, m->at + k, n, x);
        req->wire->encode(kernels, msg, m->n, k, x, n, 0, m->at);
    }
}

static const void *own_part(tac_req *req, size_t m,
                            const tac__ring_message *what)
{
    char *to = tac__ring_out_slot(req, m);
    if (tac__ring_is_result(req, what->round) ||
        (!req->wire && tac__partial_of(req).as_is))
        return tac__ring_src(req, what->at);
    const tac__work w = tac__work_begin(what->n * req->esize);
    if (req->wire)
        encode_own(req, what, to);
    else
        tac__partial_load(req, what->at, what->n, to);
    tac__work_end(req, w);
    return to;
}

static int may_send(const tac_req *req, size_t m)
{
    const tac__ring *g = tac__ring_of(req);
    const int next = next_rank(req->comm);
    if (tac__direct_send_room(req, next) == 0) return 0;
    if (!tac__ring_is_first(g, m)) return g->got > m - TAC__RING_SEGMENTS;
    return m < TAC__RING_SLOTS ||
           tac__direct_sent(req, next) > m - TAC__RING_SLOTS;
}

static tac_status send_next(tac_req *req, int *did)
{
    tac__ring *g = tac__ring_of(req);
    const size_t m = g->sent;
    *did = 0;
    if (m == g->messages || !may_send(req, m)) return TAC_OK;
    const tac__ring_message what = tac__ring_message_at(req, m, 0);
    const void *from;
    if (tac__ring_is_first(g, m))
        from = own_part(req, m, &what);
    else if (tac__ring_is_result(req, what.round) && !req->wire)
        from = tac__ring_dst(req, what.at);
    else
        from = tac__ring_in_slot(req, m - TAC__RING_SEGMENTS);
    *did = 1;
    g->sent++;
    return tac__direct_send(req, next_rank(req->comm), from,
                            tac__ring_bytes(req, &what));
}

/* ---- the step --------------------------------------------------------------
 */

static tac_status advance(tac_req *req, int *done)
{
    tac__ring *g = tac__ring_of(req);
    const int from = previous_rank(req->comm);
    for (int posted = 1, sent = 1, worked = 1; posted || sent || worked;) {
        TAC_TRY(post(req, &posted));
        TAC_TRY(send_next(req, &sent));
        worked = g->got < g->posted && tac__direct_got(req, from) > g->got;
        if (worked) work_on(req, g->got++);
    }
    *done = g->got == g->messages && g->sent == g->messages;
    return TAC_OK;
}

/* The gathering half: this rank's own block in its destination. */
static void copy_own(tac_req *req)
{
    char *own = tac__ring_dst(req, (size_t)req->comm->rank * req->count);
    const size_t bytes = req->count * req->esize;
    if (bytes == 0 || own == req->src) return;
    const tac__work w = tac__work_begin(bytes);
    memcpy(own, req->src, bytes);
    tac__work_end(req, w);
}

tac_status tac__ring_start(tac_req *req, tac__ring_kind kind)
{
    const tac_comm *c = req->comm;
    const size_t p = (size_t)c->size;
    const size_t esize = tac__partial_of(req).esize;
    const size_t slice =
        kind == TAC__RING_ALL ? req->count / p + 1 : req->count;
    TAC_TRY(tac__direct_start(req));
    tac__ring *g = tac__ring_of(req);
    g->kind = (int)kind;
    g->v = (c->rank + (kind == TAC__RING_ALL ? 0 : c->size - 1)) % c->size;
    g->first = kind == TAC__RING_GATHER ? c->size - 1 : 0;
    g->rounds = (kind == TAC__RING_ALL ? 2 : 1) * (c->size - 1);
    g->slot_bytes =
        tac__lines_down(c->scratch.staging_bytes / (2 * TAC__RING_SLOTS));
    g->segment = tac__direct_piece(req, esize, slice, g->slot_bytes);
    const size_t all = kind == TAC__RING_ALL ? p : 1;
    const size_t chunk = all * TAC__RING_SEGMENTS * g->segment;
    g->messages = (req->count + chunk - 1) / chunk * tac__ring_a_chunk(g);
    if (kind == TAC__RING_GATHER) copy_own(req);
    return TAC_OK;
}

tac_status tac__ring_step(tac_req *req)
{
    return tac__direct_run(req, advance);
}
