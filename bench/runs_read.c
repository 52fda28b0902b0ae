/* What ddp_train wrote into a run's folder: summary.json, and the lines of
 * metrics.jsonl as two series of points. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs_impl.h"

double run_number(const run_result *result, const char *key)
{
    const json_t *v = json_object_get(result->summary, key);

    if (json_is_boolean(v)) return json_is_true(v);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static double number(const json_t *line, const char *key)
{
    const json_t *v = json_object_get(line, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Steps that can't be are none. */
static int64_t step_of(const json_t *line)
{
    const double step = number(line, "step");

    return step >= 0 && step < 9e15 ? (int64_t)step : 0;
}

static double first_of(double a, double b)
{
    return isnan(a) ? b : a;
}

static tac_status append(tac_context *ctx, run_point **list, size_t *n,
                         const run_point *p)
{
    /* Capacity is the next power of two. */
    if ((*n & (*n - 1)) == 0) {
        run_point *more = realloc(*list, (*n ? 2 * *n : 1) * sizeof *more);

        if (!more) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for metrics");
        *list = more;
    }
    (*list)[(*n)++] = *p;
    return TAC_OK;
}

static tac_status add_line(tac_context *ctx, const json_t *line,
                           run_result *out)
{
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const int eval = kind && strcmp(kind, "eval") == 0;
    const run_point p = {
        .step = step_of(line),
        .train_s = first_of(number(line, "train_s"), number(line, "wall_s")),
        .loss = number(line, eval ? "eval_loss" : "loss"),
        .accuracy = number(line, eval ? "eval_accuracy" : "accuracy"),
        .bytes = number(line, "bytes_sync_wire")};

    if (eval) return append(ctx, &out->evals, &out->n_evals, &p);
    if (!kind || strcmp(kind, "train") != 0) return TAC_OK;
    return append(ctx, &out->train, &out->n_train, &p);
}

/* The last line of a run that was killed may be half a line. */
static tac_status read_metrics(tac_context *ctx, const char *path,
                               run_result *out)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    tac_status s = TAC_OK;

    while (f && s >= 0 && getline(&text, &room, f) > 0) {
        json_t *line = json_loads(text, 0, NULL);

        if (line) s = add_line(ctx, line, out);
        json_decref(line);
    }
    free(text);
    if (f) fclose(f);
    return s;
}

/* Bytes of points that don't say: so much a step. */
static void fill_bytes(const run_result *r, run_point *points, size_t n)
{
    const double total = run_number(r, "bytes_sync_wire");
    const double steps = run_number(r, "steps");

    for (size_t i = 0; i < n; i++)
        if (isnan(points[i].bytes))
            points[i].bytes = total * (double)points[i].step / steps;
}

static tac_status read_summary(tac_context *ctx, const char *path,
                               run_result *out)
{
    json_error_t error;
    FILE *f = fopen(path, "r");

    if (!f) return TAC_OK;
    out->summary = json_loadf(f, 0, &error);
    fclose(f);
    if (out->summary) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_DATA, "%s: line %d: %s; remove the folder",
                    path, error.line, error.text);
}

int runs_intact(const char *dir)
{
    char *path = runs_format("%s/summary.json", dir);
    json_t *summary = path ? json_load_file(path, 0, NULL) : NULL;
    const int intact = json_object_get(summary, "steps") != NULL;

    json_decref(summary);
    free(path);
    return intact;
}

tac_status runs_read(tac_context *ctx, const char *dir, run_result *out)
{
    char *summary = runs_format("%s/summary.json", dir);
    char *metrics = runs_format("%s/metrics.jsonl", dir);
    tac_status s = summary && metrics
                       ? TAC_OK
                       : tac_fail(ctx, TAC_ERR_NOMEM, "no memory for paths");

    if (s >= 0) s = read_summary(ctx, summary, out);
    if (s >= 0) s = read_metrics(ctx, metrics, out);
    fill_bytes(out, out->evals, out->n_evals);
    fill_bytes(out, out->train, out->n_train);
    free(summary);
    free(metrics);
    return s;
}

void run_result_free(run_result *result)
{
    json_decref(result->summary);
    free(result->name);
    free(result->evals);
    free(result->train);
    memset(result, 0, sizeof *result);
}
