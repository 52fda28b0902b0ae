/* The order of training: epochs of attempts, and what is due in between. */
#include "run.h"
#include "attempt_times.h"
#include "local.h"
#include "save.h"

#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"

/* Is nothing left to train? */
static int is_over(const tac__run *run)
{
    return run->step >= run->total_steps || run->reached || run->halted;
}

/* Does a signal cut short what is due? A run that saves its state does as if
 * there had been none, so that it can go on as if there had been none. */
static int is_cut(const tac__run *run)
{
    return run->stopped && !run->saving;
}

/* Is an evaluation due after `step` steps? */
static int eval_due(const tac__run *run)
{
    const char *every = run->config->eval_every;
    long long n;

    if (is_cut(run) || run->config->skip_compute || !run->val.loader) return 0;
    if (run->asked.should_evaluate) return 1;
    if (!strcmp(every, "never")) return 0;
    if (run->step >= run->total_steps || run->halted) return 1;
    if (!strcmp(every, "epoch")) return run->step % run->epoch_steps == 0;
    n = atoll(every);
    return n > 0 && run->step % (uint64_t)n == 0;
}

static int log_due(const tac__run *run)
{
    return is_cut(run) || run->asked.should_log || run->halted ||
           (run->step == 1 && run->config->log_first) ||
           run->step >= run->total_steps || run->step % run->epoch_steps == 0 ||
           run->step % (uint64_t)run->config->log_every == 0;
}

/* The step is over; so may be the epoch. What callbacks of any rank want is
 * wanted by all. */
static tac_status end_step(tac__run *run)
{
    tac__callbacks_tell(run, TAC__STEP_END);
    TAC_TRY(tac__callbacks_agree(run));
    if (!is_over(run) && !run->stopped && run->step % run->epoch_steps != 0)
        return TAC_OK;
    tac__callbacks_tell(run, TAC__EPOCH_END);
    return tac__callbacks_agree(run);
}

static tac_status evaluate_now(tac__run *run)
{
    TAC_TRY(tac__run_validate(run));
    return tac__callbacks_agree(run);
}

/* What is due between two steps. */
static tac_status between_steps(tac__run *run)
{
    run->improved = 0;
    TAC_TRY(end_step(run));
    if (log_due(run) || eval_due(run) || tac__save_due(run) ||
        run->step >= run->next_exchange)
        TAC_TRY(tac__run_meet(run));
    if (log_due(run)) {
        tac__report_interval(run, &run->interval);
        tac__callbacks_tell(run, TAC__LOG);
        run->interval = (tac_metrics)TAC_METRICS_INIT;
    }
    if (eval_due(run)) TAC_TRY(evaluate_now(run));
    if (tac__save_due(run)) {
        TAC_TRY(tac__save(run));
        tac__callbacks_tell(run, TAC__SAVE);
    }
    run->asked = (tac_trainer_control){0, 0, 0, 0};
    return TAC_OK;
}

/* One attempt at an optimizer step, and what follows it in local modes; *done:
 * the epoch is over. */
static tac_status one_step(tac__run *run, int *done)
{
    double begin = tac_clock_s();
    tac_micro micro = {.last = 0};
    int computed = 1;

    TAC_TRY(tac__run_attempt(run, &micro, &computed, done));
    if (*done) return TAC_OK;
    tac__attempt_times_note(run);
    run->train_s += tac_clock_s() - begin;
    if (run->step + 1 == run->total_steps) TAC_TRY(tac__run_evaluate_own(run));
    begin = tac_clock_s();
    TAC_TRY(
        tac__local_step(run->replica, computed ? micro.samples : 0, computed));
    run->step++;
    run->train_s += tac_clock_s() - begin;
    tac__memory_measure(run);
    return TAC_OK;
}

/* From its start, or from where the checkpoint was. */
static tac_status begin_epoch(tac__run *run)
{
    const int resuming = run->resuming;

    run->resuming = 0;
    if (resuming) return tac_loader_resume(run->train.loader);
    run->epoch_sum = (tac_metrics)TAC_METRICS_INIT;
    if (run->config->skip_compute) return TAC_OK;
    return tac_loader_start_epoch(run->train.loader, run->epoch);
}

/* Has the epoch no step left? */
static int at_end(const tac__run *run)
{
    return run->step >= (run->epoch + 1) * run->epoch_steps;
}

static tac_status epoch(tac__run *run)
{
    int done = 0;

    TAC_TRY(begin_epoch(run));
    if (!at_end(run)) tac__callbacks_tell(run, TAC__EPOCH_BEGIN);
    while (!is_over(run) && !run->stopped) {
        if (!at_end(run)) tac__callbacks_tell(run, TAC__STEP_BEGIN);
        TAC_TRY(one_step(run, &done));
        if (done) break;
        TAC_TRY(between_steps(run));
    }
    return TAC_OK;
}

tac_status tac__run_epochs(tac__run *run)
{
    run->logged_s = run->exchanged_s = tac_clock_s();
    run->logged_samples = run->samples;
    run->logged_exposed_s = run->replica->before.comm_exposed_s;
    run->exchanged_step = run->step;
    run->next_exchange = run->step + 1;
    tac__attempt_times_begin(run);
    tac__target_check(run); /* a run that goes on may be there already */
    while (!is_over(run) && !run->stopped) {
        TAC_TRY(epoch(run));
        run->epoch++;
    }
    /* The end came before the last step. */
    return (run->reached || run->halted) && run->step < run->total_steps
               ? tac__run_evaluate_own(run)
               : TAC_OK;
}
