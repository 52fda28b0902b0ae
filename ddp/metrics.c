/* metrics.jsonl: one line of JSON an interval and evaluation. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "tacit/clock.h"

void tac__metrics_write(tac__run *run)
{
    size_t bytes = 0;
    const char *text = tac_json_text(run->line, &bytes);

    if (!text) return;
    fprintf(run->metrics, "%s\n", text);
    fflush(run->metrics);
    tac_json_reset(run->line);
}

/* Where the run is: "step" counts applied steps, "attempts" also skipped ones,
 * which the position in the data goes by. */
static void begin_line(tac__run *run, const char *kind)
{
    const tac_replica *r = run->replica;
    tac_json *j = run->line;

    tac_json_begin_object(j, NULL);
    tac_json_str(j, "kind", kind);
    tac_json_u64(j, "step", r->attempts - r->scaling.skipped);
    tac_json_u64(j, "attempts", r->attempts);
    tac_json_f64(j, "epoch", (double)run->step / (double)run->epoch_steps);
}

static void end_line(tac__run *run)
{
    tac_json_u64(run->line, "syncs", tac__run_syncs(run));
    tac_json_u64(run->line, "bytes_sync_wire", run->sync_wire);
    tac_json_f64(run->line, "train_s", run->train_s);
    tac_json_f64(run->line, "wall_s", tac_clock_s() - run->begin_s);
    tac_json_end_object(run->line);
    tac__metrics_write(run);
}

static void scaling(tac__run *run, const tac_metrics *m)
{
    tac_json *j = run->line;

    tac_json_f64(j, "loss_scale", run->replica->scaling.scale);
    tac_json_u64(j, "skipped_steps", run->replica->scaling.skipped);
    tac_json_f64(j, "nonfinite_losses", m->nonfinite);
}

void tac__metrics_interval(tac__run *run, const tac_metrics *m,
                           const tac__progress_sample *s)
{
    const tac_replica_times *t = &run->replica->times;
    tac_json *j = run->line;

    if (!run->metrics) return;
    begin_line(run, "train");
    tac_json_f64(j, "loss", s->loss);
    tac_json_f64(j, "accuracy", s->accuracy);
    tac_json_f64(j, "learning_rate", s->lr);
    if (run->config->clip_norm > 0)
        tac_json_f64(j, "grad_norm", tac_replica_grad_norm(run->replica));
    scaling(run, m);
    tac_json_f64(j, "samples_per_s", s->samples_per_s);
    tac_json_f64(j, "forward_s", t->forward_s);
    tac_json_f64(j, "backward_s", t->backward_s);
    tac_json_f64(j, "update_s", t->update_s);
    tac_json_f64(j, "comm_s", t->comm_s);
    tac_json_f64(j, "comm_exposed_s", t->comm_exposed_s);
    tac_json_f64(j, "exposed_share", s->comm_share);
    end_line(run);
}

/* A value of compute_metrics. */
static void own(tac__run *run, const tac_metric *m)
{
    char key[64];

    snprintf(key, sizeof key, "eval_%s", m->name);
    tac_json_f64(run->line, key, m->value);
}

void tac__metrics_eval(tac__run *run, double loss, double accuracy)
{
    if (!run->metrics) return;
    begin_line(run, "eval");
    tac_json_f64(run->line, "eval_loss", loss);
    tac_json_f64(run->line, "eval_accuracy", accuracy);
    for (size_t i = 0; i < run->n_own; i++)
        if (strcmp(run->own[i].name, "accuracy")) own(run, &run->own[i]);
    end_line(run);
}

/* A run that goes on has its line from its beginning. */
void tac__metrics_memory(tac__run *run)
{
    if (!run->metrics || run->resumed_from) return;
    begin_line(run, "memory");
    tac__memory_json(run->line, &run->memory);
    end_line(run);
}

void tac__metrics_failed(tac__run *run, tac_status s)
{
    tac_json *j = run->line;
    char why[512] = "";

    if (!run->metrics) return;
    tac_context_error(run->rank->ctx, why, sizeof why);
    tac_json_reset(j);
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "kind", "failed");
    tac_json_str(j, "status", tac_status_name(s));
    tac_json_str(j, "message", *why ? why : tac_status_text(s));
    tac_json_end_object(j);
    tac__metrics_write(run);
}
