/* ucx_news.c: what a rank tells its peers beside the data: that it gives up and
 * why, that it leaves, what it waits in. A small message to each (16 to 784
 * bytes), for which every rank keeps a receive posted; so looking for news is
 * reading a flag. */
#include <stdio.h>
#include <string.h>

#include "transports/ucx/ucx.h"

#define ANY_SOURCE (UINT64_MAX << 32)

static size_t bytes_of(const tac__ucx_news *n)
{
    return offsetof(tac__ucx_news, text) + (*n->text ? strlen(n->text) + 1 : 0);
}

static void tell_all(tac__ucx_link *l, const tac__ucx_news *n)
{
    for (int r = 0; r < l->size; r++)
        if (r != l->rank)
            tac__ucx_post_locked(l, r, TAC__UCX_NEWS, n, bytes_of(n));
}

/* ---- telling ---------------------------------------------------------------
 */

void tac__ucx_abort(void *state, tac_status s, const char *text)
{
    tac__ucx_link *l = state;
    tac__ucx_news n = {.status = s};
    snprintf(n.text, sizeof n.text, "%s", text);
    pthread_mutex_lock(&l->lock);
    n.doing = l->doing;
    if (!l->abort_told) tell_all(l, &n);
    l->abort_told = 1;
    pthread_mutex_unlock(&l->lock);
}

void tac__ucx_tell(void *state, uint64_t word)
{
    tac__ucx_link *l = state;
    const tac__ucx_news n = {.doing = word};
    pthread_mutex_lock(&l->lock);
    l->doing = word;
    tell_all(l, &n);
    pthread_mutex_unlock(&l->lock);
}

/* A failure that was told to this rank is told on: this rank's going must not
 * look to others like a failure of its own. */
void tac__ucx_take_leave_locked(tac__ucx_link *l)
{
    tac__ucx_news n = l->told;
    n.leaves = 1;
    n.doing = 0;
    if (l->abort_told) n.status = 0, n.text[0] = '\0';
    tell_all(l, &n);
}

/* ---- hearing ---------------------------------------------------------------
 */

static void on_news(void *request, ucs_status_t s,
                    const ucp_tag_recv_info_t *info, void *arg)
{
    tac__ucx_link *l = arg;
    l->listening = NULL;
    l->arrived = 1;
    l->arrived_status = s;
    if (s == UCS_OK) l->arrived_info = *info; /* it lies in the request */
    ucp_request_free(request);
}

static void take(tac__ucx_link *l)
{
    const tac__ucx_news *n = &l->incoming;
    const uint32_t source = (uint32_t)l->arrived_info.sender_tag;
    l->arrived = 0;
    if (l->arrived_status != UCS_OK || source >= (uint32_t)l->size ||
        l->arrived_info.length < offsetof(tac__ucx_news, text))
        return;
    if (n->doing) atomic_store(&l->peer[source].doing, n->doing);
    if (n->status < 0 && l->told.status >= 0) {
        l->told = *n;
        l->told.text[sizeof l->told.text - 1] = '\0';
    }
    if (n->leaves) l->peer[source].left = 1;
}

static void post(tac__ucx_link *l)
{
    const ucp_request_param_t how = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv = on_news,
        .user_data = l,
    };
    memset(&l->incoming, 0, sizeof l->incoming);
    const ucs_status_ptr_t r =
        ucp_tag_recv_nbx(l->worker, &l->incoming, sizeof l->incoming,
                         tac__ucx_tag(TAC__UCX_NEWS, 0), ANY_SOURCE, &how);
    if (l->arrived) return; /* it was there */
    l->listening = UCS_PTR_IS_PTR(r) ? r : NULL;
}

void tac__ucx_listen_locked(tac__ucx_link *l)
{
    while (!l->listening) {
        if (l->arrived) take(l);
        post(l);
        if (!l->listening && !l->arrived) return; /* no memory; later */
    }
}

tac_status tac__ucx_poll(void *state, const char **text)
{
    tac__ucx_link *l = state;
    pthread_mutex_lock(&l->lock);
    if (!l->progressed) tac__ucx_progress_locked(l);
    l->progressed = 0;
    const tac_status s = (tac_status)l->told.status;
    pthread_mutex_unlock(&l->lock);
    if (s < 0) *text = l->told.text;
    return s < 0 ? s : TAC_OK;
}

uint64_t tac__ucx_heard(void *state, int r)
{
    tac__ucx_link *l = state;
    return atomic_load(&l->peer[r].doing);
}
