/* What rank 0 says on stdout: evaluations and the result. */
#include "run.h"
#include "underflow_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tacit/clock.h"

/* 0 / 0 would print as -nan. */
static double mean(double sum, double count)
{
    const double m = sum / count;

    return isnan(m) ? NAN : m;
}

int tac__report_speaks(const tac__run *run)
{
    return run->rank->rank == 0 && !run->config->quiet && run->out;
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
                                        .skipped = scaling->skipped,
                                        .local = run->replica->local != NULL,
                                        .syncs = tac__run_syncs(run)};

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
    const double accuracy =
        tac__run_own(run, "accuracy", mean(m->correct, m->count));

    /* Evaluation is not training: the next interval starts now. */
    run->logged_s = tac_clock_s();
    if (run->rank->rank != 0) return;
    tac__metrics_eval(run, loss, accuracy);
    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    fprintf(run->out,
            "epoch %.4g  step %" PRIu64 "  train loss %.4f accuracy %.2f %%  "
            "validation loss %.4f accuracy %.2f %%",
            (double)run->step / (double)run->epoch_steps, run->step,
            mean(run->epoch_sum.loss_sum, run->epoch_sum.count),
            100 * mean(run->epoch_sum.correct, run->epoch_sum.count), loss,
            100 * accuracy);
    for (size_t i = 0; i < run->n_own; i++)
        if (strcmp(run->own[i].name, "accuracy"))
            fprintf(run->out, " %s %.6g", run->own[i].name, run->own[i].value);
    fprintf(run->out, "\n");
    fflush(run->out);
}

static void print_time(const tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (run->config->skip_compute)
        fprintf(run->out,
                "  time       %.3f s for %" PRId64 " steps of communication "
                "alone\n",
                s->train_s, s->attempts);
    else
        fprintf(run->out,
                "  time       %.1f s: %.0f images/s in training; forward %.1f "
                "s, backward %.1f s, update %.1f s\n",
                s->wall_s, s->samples_per_s, s->forward_s, s->backward_s,
                s->update_s);
}

/* The bytes are those of training, as --dry-run predicts them. */
static void print_averaging(const tac__run *run)
{
    const tac_summary *s = &run->summary;
    char bytes[32];

    if (s->workers > 1 && s->fragments > 0)
        fprintf(run->out,
                "  averaging  %" PRId64 " time%s, %.2f s; %s exchanged by all "
                "workers%s\n",
                s->syncs, s->syncs == 1 ? "" : "s", s->sync_s,
                tac__bytes_text((double)s->bytes_sync_wire, bytes),
                s->oversubscribed ? " (oversubscribed: waiting contains other "
                                    "ranks' compute)"
                                  : "");
    else if (s->syncs > 0 && s->world > 1)
        fprintf(run->out,
                "  averaging  %.2f s under way, %.2f s of it exposed; %s sent "
                "by all ranks%s\n",
                s->comm_s, s->comm_exposed_s,
                tac__bytes_text((double)s->bytes_sync_wire, bytes),
                s->oversubscribed ? " (oversubscribed: waiting contains other "
                                    "ranks' compute)"
                                  : "");
}

/* Samples of steps that late workers dropped, over the whole run. */
static void print_late(const tac__run *run)
{
    const int64_t epoch = (int64_t)tac_dataset_get_info(run->data.train).count;
    const int64_t whole = (int64_t)(run->step / run->epoch_steps);
    const int64_t rest =
        (int64_t)(run->step % run->epoch_steps) * run->summary.global_batch;
    const int64_t dealt = whole * epoch + (rest < epoch ? rest : epoch);

    if (run->summary.samples >= dealt) return;
    fprintf(run->out,
            "  late       %" PRId64 " of %" PRId64
            " samples dropped (%.1f %%): "
            "--late %s\n",
            dealt - run->summary.samples, dealt,
            100 * (1 - (double)run->summary.samples / (double)dealt),
            run->config->late);
}

/* What loss scaling did, and losses that no mean contains. */
static void print_scaling(const tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (run->replica->scaling.updates > 0)
        fprintf(run->out,
                "  scaling    loss scale %.10g, %" PRId64 " of %" PRId64
                " steps skipped\n",
                s->loss_scale, s->skipped_steps, s->attempts);
    if (run->nonfinite > 0)
        fprintf(
            run->out,
            "  losses     %.0f that were inf or NaN, in skipped steps: part "
            "of no mean\n",
            run->nonfinite);
}

void tac__report_saved(tac__run *run, double seconds)
{
    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    fprintf(run->out,
            "step %" PRIu64 "  saved %s/step-%08" PRIu64 " (%.2f s)\n",
            run->step, run->save_root, run->step, seconds);
    fflush(run->out);
}

void tac__report_best(tac__run *run, const char *checkpoint)
{
    const tac_metrics *m = &run->last_eval;

    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    fprintf(
        run->out,
        "loaded the best checkpoint, %s: eval loss %.4f, accuracy %.2f %%\n",
        checkpoint, mean(m->loss_sum, m->count),
        100 * mean(m->correct, m->count));
    fflush(run->out);
}

/* A run that a signal ended and that can go on. */
static void print_how_to_resume(const tac__run *run)
{
    if (run->stopped && run->saving)
        fprintf(run->out,
                "to go on from step %" PRIu64
                ": the same command with --resume "
                "auto\n",
                run->saved_step);
}

/* They were compared. */
static int tells_equal(const tac__run *run)
{
    return run->rank->world > 1 && run->verified;
}

void tac__report_result(tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    if (run->stopped)
        fprintf(run->out,
                "stopped by a signal after step %" PRIu64 " of %" PRIu64 "\n",
                run->step, run->total_steps);
    print_time(run);
    print_averaging(run);
    print_late(run);
    print_scaling(run);
    fprintf(run->out, "  params     hash %016" PRIx64 "%s\n", s->params_hash,
            tells_equal(run)       ? ", equal on all ranks"
            : run->rank->world > 1 ? ", of rank 0 alone"
                                   : "");
    if (!isnan(s->test_accuracy))
        fprintf(run->out, "test accuracy %.2f %%, loss %.4f, on %zu images\n",
                100 * s->test_accuracy, mean(s->test_loss, 1),
                tac_dataset_get_info(run->data.test).count);
    tac__underflow_print(run);
    fflush(run->out);
}

void tac__report_files(tac__run *run)
{
    const tac_train_config *c = run->config;

    if (!tac__report_speaks(run)) return;
    if (c->run_dir)
        fprintf(run->out,
                "files in %s: config.ini, metrics.jsonl, summary.json%s%s%s\n",
                c->run_dir, run->has_report ? ", report.html" : "",
                run->replica->underflow ? ", underflow.svg" : "",
                run->saving ? ", checkpoints/" : "");
    if (c->json) fprintf(run->out, "summary in %s\n", c->json);
    if (c->trace) fprintf(run->out, "trace in %s\n", c->trace);
    if (c->attempt_times)
        fprintf(run->out, "times of attempts in %s\n", c->attempt_times);
    if (c->record) fprintf(run->out, "recording in %s\n", c->record);
    print_how_to_resume(run);
    fflush(run->out);
}
