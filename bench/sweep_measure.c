/* Computing alone and communicating alone, and the wall time that they predict.
 *
 * Computing: a run with --sync none, in which nobody waits for anybody; how
 * long each attempt took each rank. Communicating: for each way to synchronise
 * a run with --skip-compute that sends everything and computes nothing; its
 * time for one synchronisation. Between two synchronisations ranks do not wait,
 * so an interval takes as long as the slowest rank needs for all of its
 * attempts; then comes the synchronisation:
 *
 *   wall = sum over intervals of max over ranks of sum of attempts + syncs * t
 *
 * Gradients leave while backward still computes, so for averaging them in every
 * step that is an upper bound: nothing overlaps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "runs_impl.h"

/* Synchronisations of a run that communicates alone: fewer where a network is
 * emulated, since they take as long as there. */
enum { SYNCS = 40, SYNCS_EMULATED = 8 };

/* ---- computing -------------------------------------------------------------
 */

static double mean_attempt(const sweep *s)
{
    const int64_t n = s->n_attempts * s->world;
    double sum = 0;

    for (int64_t i = 0; i < n; i++) sum += s->attempt_s[i];
    return sum / (double)n;
}

static tac_status take_compute(sweep *s, const run_result *r, const char *path)
{
    TAC_TRY(sweep_read_attempts(s, path));
    s->compute_s = mean_attempt(s);
    s->update_s = run_number(r, "update_s") / run_number(r, "attempts");
    s->oversubscribed = run_number(r, "oversubscribed") == 1;
    return TAC_OK;
}

/* What is measured does not depend on it, and none of these may diverge. */
static const double safe_rate = 1e-6;

static tac_status compute_args(sweep *s, const char *path, sweep_args *out)
{
    const sweep_case none = {.sync = "none",
                             .accumulate = 1,
                             .compress = "none",
                             .steps = s->micro_steps};

    TAC_TRY(sweep_args_make(s, &none, safe_rate, 1, out));
    sweep_args_add(out, "--attempt-times", path);
    return TAC_OK;
}

tac_status sweep_measure_compute(sweep *s)
{
    char *path = runs_format("%s/runs/compute-alone/attempts.csv", s->o->out);
    sweep_args args = {.n = 0};
    run_result r = {.name = NULL};
    tac_status status = path ? compute_args(s, path, &args) : TAC_ERR_NOMEM;

    if (status >= 0)
        status = sweep_do(s, "compute-alone", "compute alone", &args, &r);
    if (status >= 0) status = take_compute(s, &r, path);
    run_result_free(&r);
    sweep_args_free(&args);
    free(path);
    return status;
}

/* ---- communicating ---------------------------------------------------------
 */

/* Do both send the same when they synchronise? */
static int same_way(const sweep_case *a, const sweep_case *b)
{
    return strcmp(a->sync, b->sync) == 0 &&
           strcmp(a->compress, b->compress) == 0;
}

static void share(sweep *s, const sweep_case *measured, double seconds)
{
    for (size_t i = 0; i < s->n_cases; i++)
        if (same_way(&s->cases[i], measured))
            s->cases[i].sync_alone_s = seconds;
}

static int64_t steps_alone(const sweep *s, const sweep_case *k)
{
    const int64_t syncs = s->o->emulate ? SYNCS_EMULATED : SYNCS;

    if (strcmp(k->sync, "oneshot") == 0) return 1;
    return k->every * syncs < k->steps ? k->every * syncs : k->steps;
}

/* In local modes what rank 0 spent in synchronising; gradients are all that a
 * step does. */
static double seconds_of_sync(const run_result *r)
{
    const double syncs = run_number(r, "syncs"),
                 inside = run_number(r, "sync_s");

    if (!(syncs > 0)) return NAN;
    return (inside > 0 ? inside : run_number(r, "train_s")) / syncs;
}

