/* emulated.c: any transport of messages, behind the links of an emulated
 * network.
 *
 * A message to another virtual host goes at once through the transport
 * underneath, followed by a stamp of 16 bytes: when it arrives. The stamp
 * follows as soon as the last piece of the message has been charged to the
 * links, which is at most 2 ms or 256 KiB (whichever is more) before that piece
 * leaves: so messages of several ranks and to several peers share a link piece
 * by piece, as TCP streams do, and the sender may rest as long as a socket's
 * buffer would carry it. The receiver gets its message when it is there and its
 * time has come.
 *
 * Cost: one more message underneath for each; no thread, no spinning: due()
 * says when the next thing is known to happen. */
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"
#include "transports/emulate.h"

#define AHEAD_NS    UINT64_C(2000000)
#define AHEAD_BYTES ((size_t)256 << 10)

typedef struct stamp {
    uint64_t arrives_ns, bytes;
} stamp;

struct lane;

typedef struct parcel {
    struct parcel *next; /* in its lane, or in the store */
    struct lane *lane;   /* NULL: within the host, nothing to wait for */
    const void *buf;
    size_t bytes, charged;
    uint64_t ready_ns;   /* handed over */
    void *op, *stamp_op; /* underneath; NULL: not begun, or complete */
    stamp stamp;
    int begun, stamped, done;
} parcel;

/* One direction of one pair of ranks on different hosts in one channel. */
typedef struct lane {
    parcel *first, *last; /* not complete, in order */
    parcel *charging;     /* the first that is not stamped (sends) */
    int peer, channel, sends, place;
    uint64_t sent_ns; /* when the last piece charged leaves */
} lane;

typedef struct emulated {
    tac_transport table; /* emulated's functions, with inner's abilities */
    const tac_transport *inner;
    void *link;
    tac__net *net;
    int rank, size;
    int *place;  /* [size] hosts */
    lane *lanes; /* [size][TAC_CHANNELS][2] */
    lane **busy;
    int n_busy;
    parcel *store;
} emulated;

/* ---- lanes ----------------------------------------------------------------
 */

static void append(emulated *e, lane *l, parcel *m)
{
    if (l->last) {
        l->last->next = m;
    } else {
        l->first = m;
        l->place = e->n_busy;
        e->busy[e->n_busy++] = l;
    }
    l->last = m;
    if (l->sends && !l->charging) l->charging = m;
}

static void unlist(emulated *e, const lane *l)
{
    e->busy[l->place] = e->busy[--e->n_busy];
    e->busy[l->place]->place = l->place;
}

static void leave(lane *l)
{
    parcel *m = l->first;
    l->first = m->next;
    if (!l->first) l->last = NULL;
    m->done = 1;
}

/* ---- sending --------------------------------------------------------------
 */

static tac_status post(emulated *e, lane *l, void *buf, size_t bytes, void **op)
{
    return l->sends
               ? e->inner->isend(e->link, l->peer, l->channel, buf, bytes, op)
               : e->inner->irecv(e->link, l->peer, l->channel, buf, bytes, op);
}

static tac_status begin(emulated *e, parcel *m)
{
    m->begun = 1;
    return post(e, m->lane, (char *)(uintptr_t)m->buf, m->bytes, &m->op);
}

/* How far ahead of the wire a lane is charged. */
static uint64_t ahead_ns(const emulated *e)
{
    const double rate = tac__net_what(e->net)->rate;
    const double ns = rate > 0 ? (double)AHEAD_BYTES / rate * 1e9 : 0;
    return ns > (double)AHEAD_NS ? (uint64_t)ns : AHEAD_NS;
}

static void charge_piece(emulated *e, parcel *m)
{
    const size_t left = m->bytes - m->charged;
    const size_t n = left < TAC__NET_PIECE ? left : TAC__NET_PIECE;
    m->stamp.arrives_ns =
        tac__net_carry(e->net, e->place[e->rank], e->place[m->lane->peer], n,
                       m->ready_ns, &m->lane->sent_ns);
    m->charged += n;
}

/* One piece of the lane's current message; *moved: there may be more to do. */
static tac_status charge(emulated *e, lane *l, uint64_t now, int *moved)
{
    parcel *m = l->charging;
    if (!m || l->sent_ns > now + ahead_ns(e)) return TAC_OK;
    if (!m->begun) TAC_TRY(begin(e, m));
    *moved = 1;
    charge_piece(e, m);
    if (m->charged < m->bytes) return TAC_OK;
    m->stamp.bytes = m->bytes;
    m->stamped = 1;
    l->charging = m->next;
    return post(e, l, &m->stamp, sizeof m->stamp, &m->stamp_op);
}

static tac_status charge_all(emulated *e, uint64_t now)
{
    for (int moved = 1; moved;) {
        moved = 0;
        for (int i = 0; i < e->n_busy; i++)
            if (e->busy[i]->sends) TAC_TRY(charge(e, e->busy[i], now, &moved));
    }
    return TAC_OK;
}

