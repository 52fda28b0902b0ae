/* boot_comm.c: the bootstrap's all-gather over a living communicator, and what
 * set-up code asks of it. */
#include "agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"

/* The buffers are copies, because messages of a failed request may arrive until
 * the communicator is destroyed: then they are left behind. */
typedef struct gather {
    tac_req *req;
    void *recv;
    size_t bytes, size;
    char *copy; /* contribution, then everybody's */
} gather;

static tac_status start(void *arg, const void *send, void *recv, size_t bytes,
                        void **op)
{
    tac_comm *c = arg;
    gather *g = calloc(1, sizeof *g);
    if (!g) return TAC_ERR_NOMEM;
    *g = (gather){.recv = recv, .bytes = bytes, .size = (size_t)c->size};
    g->copy = malloc(bytes * (g->size + 1) + 1);
    if (!g->copy) {
        free(g);
        return TAC_ERR_NOMEM;
    }
    memcpy(g->copy, send, bytes);
    const tac_status s = tac_allgather(c, g->copy, g->copy + bytes, bytes,
                                       TAC_U8, NULL, &g->req);
    if (s < 0) {
        free(g->copy);
        free(g);
        return s;
    }
    *op = g;
    return TAC_OK;
}

static tac_status test(void *arg, void *op)
{
    gather *g = op;
    const tac_comm *c = arg;
    int done = 0;
    tac_test(g->req, &done);
    if (!done) return TAC_INPROGRESS;
    const tac_status s = tac_wait(g->req, 0);
    if (s == TAC_OK) memcpy(g->recv, g->copy + g->bytes, g->bytes * g->size);
    if (s == TAC_OK || (c->transport->flags & TAC_TRANSPORT_CLEAN))
        free(g->copy);
    free(g);
    return s;
}

static void cancel(void *arg, void *op)
{
    gather *g = op;
    tac_comm *c = arg;
    tac__comm_poison(c, TAC_ERR_TIMEOUT,
                     "an agreement timed out on rank %d: not all ranks take "
                     "part",
                     c->rank);
    tac_wait(g->req, 0);
    if (c->transport->flags & TAC_TRANSPORT_CLEAN) free(g->copy);
    free(g);
}

tac_oob tac__oob_over_comm(tac_comm *c)
{
    return (tac_oob){sizeof(tac_oob), start, test, cancel, c};
}

tac_status tac__report_shared(tac_comm *c, tac_status s, const char *what,
                              const char *text)
{
    if (c->rank == 0) return tac_fail(c->ctx, s, "%s: %s", what, text);
    return tac_fail_quiet(c->ctx, s, "%s: %s", what, text);
}

tac_status tac__comm_agree(tac_comm *c, tac_status mine, const char *text)
{
    tac__boot b;
    const tac_oob oob = tac__oob_over_comm(c);
    TAC_TRY(tac__comm_status(c));
    TAC_TRY(tac__boot_init(&b, c->ctx, c->rank, c->size, &oob,
                           c->config.timeout_ms));
    b.reports = 1;
    if (text)
        snprintf(b.text, sizeof b.text, "%s", text);
    else
        tac_context_error(c->ctx, b.text, sizeof b.text);
    const tac_status s = tac__boot_agree(&b, mine);
    if (s < 0 && tac__comm_status(c) == TAC_OK) {
        if (c->rank == 0)
            tac_fail(c->ctx, s, "%s", b.text);
        else
            tac_fail_quiet(c->ctx, s, "%s", b.text);
    }
    tac__boot_free(&b);
    return s;
}

tac_status tac__comm_exchange(tac_comm *c, const void *send, void *recv,
                              size_t bytes)
{
    tac_req *req = NULL;
    TAC_TRY(tac_allgather(c, send, recv, bytes, TAC_U8, NULL, &req));
    return tac_wait(req, 0);
}
