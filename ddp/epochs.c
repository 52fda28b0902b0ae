/* The order of training: epochs of groups of micro-steps, evaluation in
 * between, and now and then a small exchange in which ranks add up their
 * losses and agree whether to stop. */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"

tac_status tac__run_evaluate(tac__run *run, tac__part *part, tac_metrics *out)
{
    TAC_TRY(tac_replica_evaluate(run->replica, part->loader, out));
    return tac_metrics_reduce(run->rank->comm, out);
}

static tac_status evaluate(tac__run *run)
{
    tac_metrics m = {0, 0, 0};

    TAC_TRY(tac__run_evaluate(run, &run->val, &m));
    run->last_eval = m;
    run->exchanged_s = tac_clock_s();
    tac__report_eval(run, &m);
    return TAC_OK;
}

/* Is an evaluation due after `step` steps? */
static int eval_due(const tac__run *run)
{
    const char *every = run->config->eval_every;
    long long n;

    if (run->stopped) return 0;
    if (run->step >= run->total_steps) return 1;
    if (!strcmp(every, "epoch")) return run->step % run->epoch_steps == 0;
    n = atoll(every);
    return n > 0 && run->step % (uint64_t)n == 0;
}

static int log_due(const tac__run *run)
{
    return run->stopped || run->step >= run->total_steps ||
           run->step % run->epoch_steps == 0 ||
           run->step % (uint64_t)run->config->log_every == 0;
}

static void add(tac_metrics *sum, const tac_metrics *m)
{
    sum->loss_sum += m->loss_sum;
    sum->correct += m->correct;
    sum->count += m->count;
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

/* Sums over ranks of what happened since the last call; and does any rank want
 * to stop? One small allreduce, at steps that are the same on all ranks. */
static tac_status exchange(tac__run *run)
{
    tac_metrics m;
    double v[5];
    tac_req *req = NULL;

    TAC_TRY(tac_replica_take_metrics(run->replica, &m));
    v[0] = m.loss_sum;
    v[1] = m.correct;
    v[2] = m.count;
    v[3] = run->rank->stop && *run->rank->stop ? 1 : 0;
    v[4] = (tac_clock_s() - run->exchanged_s) / run->rank->world;
    TAC_TRY(
        tac_allreduce(run->rank->comm, v, v, 5, TAC_F64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    m = (tac_metrics){v[0], v[1], v[2]};
    add(&run->epoch_sum, &m);
    add(&run->interval, &m);
    if (v[3] > 0) run->stopped = 1;
    plan_exchange(run, v[4]);
    if (isfinite(m.loss_sum)) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_DIVERGED,
                    "the training loss is no longer a number at step %llu; "
                    "lower --lr, or set --clip-norm",
                    (unsigned long long)run->step);
}

/* What is due between two steps. */
static tac_status between_steps(tac__run *run)
{
    if (log_due(run) || eval_due(run) || run->step >= run->next_exchange)
        TAC_TRY(exchange(run));
    if (log_due(run)) {
        tac__report_interval(run, &run->interval);
        run->interval = (tac_metrics){0, 0, 0};
    }
    return eval_due(run) ? evaluate(run) : TAC_OK;
}

static int is_last_of_group(const tac__run *run, uint64_t batch)
{
    const uint64_t k = (uint64_t)run->config->accumulate;

    return (batch + 1) % k == 0 ||
           batch + 1 == tac_loader_batches(run->train.loader);
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
                         .samples = (double)tac_sampler_step_count(
                             run->train.sampler, group * a_step, n * k),
                         .first_sample = b->count ? b->position[0] : 0};

    return m;
}

/* One optimizer step; *done: the epoch is over. */
static tac_status one_step(tac__run *run, int *done)
{
    const double begin = tac_clock_s();
    const tac_batch *batch;
    tac_micro micro = {.last = 0};

    while (!micro.last) {
        TAC_TRY(tac_loader_next(run->train.loader, &batch));
        if (!batch) {
            *done = 1;
            return TAC_OK;
        }
        micro = place(run, batch);
        TAC_TRY(tac_replica_step(run->replica, batch, &micro));
        run->samples += (int64_t)batch->step_count;
    }
    run->step++;
    run->train_s += tac_clock_s() - begin;
    return TAC_OK;
}

static tac_status epoch(tac__run *run)
{
    int done = 0;

    run->epoch_sum = (tac_metrics){0, 0, 0};
    TAC_TRY(tac_loader_start_epoch(run->train.loader, run->epoch));
    while (run->step < run->total_steps && !run->stopped) {
        TAC_TRY(one_step(run, &done));
        if (done) break;
        TAC_TRY(between_steps(run));
    }
    return TAC_OK;
}

tac_status tac__run_epochs(tac__run *run)
{
    run->logged_s = run->exchanged_s = run->begin_s;
    run->next_exchange = 1;
    while (run->step < run->total_steps && !run->stopped) {
        TAC_TRY(epoch(run));
        run->epoch++;
    }
    return TAC_OK;
}
