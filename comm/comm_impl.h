/* comm_impl.h: what the files of comm/ know about communicators, requests and
 * algorithms. */
#ifndef TACIT_COMM_IMPL_H
#define TACIT_COMM_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "boot.h"
#include "domain.h"
#include "kernels/reduce.h"
#include "recorder.h"
#include "sendrecv.h"
#include "tacit/comm.h"
#include "tacit/transport.h"
#include "wire.h"

/* ---- algorithms (alg_table.c, algs/) --------------------------------------
 */

/* One way to run one collective. A request is started once, stepped until it
 * is no longer INPROGRESS, and finished once, also after a failure. No function
 * blocks. All ranks choose the same algorithm, because applicable and cost
 * look only at what is equal everywhere. */
typedef struct tac__alg {
    const char *name, *doc;
    tac_coll coll;
    int (*applicable)(const tac_comm *c, const tac_req *req);
    double (*cost)(const tac_comm *c, const tac_req *req); /* seconds */
    tac_status (*start)(tac_req *req);
    tac_status (*step)(tac_req *req);
    void (*finish)(tac_req *req);
    /* Is this rank still waiting for rank r? For messages. */
    int (*waits_for)(const tac_req *req, int r);
    /* Terms are not added in flat rank order with one rounding: never under
     * `deterministic`. */
    int reorders;
} tac__alg;

/* NULL-terminated. */
extern const tac__alg *const tac__algs[];

/* The rank that messages to people name for this communicator's rank r. */
int tac__rank_shown(const tac_comm *c, int r);

/* UNSUPPORTED (reported) if `name` is given and unknown or unfit. */
tac_status tac__alg_choose(tac_comm *c, const tac_req *req, const char *name,
                           const tac__alg **out);

/* ---- requests (req.c) -----------------------------------------------------
 */

struct tac_req {
    tac_comm *comm;         /* NULL once the communicator is destroyed */
    tac_req *next;          /* in the queue, or in the free list */
    tac_req *newer, *older; /* all that tac_wait has not released */

    const tac__alg *alg;
    tac_coll coll;
    const char *src;
    char *dst;
    size_t count, esize; /* count as given to the call */
    tac_dtype dtype;
    tac_op op;
    int root;
    double prescale, postscale;
    uint64_t tag, seq;
    uint64_t record;  /* its number in the flight recorder */
    uint64_t turn_id; /* counts what entered the domain: the same on all ranks;
                         of sends and receives: their number */
    int timeout_ms;
    size_t bytes_logical, bytes_wire;

    /* What travels instead of the elements (wire.h); NULL: they themselves. */
    const tac__wire *wire;
    tac__feedback feedback;
    struct tac_codec *codec; /* the algorithm "codec" runs it */
    const struct tac_codec_layout *layout;

    _Atomic int done;
    tac_status status; /* valid once done */

    int started, warned, told, moved; /* moved: this step did something */
    uint64_t started_ns, polled_ns;
    uint64_t wait_ns, cpu_ns, between_hosts;
    int symmetric;      /* all ranks' buffers are */
    int mine_symmetric; /* this rank's are */

    /* The algorithm's own: where it is. */
    int stage, turn, fresh;
    size_t pos, chunk; /* elements finished, elements under way */
    void *plan;        /* NULL at start; what finish has to release */
    tac_req *inner;    /* under way as a part of this one, or NULL */
};

/* A request like `want`, from the communicator's store; NULL: no memory.
 * Caller holds the lock. */
tac_req *tac__req_new(tac_comm *c, const tac_req *want);
/* Checks `want`, fills in the options, chooses the algorithm, and queues a
 * copy. What the public collectives and algorithms with communicators of their
 * own (hierarchical) call. */
tac_status tac__coll_submit(tac_comm *c, tac_req *want, const tac_coll_opt *opt,
                            tac_req **out);

