/* ucx_close.c: closing a communicator's worker, without waiting for peers.
 *
 * What has been handed to UCX gets a moment to leave (what a socket or a ring
 * has no room for waits in the process); a healthy rank's peers may still need
 * it. Then the endpoints are closed by force, receives are taken back, and the
 * worker goes with all that is left. Cost: nothing worth naming when all is
 * sent; else at most 1 s (100 ms after a failure). */
#include <stdlib.h>

#include "transports/ucx/ucx.h"

#define FLUSH_NS        UINT64_C(1000000000)
#define FLUSH_FAILED_NS UINT64_C(100000000)
#define CLOSE_NS        UINT64_C(100000000)
#define NAP_NS          50000u
#define IDLE_STEPS      4

/* Steps the worker until the request is complete, or until_ns. */
static void await(tac__ucx_link *l, ucs_status_ptr_t request, uint64_t until)
{
    if (!UCS_PTR_IS_PTR(request)) return;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    while (ucp_request_check_status(request) == UCS_INPROGRESS &&
           tac__ucx_now() < until)
        if (!ucp_worker_progress(l->worker)) nanosleep(&nap, NULL);
    ucp_request_free(request);
}

void tac__ucx_flush_locked(tac__ucx_link *l, uint64_t ns)
{
    const ucp_request_param_t how = {0};
    await(l, ucp_worker_flush_nbx(l->worker, &how), tac__ucx_now() + ns);
}

static void close_endpoints(tac__ucx_link *l)
{
    const uint64_t until = tac__ucx_now() + CLOSE_NS;
    const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                     .flags = UCP_EP_CLOSE_FLAG_FORCE};
    for (int r = 0; r < l->size; r++) {
        if (!l->peer[r].ep) continue;
        await(l, ucp_ep_close_nbx(l->peer[r].ep, &how), until);
        l->peer[r].ep = NULL;
    }
}

/* Messages that nobody has asked for are received into nothing. */
static void drain(tac__ucx_link *l)
{
    const uint64_t until = tac__ucx_now() + CLOSE_NS;
    const ucp_request_param_t how = {0};
    ucp_tag_recv_info_t info;
    ucp_tag_message_h m;
    while ((m = ucp_tag_probe_nb(l->worker, 0, 0, 1, &info)) != NULL)
        await(l, ucp_tag_msg_recv_nbx(l->worker, &info, 0, m, &how), until);
}

static int any_open(const tac__ucx_link *l)
{
    for (const tac__ucx_op *op = l->live; op; op = op->next)
        if (op->request) return 1;
    return l->listening != NULL;
}

static void cancel_receives(tac__ucx_link *l)
{
    for (tac__ucx_op *op = l->live, *next; op; op = next) {
        next = op->next; /* cancelling may release op */
        if (op->request && op->receives)
            ucp_request_cancel(l->worker, op->request);
    }
    if (l->listening) ucp_request_cancel(l->worker, l->listening);
}

/* Until UCX has given back all requests and has nothing more to do. */
static void settle(tac__ucx_link *l)
{
    const uint64_t until = tac__ucx_now() + CLOSE_NS;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (int idle = 0; idle < IDLE_STEPS && tac__ucx_now() < until;) {
        const int moved = (int)ucp_worker_progress(l->worker);
        idle = moved || any_open(l) ? 0 : idle + 1;
        if (!moved && idle == 0) nanosleep(&nap, NULL);
    }
}

static void free_ops(tac__ucx_op *op)
{
    while (op) {
        tac__ucx_op *next = op->next;
        free(op);
        op = next;
    }
}

void tac__ucx_close(void *state, int healthy)
{
    tac__ucx_link *l = state;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    if (l->worker) {
        tac__ucx_take_leave_locked(l);
        tac__ucx_flush_locked(l, healthy ? FLUSH_NS : FLUSH_FAILED_NS);
        cancel_receives(l);
        drain(l);
        close_endpoints(l);
        settle(l);
        drain(l);
        if (l->address) ucp_worker_release_address(l->worker, l->address);
        /* What a lost peer never answered UCX takes for a leak. */
        tac__ucx_log_mute(!healthy);
        ucp_worker_destroy(l->worker);
        tac__ucx_log_mute(-!healthy);
    }
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_destroy(&l->lock);
    free_ops(l->live);
    free_ops(l->store);
    free(l->peer);
    free(l);
}
