/* One rank's life: context, communicator, body. */
#include "launch_impl.h"

#include <string.h>

static tac_status make_context(tac__one_rank *self, tac_context **out)
{
    const tac_launch_config *lc = self->world->config;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;

    memset(&self->capture, 0, sizeof self->capture);
    self->capture.armed = 1;
    self->capture.rank = self->rank;
    self->capture.world = self->size;
    cc.rank = self->rank;
    cc.world = self->size;
    cc.local_ranks = self->local_ranks;
    cc.threads = lc->threads > 0 ? lc->threads : self->threads;
    cc.level = lc->quiet ? TAC_LOG_ERROR : TAC_LOG_WARN;
    cc.log = tac__capture_log;
    cc.log_arg = &self->capture;
    cc.trace_events = lc->trace_events;
    TAC_TRY(tac_context_create(&cc, out));
    return tac__capture_attach(*out, &self->capture);
}

/* A failure that the others don't know of: they must not wait for this rank. A
 * stop is something that ranks agree on. */
static void leave(tac__one_rank *self, tac_context *ctx, tac_comm *comm)
{
    char why[256];

    if (self->fate.status == TAC_ERR_INTERRUPTED) return;
    if (self->capture.agreed || tac_comm_error(comm, NULL, 0) < 0) return;
    tac_context_error(ctx, why, sizeof why);
    /* The abort has a line of its own, which says less. */
    const tac__capture kept = self->capture;

    tac_comm_abort(comm, *why ? why : tac_status_text(self->fate.status));
    self->capture = kept;
}

/* Messages in shared memory don't outlive the ranks; those that MPI has begun
 * may be waited for by MPI_Finalize. */
static int is_clean(const tac_comm *comm)
{
    const char *name = tac_comm_transport_name(comm);

    return tac_comm_error(comm, NULL, 0) >= 0 || !strcmp(name, "shm") ||
           !strcmp(name, "self") || !strcmp(name, "thread");
}

void tac__launch_rank(tac__one_rank *self)
{
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_status s = make_context(self, &ctx);

    self->alive = 1;
    if (s >= 0) s = self->connect(self, ctx, &comm);
    if (s >= 0) {
        s = self->world->body(ctx, comm, self->world->arg);
        self->fate.status = (int32_t)s;
        if (s < 0) leave(self, ctx, comm);
        self->alive = is_clean(comm);
    }
    self->fate.status = (int32_t)s;
    self->fate.told = self->capture.told && !self->capture.text[0];
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
}