/* A collective as a part of another (codecs): `inner` is the caller's, filled
 * in like tac__coll_submit's `want` (src, dst, count, dtype, op, scales, wire).
 * begin chooses its algorithm and starts it; step takes it on: INPROGRESS, OK
 * (finished, inner may be reused) or the failure. Called by the step of
 * `outer`, which is first in the queue; all ranks run the same inner requests
 * in the same order. Nothing is allocated. */
tac_status tac__inner_begin(tac_req *outer, tac_req *inner);
tac_status tac__inner_step(tac_req *outer);
/* From outer's finish: ends an inner request that a failure left open. */
void tac__inner_drop(tac_req *outer);

/* Queues it, releases the lock and starts what can start. */
tac_status tac__req_submit(tac_req *req, tac_req **out);
/* Fails all requests with the communicator's error. Caller holds the lock. */
void tac__req_fail_all(tac_comm *c);
void tac__req_complete(tac_req *req, tac_status s);
/* The communicator goes: unfinished ones fail, all forget it. */
void tac__req_orphan_all(tac_comm *c);
/* "allreduce #17 (f32 x 4096, 16384 bytes, tag 3)" */
void tac__req_describe(const tac_req *req, char *buf, size_t bytes);

/* What must be equal on all ranks (algs/common.c), and the report that rank r's
 * is not. */
tac__sig tac__req_sig(const tac_req *req);
tac_status tac__sig_mismatch(tac_req *req, int r, const tac__sig *theirs);

/* Around moving and reducing `bytes` bytes: CPU seconds. */
typedef struct tac__work {
    double from;
    size_t bytes;
} tac__work;
tac__work tac__work_begin(size_t bytes);
void tac__work_end(tac_req *req, tac__work w);

/* ---- the engine of a context (engine.c) -----------------------------------
 */

typedef struct tac__engine tac__engine;

tac__engine *tac__engine_of(tac_context *ctx);
/* Starts the progress thread if the communicator wants one. */
tac_status tac__engine_add(tac__engine *e, tac_comm *c);
void tac__engine_remove(tac__engine *e, tac_comm *c);
/* Steps all communicators but `except`; returns whether anything moved. */
int tac__engine_step(tac__engine *e, tac_comm *except);
/* Looks after all: timeouts, dead peers, and parents that have failed. */
void tac__engine_watch(tac__engine *e);
/* From now on the child fails when the parent does. */
void tac__engine_adopt(tac__engine *e, tac_comm *parent, tac_comm *child);
/* New work for the progress thread. */
void tac__engine_notify(tac__engine *e);
/* A failed parent's failure becomes c's, or for NULL everyone's. */
void tac__engine_inherit(tac__engine *e, tac_comm *c);
/* Communicators with unfinished requests. */
int tac__engine_active(tac__engine *e);
/* Up to `most` others with unfinished requests; they can't go away until they
 * are unpinned. */
int tac__engine_pin_busy(tac__engine *e, const tac_comm *except, tac_comm **out,
                         int most);
void tac__engine_unpin(tac__engine *e, tac_comm *const *pinned, int n);
/* Where the progress thread sleeps. */
tac__bell *tac__engine_bell(tac__engine *e);
void tac__engine_activity(tac__engine *e, int change);

/* ---- symmetric memory (memory.c) ------------------------------------------
 */

typedef struct tac__segment {
    struct tac__segment *next;
    int64_t id;
    size_t bytes;
    char *own;            /* what the caller holds */
    tac__regions regions; /* base NULL: ordinary memory */
} tac__segment;

/* The segment that holds all of p[0..bytes); NULL if none does. */
const tac__segment *tac__segment_find(const tac_comm *c, const void *p,
                                      size_t bytes);
const tac__segment *tac__segment_by_id(const tac_comm *c, int64_t id);
void tac__segments_free(tac_comm *c);

/* ---- scratch of algorithms (scratch.c) ------------------------------------
 */

/* Messages of one direction to or from one peer, in the order started. They
 * are begun, and seen to be done, in that order. */
enum { TAC__LANE = 8 };
typedef struct tac__lane {
    void *op[TAC__LANE];
    unsigned begun, done; /* since the request began; op[k % TAC__LANE] */
} tac__lane;

