/* What rank 0 says on stdout: evaluations and the result. */
#include "run.h"
#include "underflow_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tacit/clock.h"

/* 0 / 0 would print as -nan. */
static double mean(double sum, double count)
{
    const double m = sum / count;

    return isnan(m) ? NAN : m;
}

int tac__report_speaks(const tac__run *run)
{
    return run->rank->rank == 0 && !run->config->quiet;
}

void tac__report_interval(tac__run *run, const tac_metrics *m)
{
    const double now = tac_clock_s(), span = now - run->logged_s;
    const double samples = (double)(run->samples - run->logged_samples);
    const tac_scaler_report *scaling = &run->replica->scaling;
    double exposed = 0;

    tac_replica_update_times(run->replica);
    if (span > 0)
        exposed =
            (run->replica->times.comm_exposed_s - run->logged_exposed_s) / span;
    if (run->rank->rank == 0 && m->count + m->nonfinite > 0) {
        const tac__progress_sample s = {.step = (int64_t)run->step,
                                        .loss = mean(m->loss_sum, m->count),
                                        .accuracy = mean(m->correct, m->count),
                                        .lr = tac_replica_lr(run->replica),
                                        .samples_per_s = samples / span,
                                        .comm_share = exposed,
                                        .scaled = scaling->updates > 0,
                                        .loss_scale = scaling->scale,
                                        .skipped = scaling->skipped};

        tac__metrics_interval(run, m, &s);
        tac__progress_show(&run->progress, &s);
    }
    run->logged_s = now;
    run->logged_samples = run->samples;
    run->logged_exposed_s = run->replica->times.comm_exposed_s;
}

void tac__report_eval(tac__run *run, const tac_metrics *m)
{
    const double loss = mean(m->loss_sum, m->count);
    const double accuracy = mean(m->correct, m->count);

    /* Evaluation is not training: the next interval starts now. */
    run->logged_s = tac_clock_s();
    if (run->rank->rank != 0) return;
    tac__metrics_eval(run, loss, accuracy);
    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    printf("epoch %.4g  step %" PRIu64 "  train loss %.4f accuracy %.2f %%  "
           "validation loss %.4f accuracy %.2f %%\n",
           (double)run->step / (double)run->epoch_steps, run->step,
           mean(run->epoch_sum.loss_sum, run->epoch_sum.count),
           100 * mean(run->epoch_sum.correct, run->epoch_sum.count), loss,
           100 * accuracy);
    fflush(stdout);
}

static void print_where(const tac_summary *s)
{
    char bytes[32];

    printf("  time       %.1f s: %.0f images/s in training; forward %.1f s, "
           "backward %.1f s, update %.1f s\n",
           s->wall_s, s->samples_per_s, s->forward_s, s->backward_s,
           s->update_s);
    if (s->syncs > 0 && s->world > 1)
        printf("  averaging  %.2f s under way, %.2f s of it exposed; %s sent "
               "by all ranks%s\n",
               s->comm_s, s->comm_exposed_s,
               tac__bytes_text((double)s->bytes_wire, bytes),
               s->oversubscribed ? " (oversubscribed: waiting contains other "
                                   "ranks' compute)"
                                 : "");
}

/* What loss scaling did, and losses that no mean contains. */
static void print_scaling(const tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (run->replica->scaling.updates > 0)
        printf("  scaling    loss scale %.10g, %" PRId64 " of %" PRId64
               " steps skipped\n",
               s->loss_scale, s->skipped_steps, s->attempts);
    if (run->nonfinite > 0)
        printf("  losses     %.0f that were inf or NaN, in skipped steps: part "
               "of no mean\n",
               run->nonfinite);
}

void tac__report_saved(tac__run *run, double seconds)
{
    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    printf("step %" PRIu64 "  saved %s/step-%08" PRIu64 " (%.2f s)\n",
           run->step, run->save_root, run->step, seconds);
    fflush(stdout);
}

/* A run that a signal ended and that can go on. */
static void print_how_to_resume(const tac__run *run)
{
    if (run->stopped && run->saving)
        printf("to go on from step %" PRIu64 ": the same command with --resume "
               "auto\n",
               run->saved_step);
}

void tac__report_result(tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    if (run->stopped)
        printf("stopped by a signal after step %" PRIu64 " of %" PRIu64 "\n",
               run->step, run->total_steps);
    print_where(s);
    print_scaling(run);
    printf("  params     hash %016" PRIx64 "%s\n", s->params_hash,
           s->world > 1 && run->replica->reducer ? ", equal on all ranks" : "");
    if (!isnan(s->test_accuracy))
        printf("test accuracy %.2f %%, loss %.4f, on %zu images\n",
               100 * s->test_accuracy, mean(s->test_loss, 1),
               tac_dataset_get_info(run->data.test).count);
    tac__underflow_print(run);
    fflush(stdout);
}

void tac__report_files(tac__run *run)
{
    const tac_train_config *c = run->config;

    if (!tac__report_speaks(run)) return;
    if (c->run_dir)
        printf("files in %s: config.ini, metrics.jsonl, summary.json%s%s\n",
               c->run_dir, run->replica->underflow ? ", underflow.svg" : "",
               run->saving ? ", checkpoints/" : "");
    if (c->json) printf("summary in %s\n", c->json);
    if (c->trace) printf("trace in %s\n", c->trace);
    if (c->record) printf("recording in %s\n", c->record);
    print_how_to_resume(run);
    fflush(stdout);
}
