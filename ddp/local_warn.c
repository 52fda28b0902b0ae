/* Intervals that a run is too short for: allowed, but hardly what was meant. */
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int is_fixed(const tac_train_config *c)
{
    return !strcmp(c->sync_schedule, "fixed") && !c->sync_levels;
}

/* post-local averages every step until its start. */
static int warns_of_start(const tac__run *run)
{
    const tac_train_config *c = run->config;

    if (isnan(c->sync_start) || c->sync_start < (double)run->total_steps)
        return 0;
    tac_log(run->rank->ctx, TAC_LOG_WARN,
            "--sync-start %.0f is not before the end of the run, which has "
            "%" PRIu64 " steps: each of them ends in an average, and "
            "--sync-every is never used",
            c->sync_start, run->total_steps);
    return 1;
}

void tac__local_warn(const tac__run *run)
{
    const tac_train_config *c = run->config;
    const uint64_t every = (uint64_t)c->sync_every, steps = run->total_steps;

    if (!tac_train_config_is_local(c) || steps == 0 || warns_of_start(run))
        return;
    if (!is_fixed(c) || !strcmp(c->sync, "oneshot")) return;
    if (every > steps)
        tac_log(run->rank->ctx, TAC_LOG_WARN,
                "--sync-every %" PRIu64 " is longer than the run, which has "
                "%" PRIu64 " steps: replicas are averaged once, at its end",
                every, steps);
    else if (run->epoch_steps > 0 && every > run->epoch_steps)
        tac_log(run->rank->ctx, TAC_LOG_WARN,
                "--sync-every %" PRIu64 " is longer than an epoch, which has "
                "%" PRIu64 " steps: ranks see their samples more than once "
                "between two averages",
                every, run->epoch_steps);
}
