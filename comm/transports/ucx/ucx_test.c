/* ucx_test.c: taking messages on, and waiting for them without spinning.
 *
 * When a peer is lost, what is still open with it is given up when it is
 * tested; UCX itself fails only the sends. */
#include <poll.h>

#include "transports/ucx/ucx.h"

#define BATCHES       4 /* of events that one test handles */
#define GRACE_NS      UINT64_C(300000000)
#define ARM_TRIES     3
#define BUSY_SLEEP_NS UINT64_C(20000)
#define NS_PER_SECOND 1000000000u

int tac__ucx_progress_locked(tac__ucx_link *l)
{
    int moved = 0;
    for (int i = 0; i < BATCHES && ucp_worker_progress(l->worker); i++)
        moved = 1;
    l->progressed = 1;
    l->progressed_ns = tac__ucx_now();
    tac__ucx_listen_locked(l);
    return moved;
}

/* Says what is known of a peer's going; the caller says in which operation. */
static tac_status lost(const tac__ucx_op *op)
{
    const tac__ucx_link *l = op->link;
    const tac__ucx_peer *p = &l->peer[op->peer];
    if (p->left)
        l->ops->log(l->ctx, TAC_LOG_WARN,
                    "ucx: rank %d has left the communicator (destroyed it), "
                    "and rank %d waits for it",
                    op->peer, l->rank);
    else
        l->ops->log(l->ctx, TAC_LOG_WARN,
                    "ucx: rank %d has lost the connection to rank %d (%s)",
                    l->rank, op->peer,
                    ucs_status_string(p->failed ? p->failure : op->status));
    return TAC_ERR_PEER;
}

/* Who gives up says so before it goes, which tells more than its going, and
 * others pass it on; and of a process of this host comm itself finds out that
 * it died. So a loss counts when nothing was heard for a moment, unless the
 * peer has taken leave. */
static tac_status look(tac__ucx_op *op)
{
    const tac__ucx_link *l = op->link;
    const tac__ucx_peer *p = &l->peer[op->peer];
    const tac_status s = op->done               ? tac__ucx_status_of(op)
                         : p->failed || p->left ? TAC_ERR_PEER
                                                : TAC_INPROGRESS;
    if (s != TAC_ERR_PEER) return s;
    if (op->lost_ns == 0) op->lost_ns = tac__ucx_now();
    if (l->told.status < 0 ||
        (!p->left && tac__ucx_now() - op->lost_ns < GRACE_NS))
        return TAC_INPROGRESS;
    return lost(op);
}

tac_status tac__ucx_test(void *state, void **out)
{
    tac__ucx_link *l = state;
    tac__ucx_op *op = *out;
    if (!op) return TAC_OK;
    pthread_mutex_lock(&l->lock);
    if (!op->done || op->status != UCS_OK) tac__ucx_progress_locked(l);
    const tac_status s = look(op);
    if (s != TAC_INPROGRESS) {
        tac__ucx_drop_locked(op);
        *out = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

void tac__ucx_cancel(void *state, void **out)
{
    tac__ucx_link *l = state;
    tac__ucx_op *op = *out;
    *out = NULL;
    if (!op) return;
    pthread_mutex_lock(&l->lock);
    tac__ucx_drop_locked(op);
    pthread_mutex_unlock(&l->lock);
}

/* ---- sleeping ---------------------------------------------------------------
 */

enum { ARMED, NEWS_TO_LOOK_AT, BUSY };

/* ARMED: the descriptor will tell of whatever comes next. What has come
 * already, perhaps while another message was tested, is for the caller to look
 * at. */
static int arm(tac__ucx_link *l)
{
    int got = BUSY;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < ARM_TRIES && got == BUSY; i++) {
        if (l->ripened)
            got = NEWS_TO_LOOK_AT;
        else if (ucp_worker_arm(l->worker) == UCS_OK)
            got = ARMED;
        else if (tac__ucx_progress_locked(l))
            got = NEWS_TO_LOOK_AT;
    }
    l->ripened = 0;
    pthread_mutex_unlock(&l->lock);
    return got;
}

void tac__ucx_sleep(void *state, uint64_t ns)
{
    tac__ucx_link *l = state;
    struct pollfd f = {.fd = l->event_fd, .events = POLLIN};
    const int got = arm(l);
    if (got == NEWS_TO_LOOK_AT) return;
    if (got == BUSY && ns > BUSY_SLEEP_NS) ns = BUSY_SLEEP_NS;
    const struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SECOND),
                               .tv_nsec = (long)(ns % NS_PER_SECOND)};
    (void)ppoll(&f, got == ARMED, &t, NULL);
}