/* ---- completing -----------------------------------------------------------
 */

/* Are both messages underneath complete? */
static tac_status test_inner(const emulated *e, parcel *m)
{
    if (m->op) {
        const tac_status s = e->inner->test(e->link, &m->op);
        if (s != TAC_OK) return s;
    }
    return m->stamp_op ? e->inner->test(e->link, &m->stamp_op) : TAC_OK;
}

/* The first message only: whoever waits for it looks at what it says before
 * anything is said about the next one. */
static tac_status complete(emulated *e, lane *l, uint64_t now)
{
    parcel *m = l->first;
    if (!m || (l->sends && !m->stamped)) return TAC_OK;
    const tac_status s = test_inner(e, m);
    if (s != TAC_OK) return s == TAC_INPROGRESS ? TAC_OK : s;
    if (!l->sends) {
        if (m->stamp.bytes != m->bytes) return TAC_ERR_MISMATCH;
        m->stamped = 1;
        if (m->stamp.arrives_ns > now) return TAC_OK;
    }
    leave(l);
    return TAC_OK;
}

static tac_status progress(emulated *e)
{
    const uint64_t now = tac_clock_ns();
    TAC_TRY(charge_all(e, now));
    for (int i = 0; i < e->n_busy; i++) TAC_TRY(complete(e, e->busy[i], now));
    for (int i = e->n_busy - 1; i >= 0; i--)
        if (!e->busy[i]->first) unlist(e, e->busy[i]);
    return TAC_OK;
}

/* ---- the transport's functions --------------------------------------------
 */

static parcel *new_parcel(emulated *e)
{
    parcel *m = e->store;
    if (m)
        e->store = m->next;
    else
        m = malloc(sizeof *m);
    if (m) memset(m, 0, sizeof *m);
    return m;
}

static void release(emulated *e, void **op)
{
    parcel *m = *op;
    m->next = e->store;
    e->store = m;
    *op = NULL;
}

/* To a rank of the same host: only what is underneath. */
static tac_status start_near(emulated *e, parcel *m, int peer, int channel,
                             int sends)
{
    lane way = {.peer = peer, .channel = channel, .sends = sends};
    return post(e, &way, (char *)(uintptr_t)m->buf, m->bytes, &m->op);
}

static tac_status start_far(emulated *e, parcel *m, int peer, int channel,
                            int sends)
{
    m->lane = &e->lanes[(peer * TAC_CHANNELS + channel) * 2 + !sends];
    m->ready_ns = tac_clock_ns();
    append(e, m->lane, m);
    if (sends) return charge_all(e, m->ready_ns);
    TAC_TRY(begin(e, m));
    return post(e, m->lane, &m->stamp, sizeof m->stamp, &m->stamp_op);
}

static tac_status start(emulated *e, int peer, int channel, const void *buf,
                        size_t bytes, int sends, void **op)
{
    parcel *m = new_parcel(e);
    if (!m) return TAC_ERR_NOMEM;
    m->buf = buf;
    m->bytes = bytes;
    *op = m;
    return e->place[peer] == e->place[e->rank]
               ? start_near(e, m, peer, channel, sends)
               : start_far(e, m, peer, channel, sends);
}

static tac_status isend_emulated(void *state, int peer, int channel,
                                 const void *buf, size_t bytes, void **op)
{
    return start(state, peer, channel, buf, bytes, 1, op);
}

static tac_status irecv_emulated(void *state, int peer, int channel, void *buf,
                                 size_t bytes, void **op)
{
    return start(state, peer, channel, buf, bytes, 0, op);
}

static tac_status test_emulated(void *state, void **op)
{
    emulated *e = state;
    parcel *m = *op;
    if (!m) return TAC_OK;
    if (!m->lane) {
        const tac_status s = e->n_busy > 0 ? progress(e) : TAC_OK;
        if (s < 0) return s;
        const tac_status near = test_inner(e, m);
        if (near != TAC_OK) return near;
    } else if (!m->done) {
        TAC_TRY(progress(e));
        if (!m->done) return TAC_INPROGRESS;
    }
    release(e, op);
    return TAC_OK;
}

static void take_out(emulated *e, parcel *m)
{
    lane *l = m->lane;
    parcel *before = NULL, **at = &l->first;
    while (*at != m) {
        before = *at;
        at = &before->next;
    }
    *at = m->next;
    if (l->last == m) l->last = before;
    if (l->charging == m) l->charging = m->next;
    if (!l->first) unlist(e, l);
}

static void cancel_emulated(void *state, void **op)
{
    emulated *e = state;
    parcel *m = *op;
    if (m->lane && !m->done) take_out(e, m);
    if (m->op) e->inner->cancel(e->link, &m->op);
    if (m->stamp_op) e->inner->cancel(e->link, &m->stamp_op);
    release(e, op);
}

/* A stamped receive arrives at its time; a send that waits for the wire is
 * taken on when that has done half of what was charged. */
