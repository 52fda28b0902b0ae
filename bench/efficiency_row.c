/* From runs to the figures of a row. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "efficiency.h"

/* ddp_train's kinds, and which of the table's each belongs to; the data set is
 * a process's, not a rank's, and in no sum. */
static const struct {
    const char *name;
    eff_memory in;
} kinds[EFF_KINDS] = {
    {"parameters", EFF_PARAMETERS},
    {"working_weights", EFF_PARAMETERS},
    {"gradients", EFF_GRADIENTS},
    {"optimizer_state", EFF_OPTIMIZER},
    {"optimizer_scratch", EFF_OPTIMIZER},
    {"activations", EFF_ACTIVATIONS},
    {"kernel_scratch", EFF_OTHER_MEMORY},
    {"communication", EFF_COMMUNICATION},
    {"codec_state", EFF_COMMUNICATION},
    {"local_sgd", EFF_AVERAGING},
    {"averaged_model", EFF_AVERAGING},
    {"data_loader", EFF_OTHER_MEMORY},
    {"data_set", EFF_MEMORY},
};

const char *eff_kind_name(size_t kind)
{
    return kinds[kind].name;
}

const char *eff_memory_name(eff_memory m)
{
    static const char *const names[] = {
        "parameters",    "gradients", "optimizer", "activations",
        "communication", "local_sgd", "other"};

    return names[m];
}

const char *eff_memory_title(eff_memory m)
{
    return m == EFF_AVERAGING ? "local SGD" : eff_memory_name(m);
}

static double memory_of(const run_result *r, const char *kind, const char *how)
{
    const json_t *memory = json_object_get(r->summary, "memory");
    const json_t *v = json_object_get(json_object_get(memory, kind), how);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

static void take_memory(eff_row *row, const run_result *r)
{
    for (int m = 0; m < EFF_MEMORY; m++) row->memory[m] = 0;
    row->memory_total = 0;
    for (size_t k = 0; k < EFF_KINDS; k++) {
        row->kind[k] = memory_of(r, kinds[k].name, "measured");
        row->kind_predicted[k] = memory_of(r, kinds[k].name, "predicted");
        if (kinds[k].in == EFF_MEMORY) continue;
        row->memory[kinds[k].in] += row->kind[k];
        row->memory_total += row->kind[k];
    }
}

/* The summary's bytes are sums over ranks. */
static void take_counts(const eff *e, eff_row *row, const run_result *r)
{
    const double all = run_number(r, "bytes_sync_wire");
    const double samples = run_number(r, "samples");
    const double steps = run_number(r, "steps");

    row->samples = isfinite(samples) ? (int64_t)samples : 0;
    row->syncs = (int64_t)fmax(0, run_number(r, "syncs"));
    row->bytes = all / e->world;
    row->bytes_predicted = run_number(r, "bytes_predicted") / e->world;
    row->bytes_step = row->bytes / steps;
    row->bytes_sample = all / samples;
}

void eff_row_take(eff *e, eff_row *row, int64_t seed, const run_result *r)
{
    const size_t at = (size_t)seed - 1;
    const double samples = run_number(r, "samples");
    const double micro = samples / ((double)row->batch * e->world);

    row->made[at] = 1;
    row->eval[at] = run_number(r, "eval_accuracy");
    row->test[at] = run_number(r, "test_accuracy");
    row->time[at] = run_number(r, "train_s") / samples;
    row->computing[at] = run_number(r, "compute_s") / micro;
    if (!isfinite(run_number(r, "eval_loss"))) {
        row->eval[at] = row->test[at] = row->time[at] = NAN;
        return;
    }
    take_memory(row, r);
    take_counts(e, row, r);
    if (run_number(r, "oversubscribed") > 0) e->oversubscribed = 1;
}

/* ---- means ----------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static size_t keep_finite(double *v, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) v[kept++] = v[i];
    return kept;
}

double eff_median(double *v, size_t n)
{
    n = keep_finite(v, n);
    if (n == 0) return NAN;
    qsort(v, n, sizeof *v, ascending);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

typedef struct estimate {
    double mean, error; /* error: standard, of the mean; NaN for one value */
    size_t n;
} estimate;

static estimate estimate_of(const double *values, size_t n)
{
    double v[EFF_SEEDS], sum = 0, squares = 0;

    memcpy(v, values, n * sizeof *v);
    n = keep_finite(v, n);
    for (size_t i = 0; i < n; i++) sum += v[i];
    const double mean = n ? sum / (double)n : NAN;
    for (size_t i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    return (estimate){
        mean, n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : NAN, n};
}

/* Of one seed: what the number of images explains. */
static double error_of_images(const eff *e, double p)
{
    const size_t n = e->tested ? e->test_count : e->val_count;

    return n > 0 ? sqrt(fmax(0, p * (1 - p)) / (double)n) : NAN;
}

static void finish_accuracy(const eff *e, eff_row *row)
{
    const size_t seeds = (size_t)e->o->seeds;
    const estimate test = estimate_of(e->tested ? row->test : row->eval, seeds);

    row->n = test.n;
    row->missing = 0;
    for (size_t i = 0; i < seeds; i++)
        row->missing += row->made[i] && !isfinite(row->eval[i]);
    row->test_mean = test.mean;
    row->test_error = test.n > 1 ? test.error : error_of_images(e, test.mean);
    row->eval_mean = estimate_of(row->eval, seeds).mean;
}

static void finish_times(const eff *e, eff_row *row)
{
    double v[EFF_SEEDS];
    const size_t seeds = (size_t)e->o->seeds;

    memcpy(v, row->time, seeds * sizeof *v);
    row->seconds = eff_median(v, seeds);
    const size_t n = keep_finite(v, seeds);
    row->seconds_low = n ? v[0] : NAN;
    row->seconds_high = n ? v[n - 1] : NAN;
    memcpy(v, row->computing, seeds * sizeof *v);
    row->compute_s = eff_median(v, seeds);
}

/* Seed by seed: both sides began with the same weights and saw the same
 * samples in the same order. */
static void finish_gain(const eff *e, eff_row *row)
{
    const eff_row *b = &e->rows[0];
    const size_t seeds = (size_t)e->o->seeds;
    double d[EFF_SEEDS];

    for (size_t i = 0; i < seeds; i++)
        d[i] =
            e->tested ? row->test[i] - b->test[i] : row->eval[i] - b->eval[i];
    const estimate gain = estimate_of(d, seeds);
    row->gain = gain.mean;
    row->gain_error = row == b     ? 0
                      : gain.n > 1 ? gain.error
                                   : sqrt(row->test_error * row->test_error +
                                          b->test_error * b->test_error);
}

void eff_rows_finish(eff *e)
{
    e->tested = 0;
    for (size_t i = 0; i < e->n_rows; i++)
        for (int64_t s = 0; s < e->o->seeds; s++)
            if (isfinite(e->rows[i].test[s])) e->tested = 1;
    for (size_t i = 0; i < e->n_rows; i++) {
        finish_accuracy(e, &e->rows[i]);
        finish_times(e, &e->rows[i]);
        finish_gain(e, &e->rows[i]);
    }
}
