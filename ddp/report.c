/* What rank 0 says: results on stdout, one line of JSON an interval. */
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tacit/clock.h"
#include "tacit/kernels.h"

static int speaks(const tac__run *run)
{
    return run->rank->rank == 0 && !run->config->quiet;
}

/* "1.61 MiB". */
static const char *bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;

    while (bytes >= 1024 && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 32, u ? "%.2f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

static void print_data(const tac__run *run)
{
    printf("tacit %s: %s, %zu parameters, on %s (%zu training, %zu "
           "validation, %zu test samples)\n",
           TAC_VERSION_STRING, run->config->model,
           tac_params_elements(run->replica->params), run->config->data,
           tac_dataset_get_info(run->data.train).count,
           tac_dataset_get_info(run->data.val).count,
           tac_dataset_get_info(run->data.test).count);
}

static void print_ranks(const tac__run *run)
{
    const tac__rank *rank = run->rank;
    const int hosts = tac_comm_hosts(rank->comm);

    printf("  ranks      %d on %d host%s, transport %s (%s)%s\n", rank->world,
           hosts, hosts == 1 ? "" : "s", tac_comm_transport_name(rank->comm),
           tac_comm_transport_why(rank->comm),
           rank->local_ranks * tac_context_threads(rank->ctx) > rank->cpus
               ? ", oversubscribed"
               : "");
    printf("  compute    %s, %d thread%s a rank, %d CPUs here, kernels %s\n",
           tac_device_name(run->replica->device),
           tac_context_threads(rank->ctx),
           tac_context_threads(rank->ctx) == 1 ? "" : "s", rank->cpus,
           tac_device_kernels(run->replica->device, TAC_F32)->names);
}

static void print_buckets(const tac__run *run)
{
    char text[32];
    size_t n;

    if (!run->replica->reducer) {
        printf("  buckets    none: replicas are not averaged\n");
        return;
    }
    n = tac_reducer_buckets(run->replica->reducer);
    printf("  buckets    %zu:", n);
    for (size_t b = 0; b < n && b < 8; b++) {
        tac_bucket_view view;

        if (tac_reducer_bucket(run->replica->reducer, b, &view) < 0) break;
        printf(" %s%s", bytes_text((double)view.bytes, text),
               b + 1 < n ? "," : "");
    }
    printf("%s of gradients\n", n > 8 ? " ..." : "");
}

static void print_codec(const tac__run *run)
{
    const tac_codec *codec = run->replica->codec;

    if (codec) printf("  compress   %s\n", tac_codec_spec(codec));
}

void tac__report_banner(tac__run *run)
{
    if (!speaks(run)) return;
    print_data(run);
    print_ranks(run);
    printf("  batch      %" PRId64 " a rank%s, %" PRId64 " a step; %" PRIu64
           " steps an epoch, %" PRIu64 " steps in all\n",
           run->config->batch,
           run->config->accumulate > 1 ? " and micro-step" : "",
           run->config->global_batch, run->epoch_steps, run->total_steps);
    print_buckets(run);
    print_codec(run);
    fflush(stdout);
}

void tac__report_plan(tac__run *run)
{
    const tac_replica *r = run->replica;
    const double grads = (double)tac_params_padded(r->params) * 4;
    char a[32], b[32], c[32], d[32];

    tac__progress_begin(&run->progress, speaks(run) && !run->config->dry_run,
                        (int64_t)run->total_steps, (int64_t)run->epoch_steps);
    if (!speaks(run)) return;
    printf("  memory     parameters %s, gradients %s, optimizer %s, "
           "activations %s a rank\n",
           bytes_text(grads, a), bytes_text(grads, b),
           bytes_text((double)tac_optimizer_state_bytes(r->optimizer), c),
           bytes_text((double)tac_tape_high_water(r->tape), d));
    if (run->config->dry_run)
        printf("  a step     averages %s of gradients a rank\n"
               "dry run: nothing was trained\n",
               r->reducer && run->rank->world > 1
                   ? bytes_text((double)tac_params_elements(r->params) * 4, a)
                   : "0 B");
    fflush(stdout);
}

static void write_line(tac__run *run)
{
    size_t bytes = 0;
    const char *text = tac_json_text(run->line, &bytes);

    if (!text) return;
    fprintf(run->metrics, "%s\n", text);
    fflush(run->metrics);
    tac_json_reset(run->line);
}

static void log_interval(tac__run *run, const tac_metrics *m, double lr,
                         double samples_per_s, double exposed)
{
    const tac_replica_times *t = &run->replica->times;
    tac_json *j = run->line;

    if (!run->metrics) return;
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "kind", "train");
    tac_json_u64(j, "step", run->step);
    tac_json_f64(j, "epoch", (double)run->step / (double)run->epoch_steps);
    tac_json_f64(j, "loss", m->loss_sum / m->count);
    tac_json_f64(j, "accuracy", m->correct / m->count);
    tac_json_f64(j, "learning_rate", lr);
    if (run->config->clip_norm > 0)
        tac_json_f64(j, "grad_norm", tac_replica_grad_norm(run->replica));
    tac_json_f64(j, "samples_per_s", samples_per_s);
    tac_json_f64(j, "forward_s", t->forward_s);
    tac_json_f64(j, "backward_s", t->backward_s);
    tac_json_f64(j, "update_s", t->update_s);
    tac_json_f64(j, "comm_s", t->comm_s);
    tac_json_f64(j, "comm_exposed_s", t->comm_exposed_s);
    tac_json_f64(j, "exposed_share", exposed);
    tac_json_f64(j, "wall_s", tac_clock_s() - run->begin_s);
    tac_json_end_object(j);
    write_line(run);
}