static uint64_t due_of(const emulated *e, const lane *l)
{
    if (!l->sends) return l->first->stamped ? l->first->stamp.arrives_ns : 0;
    return l->charging ? l->sent_ns - ahead_ns(e) / 2 : 0;
}

static uint64_t due_emulated(void *state)
{
    const emulated *e = state;
    uint64_t due = 0;
    for (int i = 0; i < e->n_busy; i++) {
        const uint64_t at = due_of(e, e->busy[i]);
        if (at > 0 && (due == 0 || at < due)) due = at;
    }
    return due;
}

static void sleep_emulated(void *state, uint64_t ns)
{
    const emulated *e = state;
    e->inner->sleep(e->link, ns);
}

static void abort_emulated(void *state, tac_status s, const char *text)
{
    const emulated *e = state;
    e->inner->abort(e->link, s, text);
}

static tac_status poll_emulated(void *state, const char **text)
{
    const emulated *e = state;
    return e->inner->poll(e->link, text);
}

static void tell_emulated(void *state, uint64_t word)
{
    const emulated *e = state;
    e->inner->tell(e->link, word);
}

static uint64_t heard_emulated(void *state, int r)
{
    const emulated *e = state;
    return e->inner->heard(e->link, r);
}

/* ---- life -----------------------------------------------------------------
 */

static void free_parcels(parcel *m)
{
    while (m) {
        parcel *next = m->next;
        free(m);
        m = next;
    }
}

/* Stamps may still be received into them. */
static void forget_parcels(emulated *e)
{
    e->n_busy = 0;
    e->store = NULL;
}

static void free_emulated(emulated *e)
{
    if (!e) return;
    for (int i = 0; i < e->n_busy; i++) free_parcels(e->busy[i]->first);
    free_parcels(e->store);
    free(e->busy);
    free(e->lanes);
    free(e->place);
    free(e);
}

static void close_emulated(void *state, int healthy)
{
    emulated *e = state;
    const int clean = healthy || (e->table.flags & TAC_TRANSPORT_CLEAN);
    e->inner->close(e->link, healthy);
    tac__net_release(e->net);
    if (!clean) forget_parcels(e);
    free_emulated(e);
}

static int never_usable(const tac__boot *b, void *arg,
                        const tac_comm_config *config, char *why, size_t bytes)
{
    (void)b, (void)arg, (void)config, (void)why, (void)bytes;
    return 0;
}

static tac_status never_open(tac__boot *b, void *arg,
                             const tac_comm_config *config, void **state)
{
    (void)b, (void)arg, (void)config, (void)state;
    return TAC_ERR_UNSUPPORTED;
}

static tac_transport table_for(const tac_transport *inner)
{
    tac_transport t = {
        .abi = TAC_ABI,
        .name = "emulated",
        .doc = "any other, behind the links of an emulated network",
        .flags = inner->flags & ~TAC_TRANSPORT_SHARED,
        .usable = never_usable,
        .open = never_open,
        .close = close_emulated,
        .abort = abort_emulated,
        .poll = poll_emulated,
        .max_message = inner->max_message,
        .isend = isend_emulated,
        .irecv = irecv_emulated,
        .test = test_emulated,
        .cancel = cancel_emulated,
        .due = due_emulated,
    };
    if (inner->sleep) t.sleep = sleep_emulated;
    if (inner->tell) t.tell = tell_emulated;
    if (inner->heard) t.heard = heard_emulated;
    return t;
}

static emulated *new_emulated(const tac__boot *b, const int *place)
{
    const size_t n = (size_t)b->size, lanes = n * TAC_CHANNELS * 2;
    emulated *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->rank = b->rank;
    e->size = b->size;
    e->place = malloc(n * sizeof *e->place);
    e->lanes = calloc(lanes, sizeof *e->lanes);
    e->busy = calloc(lanes, sizeof(lane *));
    if (!e->place || !e->lanes || !e->busy) {
        free_emulated(e);
        return NULL;
    }
    memcpy(e->place, place, n * sizeof *place);
    for (size_t i = 0; i < lanes; i++) {
        e->lanes[i].peer = (int)(i / (TAC_CHANNELS * 2));
        e->lanes[i].channel = (int)(i / 2 % TAC_CHANNELS);
        e->lanes[i].sends = i % 2 == 0;
    }
    return e;
}

tac_status tac__emulated_open(tac__boot *b, const tac_transport *inner,
                              void *inner_state, tac__net *net,
                              const int *place, const tac_transport **transport,
                              void **state)
{
    emulated *e = new_emulated(b, place);
    tac_status s = TAC_OK;
    if (!e) s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a network");
    if (e && !(inner->flags & TAC_TRANSPORT_P2P))
        s = tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                           "transport %s has no messages to emulate a network "
                           "with",
                           inner->name);
    s = tac__boot_agree(b, s);
    if (s < 0) {
        free_emulated(e);
        return s;
    }
    e->inner = inner;
    e->link = inner_state;
    e->net = tac__net_retain(net);
    e->table = table_for(inner);
    *transport = &e->table;
    *state = e;
    return TAC_OK;
}
