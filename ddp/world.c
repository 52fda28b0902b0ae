/* What thread worlds and MPI worlds have in common. */
#include "world.h"

#include <string.h>

int tac__exit_code(tac_status s)
{
    switch (s) {
    case TAC_OK: return 0;
    case TAC_ERR_ARG:
    case TAC_ERR_CONFIG:
    case TAC_ERR_DATA:
    case TAC_ERR_IO:
    case TAC_ERR_MISMATCH:
    case TAC_ERR_UNSUPPORTED: return 2;
    case TAC_ERR_DIVERGED: return 3;
    case TAC_ERR_TIMEOUT: return 124;
    default: return 1;
    }
}

tac_context_config tac__world_context_config(const tac__world *w,
                                             tac__capture *c, int rank,
                                             int world, int local_ranks)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;

    memset(c, 0, sizeof *c);
    c->armed = 1;
    c->rank = rank;
    c->world = world;
    cc.rank = rank;
    cc.world = world;
    cc.local_ranks = local_ranks;
    cc.threads = (int)w->config->threads;
    cc.level = w->config->quiet ? TAC_LOG_ERROR : TAC_LOG_WARN;
    cc.log = tac__capture_log;
    cc.log_arg = c;
    if (w->config->trace) cc.trace_events = (size_t)1 << 18;
    return cc;
}

tac_comm_config tac__world_comm_config(const tac_train_config *c)
{
    tac_comm_config cc = TAC_COMM_CONFIG_INIT;

    cc.transport = c->transport;
    cc.emulate = c->emulate;
    cc.timeout_ms = (int)(c->timeout_s * 1000);
    cc.stall_warn_ms = (int)(c->stall_warn_s * 1000);
    cc.deterministic = c->deterministic;
    cc.progress = strcmp(c->progress, "thread") ? TAC_PROGRESS_CALLER
                                                : TAC_PROGRESS_THREAD;
    return cc;
}
