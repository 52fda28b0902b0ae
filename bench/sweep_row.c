/* From the result of a run to a row. */
#include <math.h>
#include <string.h>

#include "localsgd_sweep.h"

/* Of a run that diverged nothing may have been counted. */
static int64_t whole(const run_result *r, const char *key)
{
    const double v = run_number(r, key);

    return isnan(v) ? 0 : (int64_t)v;
}

/* The summary's are sums over ranks. */
static double bytes_of_rank(const sweep *s, const run_result *r,
                            const char *key)
{
    return run_number(r, key) / s->world;
}

static void take_counts(const sweep *s, const run_result *r, sweep_row *row)
{
    row->steps = whole(r, "steps");
    row->samples = whole(r, "samples");
    row->syncs = whole(r, "syncs");
    row->bytes_predicted = bytes_of_rank(s, r, "bytes_predicted");
    row->bytes_counted = bytes_of_rank(s, r, "bytes_sync_wire");
    row->predictable = !isnan(row->bytes_predicted);
    row->wall_s = run_number(r, "train_s");
}

static void take_quality(const run_result *r, sweep_row *row)
{
    row->train_loss = run_number(r, "train_loss");
    row->eval_loss = run_number(r, "eval_loss");
    row->eval_accuracy = run_number(r, "eval_accuracy");
    row->test_accuracy = run_number(r, "test_accuracy");
    row->local_accuracy = run_number(r, "local_accuracy");
    row->consensus_distance = run_number(r, "consensus_distance");
}

/* What a run that diverged did until then is no result. */
static void forget_quality(sweep_row *row)
{
    row->train_loss = row->eval_loss = row->eval_accuracy = row->test_accuracy =
        row->local_accuracy = row->consensus_distance = NAN;
}

void sweep_row_make(const sweep *s, size_t of, double lr, int64_t seed,
                    run_result *result, sweep_row *out)
{
    memset(out, 0, sizeof *out);
    out->of = of;
    out->lr = lr;
    out->seed = seed;
    out->result = *result;
    out->evals = result->evals;
    out->n_evals = result->n_evals;
    take_counts(s, result, out);
    take_quality(result, out);
    out->diverged = !isfinite(out->eval_loss);
    if (out->diverged) forget_quality(out);
    for (int i = 0; i < SWEEP_NETWORKS; i++) out->modelled_s[i] = NAN;
    out->wall_predicted_s = sweep_predict(s, out);
    memset(result, 0, sizeof *result);
}

void sweep_row_free(sweep_row *row)
{
    run_result_free(&row->result);
}
