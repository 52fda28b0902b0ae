/* Now and then all ranks meet: they add up their losses, and agree whether to
 * stop. One small allreduce, at steps that are the same on all ranks. */
#include "run.h"
#include "doubt.h"
#include "local.h"
#include "replica_impl.h"

#include <math.h>

#include "tacit/clock.h"

static void add(tac_metrics *sum, const tac_metrics *m)
{
    sum->loss_sum += m->loss_sum;
    sum->correct += m->correct;
    sum->count += m->count;
    sum->nonfinite += m->nonfinite;
}

/* Ranks look at each other about every quarter of a second, so that a signal
 * to one of them stops all soon. From the mean of all ranks' clocks, so that
 * all come to the same step. */
static void plan_exchange(tac__run *run, double mean_s)
{
    const double steps = (double)(run->step - run->exchanged_step);
    const double step_s = steps > 0 ? mean_s / steps : mean_s;
    const double n = step_s > 0 ? 0.25 / step_s : 1;

    run->next_exchange = run->step + (n < 1      ? 1
                                      : n > 1000 ? 1000
                                                 : (uint64_t)n);
    run->exchanged_step = run->step;
    run->exchanged_s = tac_clock_s();
}

/* What ranks tell each other: sums. */
enum {
    LOSS,
    CORRECT,
    COUNT,
    NONFINITE,
    STOP,
    SECONDS,
    GAVE_UP,
    ORIGIN,
    SYNC_WIRE,
    DROPPED,
    TOLD
};

/* The run can't go on, and all ranks know it. One message: of a rank whose own
 * gradients are to blame if there is one, else of all. */
static tac_status give_up(tac__run *run, const double told[TOLD])
{
    tac_replica *r = run->replica;
    const int to_blame = told[ORIGIN] == 0 || tac_replica_is_origin(r);
    tac_status mine = TAC_OK;

    run->rank->capture->armed = 1;
    const tac_status landed = tac__local_land(r);
    if (landed < 0)
        mine = landed;
    else if (told[GAVE_UP] == 0)
        mine = tac_fail(run->rank->ctx, TAC_ERR_DIVERGED,
                        "the training loss is no longer a number at step %llu; "
                        "lower --lr, or set --clip-norm",
                        (unsigned long long)run->step);
    else if (to_blame)
        mine = tac_replica_poll(r, NULL);
    mine = tac__agree_verdict(run->rank->comm, run->rank->capture, mine);
    run->rank->capture->armed = 0;
    return mine;
}

enum { AGREE_MS = 5000 };

/* Who sends a signal soon kills: a rank that was told to stop does not wait
 * long for the others. */
static tac_status meet(tac__run *run, tac_req *req, int stops)
{
    const tac_status s = tac_wait(req, stops ? AGREE_MS : 0);

    if (s != TAC_ERR_TIMEOUT || !stops) return s;
    return tac_fail(run->rank->ctx, s,
                    "stopped by a signal at step %llu, but not all ranks came "
                    "to that step within %d s: nothing was saved; %s",
                    (unsigned long long)run->step, AGREE_MS / 1000,
                    run->saving ? "go on from the last checkpoint with "
                                  "--resume auto"
                                : "the run is lost");
}

tac_status tac__run_meet(tac__run *run)
{
    tac_replica *r = run->replica;
    tac_metrics m;
    double v[TOLD];
    tac_req *req = NULL;

    TAC_TRY(tac_replica_take_metrics(r, &m));
    TAC_TRY(tac__mixed_poll(r));
    v[LOSS] = m.loss_sum;
    v[CORRECT] = m.correct;
    v[COUNT] = m.count;
    v[NONFINITE] = m.nonfinite;
    v[STOP] = run->rank->stop && *run->rank->stop ? 1 : 0;
    v[SECONDS] = (tac_clock_s() - run->exchanged_s) / run->rank->world;
    v[GAVE_UP] = tac__doubt_gave_up(r);
    v[ORIGIN] = tac_replica_is_origin(r);
    v[SYNC_WIRE] = (double)tac__run_totals(run).bytes_sync_wire;
    v[DROPPED] = run->dropped_samples;
    run->dropped_samples = 0;
    const int stops = v[STOP] > 0;
    TAC_TRY(tac_allreduce(run->rank->comm, v, v, TOLD, TAC_F64, TAC_SUM, NULL,
                          &req));
    TAC_TRY(meet(run, req, stops));
    m = (tac_metrics){v[LOSS], v[CORRECT], v[COUNT], v[NONFINITE]};
    add(&run->epoch_sum, &m);
    add(&run->interval, &m);
    run->nonfinite += m.nonfinite;
    run->sync_wire = (uint64_t)v[SYNC_WIRE];
    run->samples -= (int64_t)v[DROPPED];
    if (v[STOP] > 0) run->stopped = 1;
    plan_exchange(run, v[SECONDS]);
    if (isfinite(m.loss_sum) && v[GAVE_UP] == 0) return TAC_OK;
    return give_up(run, v);
}
