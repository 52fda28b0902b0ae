/* channel_ring.c: moving messages through a ring.
 *
 * Everything is padded to 16 bytes, so a header never wraps. Positions are
 * published after every quarter of the ring, so that the two ranks copy at the
 * same time, and when nothing more can be moved. A rank that finds no room (or
 * no bytes) says so in the ring and looks once more: sequential consistency
 * makes sure that the peer, having published, sees that, or that this rank sees
 * what was published. */
#include "transports/channel_ring.h"

#include <stdio.h>
#include <string.h>

#include "domain.h"

typedef struct header {
    uint64_t bytes, number;
} header;

_Static_assert(sizeof(header) == TAC__RING_STEP, "a header never wraps");

static size_t padded(size_t n)
{
    return (n + TAC__RING_STEP - 1) & ~(size_t)(TAC__RING_STEP - 1);
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void leave(tac__track *l)
{
    tac__message *m = l->first;
    l->first = m->next;
    if (!l->first) l->last = NULL;
    m->done = 1;
}

static void wake(tac__domain *d, const tac__track *l)
{
    tac__bell_ring(&d->line[l->peer]->bell);
}

/* ---- sending --------------------------------------------------------------
 */

/* Withdraws what this rank has asked for. */
static void found(tac__track *l, _Atomic uint32_t *flag)
{
    if (!l->asked) return;
    l->asked = 0;
    atomic_store_explicit(flag, 0, memory_order_relaxed);
}

/* Says what this rank waits for; 1: it should look once more. */
static int ask(tac__track *l, _Atomic uint32_t *flag)
{
    if (l->asked) return 0;
    l->asked = 1;
    atomic_store(flag, 1);
    return 1;
}

static size_t free_bytes(const tac__track *l)
{
    return l->bytes - (size_t)(l->pos - l->seen);
}

/* Bytes of room in the ring. */
static size_t room(tac__track *l)
{
    while (free_bytes(l) == 0) {
        l->seen = atomic_load(&l->ring->head);
        if (free_bytes(l) == 0 && !ask(l, &l->ring->starved)) return 0;
    }
    found(l, &l->ring->starved);
    return free_bytes(l);
}

static void put(const tac__track *l, const char *src, size_t n)
{
    const size_t at = (size_t)l->pos & (l->bytes - 1);
    const size_t before = min(n, l->bytes - at);
    memcpy(l->data + at, src, before);
    if (n > before) memcpy(l->data, src + before, n - before);
}

static void publish_tail(tac__domain *d, tac__track *l)
{
    atomic_store(&l->ring->tail, l->pos);
    if (atomic_load(&l->ring->thirsty)) wake(d, l);
}

static void put_header(tac__track *l, tac__message *m)
{
    const header h = {m->bytes, l->started++};
    memcpy(l->data + ((size_t)l->pos & (l->bytes - 1)), &h, sizeof h);
    l->pos += sizeof h;
    m->opened = 1;
}

void tac__track_push(tac__domain *d, tac__track *l)
{
    const size_t quarter = l->bytes / 4;
    uint64_t published = l->pos;
    for (tac__message *m; !l->broken && (m = l->first) != NULL;) {
        size_t free = room(l);
        if (free == 0) break;
        if (!m->opened) {
            put_header(l, m);
            free -= sizeof(header);
        }
        const size_t n = min(min(free, quarter), m->bytes - m->moved);
        if (n > 0) put(l, m->buf + m->moved, n);
        m->moved += n;
        l->pos += padded(n);
        if (m->moved == m->bytes) leave(l);
        if (l->pos - published < quarter) continue;
        publish_tail(d, l);
        published = l->pos;
    }
    if (l->pos != published) publish_tail(d, l);
}

/* ---- receiving ------------------------------------------------------------
 */

/* Bytes that lie in the ring. */
static size_t ready(tac__track *l)
{
    while (l->seen == l->pos) {
        l->seen = atomic_load(&l->ring->tail);
        if (l->seen == l->pos && !ask(l, &l->ring->thirsty)) return 0;
    }
    found(l, &l->ring->thirsty);
    return (size_t)(l->seen - l->pos);
}

static void get(const tac__track *l, char *dst, size_t n)
{
    const size_t at = (size_t)l->pos & (l->bytes - 1);
    const size_t before = min(n, l->bytes - at);
    memcpy(dst, l->data + at, before);
    if (n > before) memcpy(dst + before, l->data, n - before);
}

static void publish_head(tac__domain *d, tac__track *l)
{
    atomic_store(&l->ring->head, l->pos);
    if (atomic_load(&l->ring->starved)) wake(d, l);
}

static void get_header(tac__track *l, tac__message *m)
{
    header h;
    memcpy(&h, l->data + ((size_t)l->pos & (l->bytes - 1)), sizeof h);
    if (h.bytes != m->bytes || h.number != l->started) {
        l->broken = 1;
        l->wrong = h.bytes;
        return;
    }
    l->pos += sizeof h;
    l->started++;
    m->opened = 1;
}

void tac__track_refuse(tac__domain *d, const tac__track *l)
{
    char text[TAC__TEXT];
    snprintf(text, sizeof text,
             "ranks disagree: message %llu from rank %d to rank %d has %llu "
             "bytes, and rank %d expects %zu",
             (unsigned long long)l->started, l->peer, d->rank,
             (unsigned long long)l->wrong, d->rank, l->first->bytes);
    tac__domain_abort(d, TAC_ERR_MISMATCH, text);
}

void tac__track_pull(tac__domain *d, tac__track *l)
{
    const size_t quarter = l->bytes / 4;
    uint64_t published = l->pos;
    for (tac__message *m; !l->broken && (m = l->first) != NULL;) {
        size_t some = ready(l);
        if (some == 0) break;
        if (!m->opened) {
            get_header(l, m);
            if (l->broken) break;
            some -= sizeof(header);
        }
        const size_t n = min(min(some, quarter), m->bytes - m->moved);
        if (n > 0) get(l, m->buf + m->moved, n);
        m->moved += n;
        l->pos += padded(n);
        if (m->moved == m->bytes) leave(l);
        if (l->pos - published < quarter) continue;
        publish_head(d, l);
        published = l->pos;
    }
    if (l->pos != published) publish_head(d, l);
}

/* ---- to myself ------------------------------------------------------------
 */

void tac__track_match(tac__track *from, tac__track *to)
{
    while (!to->broken && from->first && to->first) {
        const tac__message *s = from->first;
        tac__message *r = to->first;
        if (s->bytes != r->bytes) {
            to->broken = 1;
            to->wrong = s->bytes;
            return;
        }
        to->started++;
        if (s->bytes > 0) memmove(r->buf, s->buf, s->bytes);
        leave(from);
        leave(to);
    }
}