/* Requests of a communicator run one at a time, so one scratch serves all. */
typedef struct tac__scratch {
    const void **srcs;    /* [size] inputs of a reduction */
    tac__lane *lanes;     /* [2 * size] sends, then receives (P2P) */
    char *staging;        /* (P2P), 64-byte aligned */
    size_t staging_bytes; /* at least what a block a message needs */
    tac__sig *sigs;       /* [size + 1] (P2P, check) */
    uint64_t program[32]; /* where the algorithm on messages is */
} tac__scratch;

/* What it takes of staging. */
size_t tac__scratch_bytes(size_t staging_bytes, int size);
tac_status tac__scratch_open(tac__scratch *s, int size, int p2p,
                             size_t staging_bytes);
/* `healthy` 0: messages may still arrive in the staging, so it is left. */
void tac__scratch_close(tac__scratch *s, int healthy);

/* ---- watching peers (liveness.c, watchdog.c) ------------------------------
 */

/* A peer on this host: its process, by descriptor (-1: by id). */
typedef struct tac__peer {
    int rank, fd;
    int64_t pid;
    uint64_t dead_ns; /* when first seen dead; 0: alive */
} tac__peer;

typedef struct tac__liveness {
    int n;
    tac__peer *peer;
    uint64_t checked_ns;
} tac__liveness;

tac_status tac__liveness_open(tac__liveness *l, const tac__hello *peers,
                              int rank, int size);
void tac__liveness_close(tac__liveness *l);
/* Rank of a dead peer without which `req` can't go on, or -1. */
int tac__liveness_check(tac__liveness *l, const tac_req *req, uint64_t now);

/* "; rank 1 (process 4711) is stopped", the first such peer of this host; "" if
 * there is none. */
void tac__liveness_stopped(const tac__liveness *l, char *buf, size_t bytes);

/* Timeouts, stall warnings and dead peers of one communicator. Call it when
 * nothing moves. */
void tac__watch(tac_comm *c);
/* Fails an unfinished request because tac_wait's timeout has passed. */
void tac__report_timeout(tac_req *req, int timeout_ms);

/* ---- statistics (stats.c) --------------------------------------------------
 */

/* Counts a request that completed now. Caller holds the lock. */
void tac__stats_count(const tac_req *req, uint64_t now);
/* Adds time that a caller spent in tac_wait. Takes the lock. */
void tac__stats_exposed(const tac_req *req, uint64_t ns);

/* ---- the communicator -----------------------------------------------------
 */

/* Each slot has room for a cache line for every rank. */
static inline size_t tac__staging_bytes(size_t wanted, int size)
{
    const size_t least = (size_t)size * 128;
    return wanted > least ? wanted : least;
}

struct tac_comm {
    tac_context *ctx;
    int rank, size, hosts;
    tac_comm_config config; /* defaults filled in; transport points to name */
    char transport_text[16];
    char why[192];
    tac__hello *peers; /* [size] */
    struct tac__levels
        *levels; /* children of a hierarchy (levels.h), or NULL */
    struct tac__choice *choice; /* costs and overrides (choice.h) */
    const int *outer_rank;      /* of a hierarchy's child: [size] the ranks that
                                   messages name; NULL: its own */

    const tac_transport *transport;
    void *link;
    tac__domain *domain;  /* NULL on other transports */
    tac__domain *under;   /* the domain, or the one under an emulated network */
    struct tac__net *net; /* emulated, shared with children; or NULL */
    int *place;     /* [size] the ranks' virtual hosts; NULL: not emulated */
    char *texts[4]; /* the configuration's strings */
    tac_transport_offer *offers;
    size_t n_offers;

    tac__engine *engine;
    tac_comm *engine_next; /* with id, pins and the parent under the engine's
                              lock */
    tac_comm *parent;      /* split off it (tac_comm_split); NULL: not, or that
                              is destroyed */
    int children;          /* split off this one, and not destroyed */
    int *roots; /* [size] ranks of what it all was split off; NULL: the same */
    uint64_t engine_id;
    int pins, listed;

