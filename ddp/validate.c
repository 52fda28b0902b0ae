/* Evaluation between steps: how good is the model, and is it the best so far?
 */
#include "run.h"
#include "local.h"

#include <math.h>
#include <string.h>

#include "tacit/clock.h"

/* In local modes of the averaged model. */
tac_status tac__run_evaluate(tac__run *run, tac__part *part, tac_metrics *out)
{
    TAC_TRY(tac__local_show_mean(run->replica));
    TAC_TRY(part == &run->val && run->own_metrics
                ? tac__run_measure(run, part, out)
                : tac_replica_evaluate(run->replica, part->loader, out));
    TAC_TRY(tac__local_hide_mean(run->replica));
    return tac_metrics_reduce(run->rank->comm, out);
}

/* What --best-metric names, of the last evaluation; NaN: nothing. */
static double metric(const tac__run *run)
{
    const tac_metrics *m = &run->last_eval;
    const char *name = run->config->best_metric;

    if (!strncmp(name, "eval_", 5)) name += 5;
    if (!strcmp(name, "loss")) return m->loss_sum / m->count;
    return tac__run_own(run, name,
                        strcmp(name, "accuracy") ? NAN : m->correct / m->count);
}

static void note_best(tac__run *run)
{
    const double now = metric(run), best = run->best_metric;
    const int lower = tac_checkpoint_is_lower_better(run->config->best_metric);

    run->improved =
        !isnan(now) && (isnan(best) || (lower ? now < best : now > best));
    if (run->improved) run->best_metric = now;
}

tac_status tac__run_validate(tac__run *run)
{
    tac_metrics m = TAC_METRICS_INIT;

    TAC_TRY(tac__run_evaluate(run, &run->val, &m));
    run->last_eval = m;
    run->evaluated_step = run->step;
    run->exchanged_s = tac_clock_s();
    note_best(run);
    tac__report_eval(run, &m);
    tac__target_check(run);
    tac__callbacks_tell(run, TAC__EVALUATE);
    return TAC_OK;
}

/* No part of training. */
tac_status tac__run_evaluate_own(tac__run *run)
{
    tac_metrics m = TAC_METRICS_INIT;

    if (!run->replica->local || run->config->skip_compute || !run->val.loader)
        return TAC_OK;
    TAC_TRY(tac_replica_evaluate(run->replica, run->val.loader, &m));
    TAC_TRY(tac_metrics_reduce(run->rank->comm, &m));
    run->own_eval = m;
    return TAC_OK;
}
