/* The order of training: epochs of groups of micro-steps, evaluation in
 * between, and now and then a small exchange in which ranks add up their
 * losses and agree whether to stop. */
#include "run.h"
#include "attempt_times.h"
#include "doubt.h"
#include "local.h"
#include "replica_impl.h"
#include "save.h"

#include <math.h>
#include <stdlib.h>
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

/* Sums over ranks of what happened since the last call; and does any rank want
 * to stop? One small allreduce, at steps that are the same on all ranks. A loss
 * that is not finite ends the run unless the scaler skipped its step; then it
 * is for the scaler to say when enough were skipped. */
static tac_status exchange(tac__run *run)
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
        TAC_TRY(exchange(run));
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

static int is_last_of_group(const tac__run *run, uint64_t batch)
{
    const uint64_t k = (uint64_t)run->config->accumulate;

    return (batch + 1) % k == 0 ||
           batch + 1 == tac_loader_batches(run->train.loader);
}

/* Of a whole step of `n` a rank: over all ranks, in local modes over those of
 * this worker. */
static double samples_of(const tac__run *run, uint64_t position, size_t n)
{
    const tac_sampler *s = run->train.sampler;
    const size_t size = (size_t)run->config->worker_size;
    const size_t first = (size_t)run->rank->rank / size * size;

    if (!run->replica->local)
        return (double)tac_sampler_step_count(s, position, n);
    return (double)tac_sampler_step_count_of(s, position, n, first,
                                             first + size);
}

/* What the batch is in its group; `batch` counts from the epoch's start. */
static tac_micro place(const tac__run *run, const tac_batch *b)
{
    const uint64_t k = (uint64_t)run->config->accumulate;
    const size_t n = (size_t)run->config->batch;
    const uint64_t a_step = n * (uint64_t)run->rank->world;
    const uint64_t group = b->step - b->step % k;
    const tac_micro m = {.first = b->step == group,
                         .last = is_last_of_group(run, b->step),
                         .samples = samples_of(run, group * a_step, n * k),
                         .first_sample = b->count ? b->position[0] : 0};

    return m;
}

/* Does a worker compute this step? Not if it has no samples, or is late. */
static int is_computed(const tac__run *run, const tac_micro *micro)
{
    const tac__local *l = run->replica->local;

    return !l || (micro->samples > 0 && !l->dropping);
}

/* The samples of a step that is dropped are gone. */
static tac_status drop(tac__run *run, const tac_batch *batch,
                       const tac_micro *micro)
{
    run->dropped_samples += (double)batch->valid_count;
    if (!micro->last) return TAC_OK;
    run->replica->attempts++;
    run->replica->dropped++;
    return TAC_OK;
}

/* The micro-steps of one attempt; *done: the epoch is over. */
static tac_status attempt(tac__run *run, tac_micro *micro, int *computed,
                          int *done)
{
    const tac_batch *batch;

    while (!micro->last) {
        TAC_TRY(tac_loader_next(run->train.loader, &batch));
        if (!batch) {
            *done = 1;
            return TAC_OK;
        }
        *micro = place(run, batch);
        *computed = is_computed(run, micro);
        TAC_TRY(*computed ? tac_replica_step(run->replica, batch, micro)
                          : drop(run, batch, micro));
        run->samples += (int64_t)batch->step_count;
    }
    return TAC_OK;
}

/* With --skip-compute: a step without its batches, hence known from its place
 * alone. */
static tac_status attempt_to_send(tac__run *run, tac_micro *micro,
                                  int *computed, int *done)
{
    const uint64_t step = run->step - run->epoch * run->epoch_steps;
    const size_t n =
        (size_t)run->config->batch * (size_t)run->config->accumulate;
    const uint64_t position = step * n * (uint64_t)run->rank->world;

    *done = step >= run->epoch_steps;
    if (*done) return TAC_OK;
    *micro = (tac_micro){
        .first = 1, .last = 1, .samples = samples_of(run, position, n)};
    *computed = is_computed(run, micro);
    run->samples +=
        (int64_t)tac_sampler_step_count(run->train.sampler, position, n);
    if (*computed) return tac__replica_exchange(run->replica);
    run->replica->attempts++;
    run->replica->dropped++;
    return TAC_OK;
}

/* What each rank's own model is worth, before the last average. No part of
 * training. */
static tac_status evaluate_own(tac__run *run)
{
    tac_metrics m = TAC_METRICS_INIT;

    if (!run->replica->local || run->config->skip_compute || !run->val.loader)
        return TAC_OK;
    TAC_TRY(tac_replica_evaluate(run->replica, run->val.loader, &m));
    TAC_TRY(tac_metrics_reduce(run->rank->comm, &m));
    run->own_eval = m;
    return TAC_OK;
}

/* One attempt at an optimizer step, and what follows it in local modes; *done:
 * the epoch is over. */
static tac_status one_step(tac__run *run, int *done)
{
    double begin = tac_clock_s();
    tac_micro micro = {.last = 0};
    int computed = 1;

    TAC_TRY((run->config->skip_compute ? attempt_to_send : attempt)(
        run, &micro, &computed, done));
    if (*done) return TAC_OK;
    tac__attempt_times_note(run);
    run->train_s += tac_clock_s() - begin;
    if (run->step + 1 == run->total_steps) TAC_TRY(evaluate_own(run));
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
               ? evaluate_own(run)
               : TAC_OK;
}
