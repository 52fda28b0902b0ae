/* channel.c: the queues of messages of a rank of a domain (see channel.h). */
#include "transports/channel.h"

#include <stdlib.h>

#include "domain.h"
#include "tacit/transport.h"
#include "transports/channel_ring.h"

#define ALL_RINGS  ((size_t)512 << 10)
#define LEAST_RING ((size_t)4 << 10)
#define MOST_RING  ((size_t)256 << 10)

enum { SENDS = 0, RECEIVES, DIRECTIONS };

struct tac__channels {
    tac__domain *domain;
    int rank, size;
    tac__track *track; /* [size][TAC_CHANNELS][DIRECTIONS] */
    tac__track **busy; /* tracks with messages */
    int n_busy;
    tac__message *store;
};

static tac__track *track_of(const tac__channels *c, int peer, int channel,
                            int direction)
{
    return &c->track[(peer * TAC_CHANNELS + channel) * DIRECTIONS + direction];
}

/* ---- where the rings are --------------------------------------------------
 */

static size_t ring_bytes(int size, int channel)
{
    size_t bytes = MOST_RING;
    const size_t share = ALL_RINGS / (size_t)(size - 1);
    while (bytes > LEAST_RING && bytes > share) bytes /= 2;
    if (channel == TAC_CHANNEL_USER && bytes / 4 >= LEAST_RING)
        return bytes / 4;
    return channel == TAC_CHANNEL_USER ? LEAST_RING : bytes;
}

/* Of one peer: for each channel a ring and its bytes. */
static size_t pair_bytes(int size)
{
    size_t n = 0;
    for (int ch = 0; ch < TAC_CHANNELS; ch++)
        n += sizeof(tac__ring) + ring_bytes(size, ch);
    return n;
}

size_t tac__channels_bytes(int size)
{
    return size == 1 ? 0 : pair_bytes(size) * (size_t)(size - 1);
}

/* In `to`'s region, its peers' rings are in the order of ranks. */
static void find_ring(tac__channels *c, tac__track *l, size_t offset, int from,
                      int to)
{
    const size_t nth = (size_t)(from < to ? from : from - 1);
    char *p = c->domain->regions.base[to] + offset + nth * pair_bytes(c->size);
    for (int ch = 0; ch < l->channel; ch++)
        p += sizeof(tac__ring) + ring_bytes(c->size, ch);
    l->ring = (tac__ring *)(void *)p;
    l->data = p + sizeof(tac__ring);
    l->bytes = ring_bytes(c->size, l->channel);
}

/* ---- life -----------------------------------------------------------------
 */

tac__channels *tac__channels_new(int rank, int size)
{
    const size_t n = (size_t)size * TAC_CHANNELS * DIRECTIONS;
    tac__channels *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->rank = rank;
    c->size = size;
    c->track = calloc(n, sizeof *c->track);
    c->busy = calloc(n, sizeof(tac__track *));
    if (c->track && c->busy) return c;
    tac__channels_free(c);
    return NULL;
}

void tac__channels_attach(tac__channels *c, tac__domain *d, size_t offset)
{
    c->domain = d;
    for (int r = 0; r < c->size; r++)
        for (int ch = 0; ch < TAC_CHANNELS; ch++)
            for (int dir = 0; dir < DIRECTIONS; dir++) {
                tac__track *l = track_of(c, r, ch, dir);
                l->peer = r;
                l->channel = ch;
                l->sends = dir == SENDS;
                if (r == c->rank) continue;
                find_ring(c, l, offset, l->sends ? c->rank : r,
                          l->sends ? r : c->rank);
            }
}

static void free_messages(tac__message *m)
{
    while (m) {
        tac__message *next = m->next;
        free(m);
        m = next;
    }
}

void tac__channels_free(tac__channels *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_busy; i++) free_messages(c->busy[i]->first);
    free_messages(c->store);
    free(c->busy);
    free(c->track);
    free(c);
}

/* ---- messages -------------------------------------------------------------
 */

static void unlist(tac__channels *c, const tac__track *l)
{
    c->busy[l->place] = c->busy[--c->n_busy];
    c->busy[l->place]->place = l->place;
}

static void progress_track(tac__channels *c, tac__track *l)
{
    if (l->peer == c->rank)
        tac__track_match(track_of(c, c->rank, l->channel, SENDS),
                         track_of(c, c->rank, l->channel, RECEIVES));
    else if (l->sends)
        tac__track_push(c->domain, l);
    else
        tac__track_pull(c->domain, l);
}

/* Backwards, because a track that is done is replaced by the last one. */
static void sweep(tac__channels *c)
{
    for (int i = c->n_busy - 1; i >= 0; i--)
        if (!c->busy[i]->first) unlist(c, c->busy[i]);
}

static void progress(tac__channels *c)
{
    for (int i = 0; i < c->n_busy; i++) progress_track(c, c->busy[i]);
    sweep(c);
}

static void append(tac__channels *c, tac__track *l, tac__message *m)
{
    if (l->last) {
        l->last->next = m;
    } else {
        l->first = m;
        l->place = c->n_busy;
        c->busy[c->n_busy++] = l;
    }
    l->last = m;
}

/* If nothing is before it, as much as possible is moved at once. */
static tac_status begin(tac__channels *c, tac__track *l, char *buf,
                        size_t bytes, void **op)
{
    tac__message *m = c->store;
    if (m)
        c->store = m->next;
    else
        m = malloc(sizeof *m);
    if (!m) return TAC_ERR_NOMEM;
    *m = (tac__message){.track = l, .buf = buf, .bytes = bytes};
    append(c, l, m);
    if (l->first == m) {
        progress_track(c, l);
        sweep(c);
    }
    *op = m;
    return TAC_OK;
}

tac_status tac__channel_isend(void *domain, int peer, int channel,
                              const void *buf, size_t bytes, void **op)
{
    tac__channels *c = ((tac__domain *)domain)->channels;
    return begin(c, track_of(c, peer, channel, SENDS), (char *)(uintptr_t)buf,
                 bytes, op);
}

tac_status tac__channel_irecv(void *domain, int peer, int channel, void *buf,
                              size_t bytes, void **op)
{
    tac__channels *c = ((tac__domain *)domain)->channels;
    return begin(c, track_of(c, peer, channel, RECEIVES), buf, bytes, op);
}

static void release(tac__channels *c, void **op)
{
    tac__message *m = *op;
    m->next = c->store;
    c->store = m;
    *op = NULL;
}

tac_status tac__channel_test(void *domain, void **op)
{
    tac__channels *c = ((tac__domain *)domain)->channels;
    const tac__message *m = *op;
    if (!m) return TAC_OK;
    if (!m->done) progress(c);
    if (!m->done && m->track->broken && m == m->track->first)
        tac__track_refuse(c->domain, m->track);
    if (!m->done) return TAC_INPROGRESS;
    release(c, op);
    return TAC_OK;
}

/* The ring may be left in the middle of a message: nothing more goes through
 * it after a failure. */
void tac__channel_cancel(void *domain, void **op)
{
    tac__channels *c = ((tac__domain *)domain)->channels;
    tac__message *m = *op, *before = NULL;
    tac__track *l = m->track;
    if (!m->done) {
        l->broken = 1;
        tac__message **at = &l->first;
        while (*at != m) {
            before = *at;
            at = &before->next;
        }
        *at = m->next;
        if (l->last == m) l->last = before;
        if (!l->first) unlist(c, l);
    }
    release(c, op);
}
