/* The rows as CSV and as JSON, one object a row. Bytes are of one rank. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "tacit/json.h"

/* ---- JSON ------------------------------------------------------------------
 */

static void write_bytes(tac_json *j, const char *key, double v)
{
    if (isfinite(v) && v == floor(v))
        tac_json_i64(j, key, (int64_t)v);
    else
        tac_json_f64(j, key, v);
}

static void write_case(tac_json *j, const sweep *s, const sweep_row *r)
{
    const sweep_case *k = &s->cases[r->of];

    tac_json_str(j, "case", k->label);
    tac_json_str(j, "sync", k->sync);
    tac_json_i64(j, "sync_every", k->every);
    tac_json_i64(j, "accumulate", k->accumulate);
    tac_json_str(j, "compress", k->compress);
    tac_json_bool(j, "baseline", k->baseline);
    tac_json_i64(j, "seed", r->seed);
    tac_json_f64(j, "lr", r->lr);
    tac_json_i64(j, "lr_at_edge", k->lr_at_edge);
    tac_json_bool(j, "diverged", r->diverged);
}

static void write_counts(tac_json *j, const sweep *s, const sweep_row *r)
{
    tac_json_i64(j, "world", s->world);
    tac_json_i64(j, "batch", s->o->batch);
    tac_json_i64(j, "steps", r->steps);
    tac_json_i64(j, "samples", r->samples);
    tac_json_i64(j, "syncs", r->syncs);
    write_bytes(j, "bytes_predicted", r->bytes_predicted);
    write_bytes(j, "bytes_counted", r->bytes_counted);
    tac_json_bool(j, "predictable", r->predictable);
}

static void write_times(tac_json *j, const sweep *s, const sweep_row *r)
{
    tac_json_f64(j, "wall_s", r->wall_s);
    tac_json_f64(j, "wall_predicted_s", r->wall_predicted_s);
    tac_json_begin_object(j, "modelled_s");
    for (int i = 0; i < s->n_networks; i++)
        tac_json_f64(j, s->networks[i]->name, r->modelled_s[i]);
    tac_json_end_object(j);
    tac_json_f64(j, "sync_alone_s", s->cases[r->of].sync_alone_s);
    tac_json_bool(j, "oversubscribed", s->oversubscribed);
}

static void write_quality(tac_json *j, const sweep_row *r)
{
    tac_json_f64(j, "train_loss", r->train_loss);
    tac_json_f64(j, "eval_loss", r->eval_loss);
    tac_json_f64(j, "eval_accuracy", r->eval_accuracy);
    tac_json_f64(j, "test_accuracy", r->test_accuracy);
    tac_json_f64(j, "local_accuracy", r->local_accuracy);
    tac_json_f64(j, "consensus_distance", r->consensus_distance);
    tac_json_str(j, "run", r->result.name);
}

static void write_rows(tac_json *j, const sweep *s)
{
    tac_json_begin_array(j, NULL);
    for (size_t i = 0; i < s->n_rows; i++) {
        const sweep_row *r = &s->rows[i];

        tac_json_begin_object(j, NULL);
        write_case(j, s, r);
        write_counts(j, s, r);
        write_times(j, s, r);
        write_quality(j, r);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
}

tac_status sweep_write_json(const sweep *s, const char *path)
{
    tac_json *j = tac_json_create();

    if (!j) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory for results");
    write_rows(j, s);
    const tac_status status = tac_json_write_file(j, path);
    tac_json_destroy(j);
    if (status >= 0) return status;
    return tac_fail(s->ctx, status, "cannot write %s: %m; check the folder",
                    path);
}

/* ---- CSV -------------------------------------------------------------------
 */

/* Empty where there is no number. */
static void put(FILE *f, double v)
{
    if (isfinite(v))
        fprintf(f, ",%.17g", v);
    else
        fputc(',', f);
}

/* Codecs have commas. */
static void put_text(FILE *f, const char *text)
{
    fprintf(f, strchr(text, ',') ? "\"%s\"" : "%s", text);
}

static void put_head(const sweep *s, FILE *f)
{
    fputs("case,sync,sync_every,accumulate,compress,baseline,seed,lr,"
          "lr_at_edge,diverged,world,batch,steps,samples,syncs,"
          "bytes_predicted,bytes_counted,predictable,wall_s,wall_predicted_s",
          f);
    for (int i = 0; i < s->n_networks; i++)
        fprintf(f, ",modelled_s_%s", s->networks[i]->name);
    fputs(",sync_alone_s,oversubscribed,train_loss,eval_loss,eval_accuracy,"
          "test_accuracy,local_accuracy,consensus_distance,run\n",
          f);
}

static void put_row(const sweep *s, const sweep_row *r, FILE *f)
{
    const sweep_case *k = &s->cases[r->of];

    put_text(f, k->label);
    fprintf(f, ",%s,%lld,%lld,", k->sync, (long long)k->every,
            (long long)k->accumulate);
    put_text(f, k->compress);
    fprintf(f, ",%d,%lld", k->baseline, (long long)r->seed);
    put(f, r->lr);
    fprintf(f, ",%d,%d,%d,%lld,%lld,%lld,%lld", k->lr_at_edge, r->diverged,
            s->world, (long long)s->o->batch, (long long)r->steps,
            (long long)r->samples, (long long)r->syncs);
    put(f, r->bytes_predicted);
    put(f, r->bytes_counted);
    fprintf(f, ",%d", r->predictable);
    put(f, r->wall_s);
    put(f, r->wall_predicted_s);
    for (int i = 0; i < s->n_networks; i++) put(f, r->modelled_s[i]);
    put(f, k->sync_alone_s);
    fprintf(f, ",%d", s->oversubscribed);
    put(f, r->train_loss);
    put(f, r->eval_loss);
    put(f, r->eval_accuracy);
    put(f, r->test_accuracy);
    put(f, r->local_accuracy);
    put(f, r->consensus_distance);
    fprintf(f, ",%s\n", r->result.name);
}

tac_status sweep_write_csv(const sweep *s, const char *path)
{
    FILE *f = fopen(path, "w");
    int failed = !f;

    if (f) {
        put_head(s, f);
        for (size_t i = 0; i < s->n_rows; i++) put_row(s, &s->rows[i], f);
        failed = ferror(f);
        if (fclose(f) != 0) failed = 1;
    }
    if (!failed) return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_IO, "cannot write %s: %s; check the folder",
                    path, strerror(errno));
}
