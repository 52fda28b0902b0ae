/* summary.json. */
#include "tacit/summary.h"

#include "memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tacit/json.h"

static void write_counts(tac_json *j, const tac_summary *s)
{
    tac_json_i64(j, "steps", s->steps);
    tac_json_i64(j, "attempts", s->attempts);
    tac_json_i64(j, "skipped_steps", s->skipped_steps);
    tac_json_f64(j, "epochs", s->epochs);
    tac_json_i64(j, "samples", s->samples);
    tac_json_i64(j, "tokens", s->tokens);
    tac_json_i64(j, "global_batch", s->global_batch);
    tac_json_i64(j, "parameters", s->parameters);
}

static void write_results(tac_json *j, const tac_summary *s)
{
    tac_json_f64(j, "train_loss", s->train_loss);
    tac_json_f64(j, "eval_loss", s->eval_loss);
    tac_json_f64(j, "eval_accuracy", s->eval_accuracy);
    tac_json_f64(j, "test_loss", s->test_loss);
    tac_json_f64(j, "test_accuracy", s->test_accuracy);
    tac_json_i64(j, "test_samples", s->test_samples);
}

static void write_own(tac_json *j, const tac_summary *s)
{
    for (size_t i = 0; i < s->n_metrics; i++) {
        char key[64];

        snprintf(key, sizeof key, "eval_%s", s->metrics[i].name);
        if (strcmp(key, "eval_accuracy"))
            tac_json_f64(j, key, s->metrics[i].value);
    }
}

static void write_times(tac_json *j, const tac_summary *s)
{
    tac_json_f64(j, "samples_per_s", s->samples_per_s);
    tac_json_f64(j, "tokens_per_s", s->tokens_per_s);
    tac_json_f64(j, "wall_s", s->wall_s);
    tac_json_f64(j, "train_s", s->train_s);
    tac_json_f64(j, "compute_s", s->compute_s);
    tac_json_f64(j, "forward_s", s->forward_s);
    tac_json_f64(j, "backward_s", s->backward_s);
    tac_json_f64(j, "update_s", s->update_s);
    tac_json_f64(j, "comm_s", s->comm_s);
    tac_json_f64(j, "wait_s", s->wait_s);
    tac_json_f64(j, "comm_exposed_s", s->comm_exposed_s);
    tac_json_f64(j, "cpu_s", s->cpu_s);
}

static void write_traffic(tac_json *j, const tac_summary *s)
{
    tac_json_u64(j, "bytes_logical", s->bytes_logical);
    tac_json_u64(j, "bytes_wire", s->bytes_wire);
    tac_json_u64(j, "bytes_between_hosts", s->bytes_between_hosts);
    tac_json_i64(j, "syncs", s->syncs);
    tac_json_u64(j, "bytes_sync_logical", s->bytes_sync_logical);
    tac_json_u64(j, "bytes_sync_wire", s->bytes_sync_wire);
    if (s->predictable)
        tac_json_u64(j, "bytes_predicted", s->bytes_predicted);
    else
        tac_json_f64(j, "bytes_predicted", NAN);
}

static void write_replicas(tac_json *j, const tac_summary *s)
{
    tac_json_str(j, "outer", s->outer);
    tac_json_str(j, "shards", s->shards);
    tac_json_i64(j, "worker_size", s->worker_size);
    tac_json_i64(j, "workers", s->workers);
    tac_json_i64(j, "fragments", s->fragments);
    tac_json_f64(j, "sync_s", s->sync_s);
    tac_json_f64(j, "local_loss", s->local_loss);
    tac_json_f64(j, "local_accuracy", s->local_accuracy);
    tac_json_f64(j, "consensus_distance", s->consensus_distance);
    tac_json_f64(j, "delta_norm", s->delta_norm);
    tac_json_f64(j, "target_s", s->target_s);
    tac_json_i64(j, "target_step", s->target_step);
}

static void write_memory(tac_json *j, const tac_memory_summary *m)
{
    tac_json_begin_object(j, "memory");
    tac__memory_json(j, m);
    tac_json_end_object(j);
}

tac_status tac_summary_write(tac_context *ctx, const tac_summary *s,
                             const char *path)
{
    char hash[17];
    tac_status status;
    tac_json *j = tac_json_create();

    if (!j) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for the summary");
    snprintf(hash, sizeof hash, "%016" PRIx64, s->params_hash);
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "version", TAC_VERSION_STRING);
    tac_json_str(j, "model", s->model);
    tac_json_str(j, "data", s->data);
    tac_json_i64(j, "world", s->world);
    tac_json_i64(j, "hosts", s->hosts);
    tac_json_i64(j, "threads", s->threads);
    tac_json_str(j, "transport", s->transport);
    tac_json_str(j, "device", s->device);
    tac_json_str(j, "precision", s->precision);
    tac_json_str(j, "sync", s->sync);
    tac_json_i64(j, "sync_every", s->sync_every);
    tac_json_str(j, "compress", s->compress);
    tac_json_str(j, "optimizer", s->optimizer);
    write_counts(j, s);
    write_results(j, s);
    write_own(j, s);
    write_times(j, s);
    write_traffic(j, s);
    write_replicas(j, s);
    tac_json_f64(j, "loss_scale", s->loss_scale);
    tac_json_u64(j, "peak_rss_bytes", s->peak_rss_bytes);
    write_memory(j, &s->memory);
    tac_json_bool(j, "oversubscribed", s->oversubscribed);
    tac_json_bool(j, "interrupted", s->interrupted);
    tac_json_i64(j, "resumed", s->resumed);
    tac_json_str(j, "params_hash", hash);
    tac_json_end_object(j);
    status = tac_json_write_file(j, path);
    tac_json_destroy(j);
    if (status < 0)
        return tac_fail(ctx, status,
                        "cannot write the summary to %s: %m; check the folder "
                        "and the free space",
                        path);
    return TAC_OK;
}
