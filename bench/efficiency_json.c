/* All that was measured, as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "efficiency.h"
#include "tacit/json.h"

static void write_count(tac_json *j, const char *key, double v)
{
    if (isfinite(v) && v == floor(v) && fabs(v) < 9e15)
        tac_json_i64(j, key, (int64_t)v);
    else
        tac_json_f64(j, key, v);
}

static void write_setup(tac_json *j, const eff *e)
{
    tac_json_str(j, "program", "efficiency");
    tac_json_str(j, "version", TAC_VERSION_STRING);
    tac_json_str(j, "command", e->command);
    tac_json_str(j, "model", e->model);
    tac_json_str(j, "data", e->data);
    tac_json_str(j, "how", e->how);
    tac_json_i64(j, "world", e->world);
    tac_json_i64(j, "batch", e->rows[0].batch);
    write_count(j, "parameters", e->params);
    tac_json_i64(j, "seeds", e->o->seeds);
    tac_json_i64(j, "train_count", (int64_t)e->train_count);
    tac_json_i64(j, "val_count", (int64_t)e->val_count);
    tac_json_i64(j, "test_count", (int64_t)e->test_count);
    tac_json_bool(j, "tested", e->tested);
    tac_json_bool(j, "oversubscribed", e->oversubscribed);
    tac_json_begin_array(j, "networks");
    for (size_t i = 0; i < e->n_networks; i++) {
        tac_json_begin_object(j, NULL);
        tac_json_str(j, "name", e->network_names[i]);
        tac_json_str(j, "link", e->network_links[i]);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
}

static void write_told(tac_json *j, const eff *e, const eff_row *r)
{
    static const char *const parts[] = {"baseline", "alone", "added", "other"};

    tac_json_str(j, "key", r->key);
    tac_json_str(j, "label", r->label);
    tac_json_str(j, "part", parts[r->part]);
    tac_json_i64(j, "batch", r->batch);
    tac_json_i64(j, "accumulate", r->accumulate);
    tac_json_i64(j, "global_batch", r->batch * r->accumulate * e->world);
    tac_json_str(j, "recompute", r->recompute ? "block" : "none");
    tac_json_str(j, "sync", r->sync);
    tac_json_i64(j, "sync_every", r->every);
    tac_json_str(j, "precision", r->precision);
    tac_json_str(j, "optimizer", r->optimizer);
    tac_json_str(j, "compress", r->compress);
    tac_json_f64(j, "lr", r->lr);
    tac_json_str(j, "lr_of", e->rows[r->lr_of].key);
    tac_json_i64(j, "steps", r->steps);
    tac_json_i64(j, "samples", r->samples);
    tac_json_i64(j, "syncs", r->syncs);
}

static void write_memory(tac_json *j, const eff_row *r)
{
    tac_json_begin_object(j, "memory");
    for (int m = 0; m < EFF_MEMORY; m++)
        write_count(j, eff_memory_name((eff_memory)m), r->memory[m]);
    write_count(j, "total", r->memory_total);
    tac_json_end_object(j);
    tac_json_begin_object(j, "memory_kinds");
    for (size_t k = 0; k < EFF_KINDS; k++) {
        tac_json_begin_object(j, eff_kind_name(k));
        write_count(j, "measured", r->kind[k]);
        write_count(j, "predicted", r->kind_predicted[k]);
        tac_json_end_object(j);
    }
    tac_json_end_object(j);
}

static void write_list(tac_json *j, const char *key, const double *v, size_t n)
{
    tac_json_begin_array(j, key);
    for (size_t i = 0; i < n; i++) tac_json_f64(j, NULL, v[i]);
    tac_json_end_array(j);
}

static void write_costs(tac_json *j, const eff *e, const eff_row *r)
{
    write_count(j, "bytes_predicted", r->bytes_predicted);
    write_count(j, "bytes_counted", r->bytes);
    tac_json_f64(j, "bytes_step", r->bytes_step);
    tac_json_f64(j, "bytes_sample", r->bytes_sample);
    tac_json_f64(j, "seconds_sample", r->seconds);
    tac_json_f64(j, "seconds_sample_low", r->seconds_low);
    tac_json_f64(j, "seconds_sample_high", r->seconds_high);
    tac_json_f64(j, "compute_s", r->compute_s);
    tac_json_begin_object(j, "modelled_s_sample");
    for (size_t i = 0; i < e->n_networks; i++)
        tac_json_f64(j, e->network_names[i], r->modelled[i]);
    tac_json_end_object(j);
    write_list(j, "seconds_each", r->time, (size_t)e->o->seeds);
}

static void write_quality(tac_json *j, const eff *e, const eff_row *r)
{
    const eff_row *b = &e->rows[0];
    const size_t seeds = (size_t)e->o->seeds;

    tac_json_i64(j, "finished", (int64_t)r->n);
    tac_json_i64(j, "diverged", (int64_t)r->missing);
    tac_json_f64(j, "eval_accuracy", r->eval_mean);
    tac_json_f64(j, "test_accuracy", r->test_mean);
    tac_json_f64(j, "test_error", r->test_error);
    write_list(j, "eval_each", r->eval, seeds);
    write_list(j, "test_each", r->test, seeds);
    tac_json_begin_object(j, "change");
    tac_json_f64(j, "memory", r->memory_total / b->memory_total - 1);
    tac_json_f64(j, "bytes", r->bytes / b->bytes - 1);
    tac_json_f64(j, "seconds", r->seconds / b->seconds - 1);
    tac_json_f64(j, "accuracy", r->gain);
    tac_json_f64(j, "accuracy_error", r->gain_error);
    tac_json_end_object(j);
}

tac_status eff_write_json(const eff *e, const char *path)
{
    tac_json *j = tac_json_create();

    if (!j) return tac_fail(e->ctx, TAC_ERR_NOMEM, "no memory for results");
    tac_json_begin_object(j, NULL);
    write_setup(j, e);
    tac_json_begin_array(j, "rows");
    for (size_t i = 0; i < e->n_rows; i++) {
        const eff_row *r = &e->rows[i];

        if (r->n + r->missing == 0) continue; /* stopped before */
        tac_json_begin_object(j, NULL);
        write_told(j, e, r);
        write_memory(j, r);
        write_costs(j, e, r);
        write_quality(j, e, r);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
    tac_json_end_object(j);
    const tac_status status = tac_json_write_file(j, path);
    tac_json_destroy(j);
    if (status >= 0) return status;
    return tac_fail(e->ctx, status, "cannot write %s: %m; check the folder",
                    path);
}
