/* error.c: the first error of a communicator stays and poisons it. */
#include <stdarg.h>
#include <stdio.h>

#include "comm_impl.h"

/* 1 if this error is the first. */
static int set_error(tac_comm *c, tac_status s, const char *text)
{
    pthread_mutex_lock(&c->error_lock);
    const int first = tac__comm_status(c) == TAC_OK;
    if (first) {
        snprintf(c->error, sizeof c->error, "%s", text);
        atomic_store(&c->status, (int)s);
    }
    pthread_mutex_unlock(&c->error_lock);
    return first;
}

tac_status tac__comm_poison(tac_comm *c, tac_status s, const char *fmt, ...)
{
    char text[sizeof c->error];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!set_error(c, s, text)) return tac__comm_status(c);
    tac_fail(c->ctx, s, "%s", text);
    c->transport->abort(c->link, s, text);
    tac__bell_ring(c->bell);
    return s;
}

void tac__comm_infect(tac_comm *c, tac_status s, const char *text)
{
    if (!set_error(c, s, text)) return;
    tac_fail(c->ctx, s, "%s", text);
    tac__bell_ring(c->bell);
}

void tac_comm_abort(tac_comm *c, const char *reason)
{
    tac__comm_poison(c, TAC_ERR_ABORTED, "rank %d aborted: %.200s", c->rank,
                     reason ? reason : "no reason given");
}

tac_status tac_comm_error(const tac_comm *comm, char *buf, size_t bytes)
{
    tac_comm *c = (tac_comm *)(uintptr_t)comm;
    pthread_mutex_lock(&c->error_lock);
    const tac_status s = tac__comm_status(c);
    if (buf && bytes > 0) snprintf(buf, bytes, "%s", s ? c->error : "");
    pthread_mutex_unlock(&c->error_lock);
    return s;
}