    pthread_mutex_t lock; /* all below */
    tac_req *head, *tail; /* collectives, in order; the first runs */
    tac__p2p p2p;         /* sends and receives, all under way */
    _Atomic int busy;     /* has unfinished requests: counted by the engine */
    tac_req *live, *store;
    uint64_t next_seq, turns;
    tac__scratch scratch;
    tac__segment *segments;
    int64_t next_segment;
    tac__liveness liveness;
    tac_comm_stats stats;
    const tac__reduce_table *kernels;
    const tac__codec_kernels *codec_kernels;

    pthread_mutex_t error_lock;
    _Atomic int status;
    char error[TAC__ERROR];

    tac__recorder recorder;
    _Atomic uint64_t doing; /* this rank's word (recorder.h) */

    tac__bell own_bell, *bell; /* the domain's, or own_bell */
    int spins;                 /* before yielding; 0 where cores are shared */
};

/* Tells the engine if the communicator became busy or idle. Caller holds the
 * lock. */
void tac__comm_activity(tac_comm *c);
/* Takes a communicator one step; 1 if anything moved. Never blocks. */
int tac__comm_step(tac_comm *c);
/* Has a peer told us of a failure? Then it is ours. Caller holds the lock. */
int tac__comm_listen(tac_comm *c);

/* How long a waiter has found nothing to do. */
typedef struct tac__rest {
    unsigned n;
} tac__rest;

/* Rests a little: spins, yields, then sleeps until the bell rings, `req` (may
 * be NULL) is done, or until_ns. Drives while it goes to sleep if `drive`. */
void tac__comm_rest(tac_comm *c, tac__rest *r, const tac_req *req, int drive,
                    uint64_t until_ns);

/* First error wins; reports it, tells the peers. Returns the status in
 * effect. Any thread. */
tac_status tac__comm_poison(tac_comm *c, tac_status s, const char *fmt, ...)
    TAC_PRINTF(3, 4);
/* The same for what all ranks find out by themselves at the same moment: each
 * keeps its own text, rank 0 alone logs it. */
tac_status tac__comm_poison_all(tac_comm *c, tac_status s, const char *fmt, ...)
    TAC_PRINTF(3, 4);
/* A peer told us: as poison, but neither tells it on nor logs it. */
void tac__comm_infect(tac_comm *c, tac_status s, const char *text);
/* One that it was split off has failed: tells it on, and does not log it. */
void tac__comm_inherit(tac_comm *c, tac_status s, const char *text);
static inline tac_status tac__comm_status(const tac_comm *c)
{
    return (tac_status)atomic_load(&((tac_comm *)(uintptr_t)c)->status);
}

tac_status tac__config_fill(tac_context *ctx, const tac_comm_config *in,
                            tac_comm_config *out);
uint64_t tac__config_hash(const tac_comm_config *c);

/* tac_comm_create_with for a child of `parent` (NULL: none), whose emulated
 * network it is part of. */
tac_status tac__comm_create(tac_context *ctx, int rank, int size,
                            const tac_oob *oob,
                            const tac_transport_offer *offers, size_t n,
                            const tac_comm_config *config,
                            const tac_comm *parent, tac_comm **out);

/* Chooses and opens a transport; agreed (choose.c). */
tac_status tac__transport_choose(tac__boot *b, tac_comm *c);

/* tac_comm_split with another configuration of the children. */
tac_status tac__comm_split(tac_comm *c, int color, int key,
                           const tac_comm_config *config, tac_comm **out);

/* An out-of-band all-gather over a living communicator, for what is set up
 * later (boot_comm.c). */
tac_oob tac__oob_over_comm(tac_comm *c);
/* Reports an agreed failure: logged on rank 0 only. Returns s. */
tac_status tac__report_shared(tac_comm *c, tac_status s, const char *what,
                              const char *text);

#endif