static tac_status measure_way(sweep *s, const sweep_case *k)
{
    char name[128], what[128];
    sweep_case alone = *k;
    sweep_args args = {.n = 0};
    run_result r = {.name = NULL};

    alone.accumulate = 1;
    alone.steps = steps_alone(s, k);
    snprintf(name, sizeof name, "sync-alone-%s-%s", k->sync, k->compress);
    for (char *p = name; *p; p++)
        if (strchr("/:, ", *p)) *p = '_';
    snprintf(what, sizeof what, "communication alone: %s %s", k->sync,
             k->compress);
    tac_status status = sweep_args_make(s, &alone, safe_rate, 1, &args);
    if (status >= 0) {
        sweep_args_add(&args, "--skip-compute", NULL);
        status = sweep_do(s, name, what, &args, &r);
    }
    if (status >= 0) share(s, k, seconds_of_sync(&r));
    run_result_free(&r);
    sweep_args_free(&args);
    return status;
}

static int is_first(const sweep *s, size_t of)
{
    for (size_t i = 0; i < of; i++)
        if (same_way(&s->cases[i], &s->cases[of])) return 0;
    return 1;
}

/* Is there anything to measure, and was it not yet? */
static int is_due(const sweep *s, size_t of)
{
    return strcmp(s->cases[of].sync, "none") != 0 && is_first(s, of);
}

tac_status sweep_measure_sync(sweep *s)
{
    for (size_t i = 0; i < s->n_cases; i++) s->runs_planned += is_due(s, i);
    for (size_t i = 0; i < s->n_cases; i++) {
        if (!is_due(s, i)) continue;
        const tac_status status = measure_way(s, &s->cases[i]);

        if (status == TAC_ERR_INTERRUPTED || status == TAC_ERR_NOMEM)
            return status;
        if (status < 0 && !s->failed) s->failed = s->cases[i].label;
    }
    return TAC_OK;
}

/* ---- predicting ------------------------------------------------------------
 */

/* The slowest rank's time for attempts first..end-1. */
static double interval_s(const sweep *s, int64_t first, int64_t end)
{
    double slowest = 0;

    for (int rank = 0; rank < s->world; rank++) {
        double sum = 0;

        for (int64_t t = first; t < end && t < s->n_attempts; t++)
            sum += s->attempt_s[t * s->world + rank];
        if (sum > slowest) slowest = sum;
    }
    return slowest;
}

/* Micro-steps between two synchronisations. What does not follow from the case
 * (post-local, schedules) is taken as even. */
static double interval_of(const sweep *s, const sweep_row *row)
{
    const sweep_case *k = &s->cases[row->of];
    const int64_t planned =
        k->every > 0 ? (k->steps + k->every - 1) / k->every : 0;

    if (row->syncs == 0) return (double)s->micro_steps;
    if (strcmp(k->sync, "grad") == 0) return (double)k->accumulate;
    if (strcmp(k->sync, "streaming") == 0 || row->syncs == planned)
        return (double)k->every;
    return (double)s->micro_steps / (double)row->syncs;
}

static double compute_s(const sweep *s, const sweep_row *row)
{
    const double each = interval_of(s, row);
    double sum = 0;
    int64_t from = 0;

    for (double end = each; from < s->micro_steps; end += each) {
        const int64_t to = (int64_t)fmin(end + 1e-9, (double)s->micro_steps);

        sum += interval_s(s, from, to);
        from = to > from ? to : from + 1;
    }
    return sum;
}

double sweep_predict(const sweep *s, const sweep_row *row)
{
    const sweep_case *k = &s->cases[row->of];
    /* Accumulating updates less often than the attempts that were measured. */
    const double saved = (double)(s->micro_steps - k->steps) * s->update_s;

    if (!s->attempt_s || row->diverged) return NAN;
    if (row->syncs == 0) return compute_s(s, row) - saved;
    return compute_s(s, row) - saved + (double)row->syncs * k->sync_alone_s;
}