void tac__report_interval(tac__run *run, const tac_metrics *m)
{
    const double now = tac_clock_s(), span = now - run->logged_s;
    const double samples = (double)(run->samples - run->logged_samples);
    const double lr =
        tac_schedule_lr(&run->replica->schedule, run->step ? run->step - 1 : 0);
    double exposed = 0;

    tac_replica_update_times(run->replica);
    if (span > 0)
        exposed =
            (run->replica->times.comm_exposed_s - run->logged_exposed_s) / span;
    if (run->rank->rank == 0 && m->count > 0) {
        const tac__progress_sample s = {.step = (int64_t)run->step,
                                        .loss = m->loss_sum / m->count,
                                        .accuracy = m->correct / m->count,
                                        .lr = lr,
                                        .samples_per_s = samples / span,
                                        .comm_share = exposed};

        log_interval(run, m, lr, samples / span, exposed);
        tac__progress_show(&run->progress, &s);
    }
    run->logged_s = now;
    run->logged_samples = run->samples;
    run->logged_exposed_s = run->replica->times.comm_exposed_s;
}

void tac__report_eval(tac__run *run, const tac_metrics *m)
{
    const double loss = m->loss_sum / m->count;
    const double accuracy = m->correct / m->count;
    tac_json *j = run->line;

    /* Evaluation is not training: the next interval starts now. */
    run->logged_s = tac_clock_s();
    if (run->rank->rank != 0) return;
    if (run->metrics) {
        tac_json_begin_object(j, NULL);
        tac_json_str(j, "kind", "eval");
        tac_json_u64(j, "step", run->step);
        tac_json_f64(j, "epoch", (double)run->step / (double)run->epoch_steps);
        tac_json_f64(j, "eval_loss", loss);
        tac_json_f64(j, "eval_accuracy", accuracy);
        tac_json_f64(j, "wall_s", tac_clock_s() - run->begin_s);
        tac_json_end_object(j);
        write_line(run);
    }
    if (!speaks(run)) return;
    tac__progress_clear(&run->progress);
    printf("epoch %.4g  step %" PRIu64 "  train loss %.4f accuracy %.2f %%  "
           "validation loss %.4f accuracy %.2f %%\n",
           (double)run->step / (double)run->epoch_steps, run->step,
           run->epoch_sum.loss_sum / run->epoch_sum.count,
           100 * run->epoch_sum.correct / run->epoch_sum.count, loss,
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
               bytes_text((double)s->bytes_wire, bytes),
               s->oversubscribed ? " (oversubscribed: waiting contains other "
                                   "ranks' compute)"
                                 : "");
}

void tac__report_result(tac__run *run)
{
    const tac_summary *s = &run->summary;

    if (!speaks(run)) return;
    tac__progress_clear(&run->progress);
    if (run->stopped)
        printf("stopped by a signal after step %" PRIu64 " of %" PRIu64 "\n",
               run->step, run->total_steps);
    print_where(s);
    printf("  params     hash %016" PRIx64 "%s\n", s->params_hash,
           s->world > 1 && run->replica->reducer ? ", equal on all ranks" : "");
    if (!isnan(s->test_accuracy))
        printf("test accuracy %.2f %%, loss %.4f, on %zu images\n",
               100 * s->test_accuracy, s->test_loss,
               tac_dataset_get_info(run->data.test).count);
    fflush(stdout);
}

void tac__report_files(tac__run *run)
{
    const tac_train_config *c = run->config;

    if (!speaks(run)) return;
    if (c->run_dir)
        printf("files in %s: config.ini, metrics.jsonl, summary.json\n",
               c->run_dir);
    if (c->json) printf("summary in %s\n", c->json);
    if (c->trace) printf("trace in %s\n", c->trace);
    if (c->record) printf("recording in %s\n", c->record);
    fflush(stdout);
}
