/* recorder.c: keeping the records (see recorder.h). */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm_impl.h"
#include "tacit/clock.h"

#define DEFAULT_ENTRIES 256
#define MOST_ENTRIES    (1 << 20)

static int64_t unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The program's word counts for more than the environment's. */
static const char *dump_path(const tac_comm_config *config)
{
    const char *path = config->dump ? config->dump : getenv("TACIT_COMM_DUMP");
    return path && *path ? path : NULL;
}

static tac_status open_ring(tac__recorder *r, int entries)
{
    if (entries < 0) return TAC_OK;
    if (entries == 0) entries = DEFAULT_ENTRIES;
    if (entries > MOST_ENTRIES) entries = MOST_ENTRIES;
    r->ring = calloc((size_t)entries, sizeof *r->ring);
    r->capacity = (uint64_t)entries;
    return r->ring ? TAC_OK : TAC_ERR_NOMEM;
}

tac_status tac__recorder_open(tac_comm *c)
{
    tac__recorder *r = &c->recorder;
    const char *path = dump_path(&c->config);
    r->created_ns = tac_clock_ns();
    r->created_unix = unix_ns();
    c->config.dump = NULL;
    TAC_TRY(open_ring(r, c->config.recorder));
    if (!path || !r->ring) return TAC_OK;
    r->dump = strdup(path);
    c->config.dump = r->dump;
    return r->dump ? TAC_OK : TAC_ERR_NOMEM;
}

void tac__recorder_close(tac_comm *c)
{
    free(c->recorder.ring);
    free(c->recorder.dump);
    pthread_mutex_destroy(&c->recorder.lock);
}

static const char *wire_of(const tac_req *req)
{
    return req->codec ? "codec" : req->wire ? req->wire->name : NULL;
}

void tac__note_submitted(tac_req *req)
{
    tac__recorder *r = &req->comm->recorder;
    if (!r->ring) return;
    const tac__record e = {.seq = req->seq,
                           .count = req->count,
                           .bytes = req->bytes_logical,
                           .tag = req->tag,
                           .coll = req->coll,
                           .dtype = req->dtype,
                           .op = req->op,
                           .peer = req->root,
                           .timeout_ms = req->timeout_ms,
                           .algorithm = req->alg ? req->alg->name : NULL,
                           .wire = wire_of(req),
                           .created_ns = tac_clock_ns()};
    pthread_mutex_lock(&r->lock);
    tac__record *at = &r->ring[r->next % r->capacity];
    *at = e;
    at->id = req->record = r->next++;
    pthread_mutex_unlock(&r->lock);
}

/* The request's record, unless newer ones have taken its place. */
static tac__record *find(tac__recorder *r, const tac_req *req)
{
    tac__record *e = &r->ring[req->record % r->capacity];
    return e->id == req->record ? e : NULL;
}

/* Peers see collectives only: sends and receives have an order of their own. */
static void tell(const tac_req *req, int finished)
{
    tac_comm *c = req->comm;
    const uint64_t word = tac__doing_word(req->coll, req->seq, finished);
    if (req->coll == TAC_COLL_SEND || req->coll == TAC_COLL_RECV) return;
    atomic_store_explicit(&c->doing, word, memory_order_relaxed);
    if (c->transport->flags & TAC_TRANSPORT_TELLS)
        c->transport->tell(c->link, word);
}

void tac__note_started(const tac_req *req)
{
    tac__recorder *r = &req->comm->recorder;
    tell(req, 0);
    if (!r->ring) return;
    pthread_mutex_lock(&r->lock);
    tac__record *e = find(r, req);
    if (e) {
        e->state = TAC__STARTED;
        e->started_ns = req->started_ns;
    }
    pthread_mutex_unlock(&r->lock);
}

void tac__note_completed(const tac_req *req, tac_status s, uint64_t now)
{
    tac__recorder *r = &req->comm->recorder;
    if (s == TAC_OK) tell(req, 1);
    if (!r->ring) return;
    pthread_mutex_lock(&r->lock);
    tac__record *e = find(r, req);
    if (e) {
        e->state = s == TAC_OK ? TAC__COMPLETED : TAC__FAILED;
        e->status = s;
        e->completed_ns = now;
    }
    pthread_mutex_unlock(&r->lock);
}
