/* ucx_message.c: starting to send and to receive.
 *
 * A tag is the stream and the sender's rank, so messages of a pair and channel
 * stay in order, as UCX keeps those of one tag. A message that is complete at
 * once has no op. */
#include <stdlib.h>
#include <string.h>

#include "transports/ucx/ucx.h"

#define ALL_BITS UINT64_MAX
#define PAUSE_NS UINT64_C(5000000)

/* ---- ops -------------------------------------------------------------------
 */

static tac__ucx_op *new_op(tac__ucx_link *l, int peer, size_t extra)
{
    tac__ucx_op *op = extra ? NULL : l->store;
    if (op)
        l->store = op->next;
    else
        op = malloc(sizeof *op + extra);
    if (!op) return NULL;
    memset(op, 0, sizeof *op);
    op->link = l;
    op->peer = peer;
    return op;
}

static void enlist(tac__ucx_op *op)
{
    tac__ucx_link *l = op->link;
    op->next = l->live;
    if (l->live) l->live->prev = op;
    l->live = op;
}

static void unlist(tac__ucx_op *op)
{
    if (op->prev)
        op->prev->next = op->next;
    else
        op->link->live = op->next;
    if (op->next) op->next->prev = op->prev;
}

static void store(tac__ucx_op *op)
{
    op->next = op->link->store;
    op->link->store = op;
}

/* UCX has finished with it, perhaps before the call that started it returns.
 * What nobody waits for goes. */
static void finished(tac__ucx_op *op, void *request, ucs_status_t s)
{
    ucp_request_free(request);
    op->request = NULL;
    op->status = s;
    op->done = 1;
    op->link->ripened = 1;
    if (!op->dropped) return;
    unlist(op);
    free(op);
}

static void on_sent(void *request, ucs_status_t s, void *arg)
{
    finished(arg, request, s);
}

static void on_received(void *request, ucs_status_t s,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    tac__ucx_op *op = arg;
    if (s == UCS_OK) op->length = info->length;
    finished(op, request, s);
}

tac_status tac__ucx_status_of(const tac__ucx_op *op)
{
    switch (op->status) {
    case UCS_OK:
        return op->receives && op->length != op->bytes ? TAC_ERR_MISMATCH
                                                       : TAC_OK;
    case UCS_ERR_MESSAGE_TRUNCATED: return TAC_ERR_MISMATCH;
    case UCS_ERR_NO_MEMORY: return TAC_ERR_NOMEM;
    default: return TAC_ERR_PEER;
    }
}

void tac__ucx_drop_locked(tac__ucx_op *op)
{
    tac__ucx_link *l = op->link;
    if (!op->request) {
        unlist(op);
        store(op);
        return;
    }
    op->dropped = 1;
    /* A send can't be taken back; a receive may be gone when this returns. */
    if (op->receives) ucp_request_cancel(l->worker, op->request);
}

/* What UCX answered to a new operation. A failure is told by the test. */
static tac_status started(tac__ucx_op *op, ucs_status_ptr_t request, void **out)
{
    if (UCS_PTR_IS_PTR(request) && !op->done) {
        op->request = request;
    } else {
        if (!op->done) op->status = UCS_PTR_STATUS(request);
        op->done = 1;
    }
    if (op->done && tac__ucx_status_of(op) == TAC_OK) {
        store(op);
        *out = NULL;
        return TAC_OK;
    }
    enlist(op);
    *out = op;
    return TAC_OK;
}

/* Before the first message after a pause: a peer may have gone meanwhile, and
 * writing to a closed socket loses what is still unread in it, which may be the
 * reason. */
static void look_around(tac__ucx_link *l)
{
    if (tac__ucx_now() - l->progressed_ns > PAUSE_NS)
        tac__ucx_progress_locked(l);
}

/* Nothing goes to a lost peer: the op stays open until it is tested. */
static tac_status hopeless(tac__ucx_op *op, void **out)
{
    enlist(op);
    *out = op;
    return TAC_OK;
}

/* ---- starting ---------------------------------------------------------------
 */

static ucs_status_ptr_t send_now(tac__ucx_op *op, int stream, const void *buf,
                                 size_t bytes)
{
    const tac__ucx_link *l = op->link;
    const ucp_request_param_t how = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_sent,
        .user_data = op,
    };
    const uint64_t tag = tac__ucx_tag(stream, l->rank);
    ucp_ep_h ep = l->peer[op->peer].ep;
    return stream == TAC__UCX_GREETING
               ? ucp_tag_send_sync_nbx(ep, buf, bytes, tag, &how)
               : ucp_tag_send_nbx(ep, buf, bytes, tag, &how);
}

/* UCX 1.13 tells the length to the callback only, so there is always one. */
static ucs_status_ptr_t receive_now(tac__ucx_op *op, int stream, void *buf)
{
    const tac__ucx_link *l = op->link;
    const ucp_request_param_t how = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv = on_received,
        .user_data = op,
    };
    return ucp_tag_recv_nbx(l->worker, buf, op->bytes,
                            tac__ucx_tag(stream, op->peer), ALL_BITS, &how);
}

tac_status tac__ucx_isend(void *state, int peer, int channel, const void *buf,
                          size_t bytes, void **out)
{
    tac__ucx_link *l = state;
    tac_status s = TAC_ERR_NOMEM;
    pthread_mutex_lock(&l->lock);
    look_around(l);
    tac__ucx_op *op = new_op(l, peer, 0);
    if (op && (l->peer[peer].failed || l->told.status < 0))
        s = hopeless(op, out);
    else if (op)
        s = started(op, send_now(op, channel, buf, bytes), out);
    pthread_mutex_unlock(&l->lock);
    return s;
}

tac_status tac__ucx_irecv(void *state, int peer, int channel, void *buf,
                          size_t bytes, void **out)
{
    tac__ucx_link *l = state;
    tac_status s = TAC_ERR_NOMEM;
    pthread_mutex_lock(&l->lock);
    tac__ucx_op *op = new_op(l, peer, 0);
    if (op) {
        op->receives = 1;
        op->bytes = bytes;
        s = started(op, receive_now(op, channel, buf), out);
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

void tac__ucx_post_locked(tac__ucx_link *l, int peer, int stream,
                          const void *copied, size_t bytes)
{
    if (l->peer[peer].failed || !l->peer[peer].ep) return;
    tac__ucx_op *op = new_op(l, peer, bytes);
    if (!op) return;
    memcpy(op + 1, copied, bytes);
    op->dropped = 1;
    op->request = send_now(op, stream, op + 1, bytes);
    if (UCS_PTR_IS_PTR(op->request))
        enlist(op);
    else
        free(op);
}
