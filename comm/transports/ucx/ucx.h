/* ucx.h: what the files of the ucx transport share.
 *
 * The transport is a plug-in, libtacit_ucx.so: it links UCX and the C library,
 * and calls tacit through the bootstrap's table (tac__boot_ops).
 *
 * A communicator has a worker of its own, so nothing of another communicator
 * arrives in it; the tag says which stream of messages and from which rank. The
 * context of UCX, which knows the devices, is shared by the communicators of a
 * tac_context. One lock a communicator guards all calls on its worker; it is
 * never held while anything is waited for. */
#ifndef TACIT_COMM_UCX_H
#define TACIT_COMM_UCX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <ucp/api/ucp.h>

#include "boot.h"
#include "tacit/transport.h"

/* Streams of messages: the channels, and two of the transport's own. */
enum { TAC__UCX_NEWS = TAC_CHANNELS, TAC__UCX_GREETING };

typedef struct tac__ucx_link tac__ucx_link;

/* A message under way. */
typedef struct tac__ucx_op {
    struct tac__ucx_op *prev,
        *next; /* among those under way, or in the store */
    tac__ucx_link *link;
    void *request; /* UCX's, while it has it */
    int peer, receives;
    int done;    /* UCX has finished with it: status holds */
    int dropped; /* the caller has forgotten it */
    ucs_status_t status;
    uint64_t lost_ns;     /* when it was found to be hopeless; 0: it isn't */
    size_t bytes, length; /* a receive's: expected, and received */
} tac__ucx_op;

/* What a rank tells its peers beside the data. */
typedef struct tac__ucx_news {
    int32_t status; /* < 0: it gives up, with `text` */
    int32_t leaves; /* it has destroyed its communicator */
    uint64_t doing; /* its word (tac_transport.tell); 0: not told */
    char text[TAC__ERROR];
} tac__ucx_news;

typedef struct tac__ucx_peer {
    tac__ucx_link *link;
    ucp_ep_h ep; /* NULL: this rank itself */
    int failed;  /* the connection is lost: UCX said so, and why */
    ucs_status_t failure;
    int left; /* it has destroyed its communicator: it said so */
    _Atomic uint64_t doing;
} tac__ucx_peer;

struct tac__ucx_link {
    const tac__boot_ops *ops;
    tac_context *ctx;
    int rank, size;
    pthread_mutex_t lock; /* all below */
    ucp_worker_h worker;
    ucp_address_t *address; /* of the worker */
    int event_fd;
    tac__ucx_peer *peer; /* [size] */
    tac__ucx_op *live, *store;
    int progressed; /* since the last poll */
    int ripened;    /* a message is complete, since the last sleep */
    uint64_t progressed_ns;

    tac__ucx_news incoming, told; /* told.status < 0: a peer gives up */
    void *listening;              /* the receive of incoming */
    int arrived;                  /* incoming is complete; then these hold */
    ucs_status_t arrived_status;
    ucp_tag_recv_info_t arrived_info;
    int abort_told; /* this rank gave up and has said so */
    uint64_t doing; /* this rank's word */
};

static inline uint64_t tac__ucx_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t tac__ucx_tag(int stream, int source)
{
    return (uint64_t)stream << 32 | (uint32_t)source;
}

/* The context of UCX of a tac_context; NULL, with the reason (ucx_context.c).
 */
ucp_context_h tac__ucx_context(const tac__boot *b, char *why, size_t bytes);

/* While any is held, UCX's own log goes to stderr (ucx_log.c). */
void tac__ucx_log_retain(void);
void tac__ucx_log_release(void);
/* 1: no warnings for a while, -1: again; counted. */
void tac__ucx_log_mute(int change);

/* Worker, addresses and endpoints (ucx_open.c); closing them (ucx_close.c). */
tac_status tac__ucx_open(tac__boot *b, void *arg, const tac_comm_config *config,
                         void **state);
void tac__ucx_close(void *state, int healthy);
/* Gives what has been handed to UCX at most ns to leave. */
void tac__ucx_flush_locked(tac__ucx_link *l, uint64_t ns);

/* ---- messages (ucx_message.c); callers of *_locked hold the lock ----------
 */

tac_status tac__ucx_isend(void *state, int peer, int channel, const void *buf,
                          size_t bytes, void **op);
tac_status tac__ucx_irecv(void *state, int peer, int channel, void *buf,
                          size_t bytes, void **op);
tac_status tac__ucx_test(void *state, void **op);
void tac__ucx_cancel(void *state, void **op);
void tac__ucx_sleep(void *state, uint64_t ns);

/* How an op has ended that is done. */
tac_status tac__ucx_status_of(const tac__ucx_op *op);
/* The caller forgets it. */
void tac__ucx_drop_locked(tac__ucx_op *op);
/* Takes UCX a step; 1 if anything moved. */
int tac__ucx_progress_locked(tac__ucx_link *l);
/* Sends a copy that nobody waits for. */
void tac__ucx_post_locked(tac__ucx_link *l, int peer, int stream,
                          const void *copied, size_t bytes);

/* ---- news (ucx_news.c) ----------------------------------------------------
 */

void tac__ucx_abort(void *state, tac_status s, const char *text);
tac_status tac__ucx_poll(void *state, const char **text);
void tac__ucx_tell(void *state, uint64_t word);
uint64_t tac__ucx_heard(void *state, int r);
/* Keeps a receive for news posted, and takes what it got. */
void tac__ucx_listen_locked(tac__ucx_link *l);
/* The last words of a communicator. */
void tac__ucx_take_leave_locked(tac__ucx_link *l);

/* "tcp/eth0, sysv/memory" (ucx_describe.c). */
void tac__ucx_describe(void *state, char *buf, size_t bytes);

#endif
