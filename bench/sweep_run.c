/* The grid: for each case its learning rate, found on the validation samples
 * with the first seed, then the other seeds with that rate.
 *
 * The search is the same for all: every rate of the list, whole runs, and if
 * the best is the smallest or largest, up to two more, each a factor of two
 * further out. Less loss on the validation samples is better; a run that
 * diverged is worst. The run with the best rate is the first seed's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "runs_impl.h"
#include "tacit/clock.h"

enum { FURTHER = 2 };

/* ---- one run ---------------------------------------------------------------
 */

tac_status sweep_do(sweep *s, const char *name, const char *what,
                    const sweep_args *args, run_result *out)
{
    const double begin = tac_clock_s();

    sweep_print_progress(s, what);
    const tac_status status = runs_do(&s->runs, name, args->argv, out);
    s->runs_done++;
    if (out->reused) return status;
    s->executed++;
    s->executed_s += tac_clock_s() - begin;
    return status;
}

/* "local-h16-none": a name for a folder. */
static void name_case(const sweep_case *k, char *out, size_t bytes)
{
    if (k->accumulate > 1)
        snprintf(out, bytes, "%s-accumulate%lld", k->sync,
                 (long long)k->accumulate);
    else
        snprintf(out, bytes, "%s-h%lld", k->sync, (long long)k->every);
    const size_t n = strlen(out);
    snprintf(out + n, bytes - n, "-%s", k->compress);
    for (char *p = out; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", *p)) *p = '_';
}

/* Diverged or not, there is a row. */
static tac_status run_case(sweep *s, size_t of, double lr, int64_t seed,
                           sweep_row *out)
{
    const sweep_case *k = &s->cases[of];
    char part[128], name[192], what[160];
    sweep_args args;
    run_result result;

    name_case(k, part, sizeof part);
    snprintf(name, sizeof name, "%s-lr%.6g-seed%lld", part, lr,
             (long long)seed);
    snprintf(what, sizeof what, "%s, learning rate %g, seed %lld", k->label, lr,
             (long long)seed);
    tac_status status = sweep_args_make(s, k, lr, seed, &args);
    if (status >= 0) {
        status = sweep_do(s, name, what, &args, &result);
        if (status >= 0 || status == TAC_ERR_DIVERGED) {
            sweep_row_make(s, of, lr, seed, &result, out);
            status = TAC_OK;
        } else {
            run_result_free(&result);
        }
    }
    sweep_args_free(&args);
    return status;
}

static tac_status keep_row(sweep *s, sweep_row *row)
{
    if (s->n_rows == s->cap_rows) {
        const size_t cap = s->cap_rows ? 2 * s->cap_rows : 64;
        sweep_row *more = realloc(s->rows, cap * sizeof *more);

        if (!more) {
            sweep_row_free(row);
            return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory for rows");
        }
        s->rows = more;
        s->cap_rows = cap;
    }
    s->rows[s->n_rows++] = *row;
    sweep_print_row(s, row);
    return TAC_OK;
}

static tac_status keep_trial(sweep *s, const sweep_row *row)
{
    if (s->n_trials == s->cap_trials) {
        const size_t cap = s->cap_trials ? 2 * s->cap_trials : 64;
        sweep_trial *more = realloc(s->trials, cap * sizeof *more);

        if (!more) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
        s->trials = more;
        s->cap_trials = cap;
    }
    s->trials[s->n_trials++] =
        (sweep_trial){row->of, row->lr, row->eval_loss, row->eval_accuracy};
    return TAC_OK;
}

/* ---- the search ------------------------------------------------------------
 */

typedef struct search {
    sweep_row best;
    int found;
    double low, high; /* of what was tried */
} search;

static int is_better(const sweep_row *a, const sweep_row *b)
{
    if (isnan(b->eval_loss)) return !isnan(a->eval_loss);
    return a->eval_loss < b->eval_loss;
}

static tac_status try_rate(sweep *s, size_t of, double lr, search *found)
{
    sweep_row row;

    TAC_TRY(run_case(s, of, lr, 1, &row));
    const tac_status status = keep_trial(s, &row);
    if (!found->found || lr < found->low) found->low = lr;
    if (!found->found || lr > found->high) found->high = lr;
    if (!found->found || is_better(&row, &found->best)) {
        if (found->found) sweep_row_free(&found->best);
        found->best = row;
        found->found = 1;
    } else {
        sweep_row_free(&row);
    }
    return status;
}

/* -1, 1: the best is the smallest, the largest; where all diverged, smaller
 * ones may not. */
static int edge(const search *f)
{
    if (f->low == f->high) return 0;
    if (f->best.diverged || f->best.lr == f->low) return -1;
    return f->best.lr == f->high;
}

static tac_status search_rate(sweep *s, size_t of, search *found)
{
    for (size_t i = 0; i < s->n_lrs; i++)
        TAC_TRY(try_rate(s, of, s->lrs[i], found));
    for (int i = 0; i < FURTHER && edge(found); i++) {
        s->runs_planned++;
        TAC_TRY(try_rate(
            s, of, edge(found) < 0 ? found->low / 2 : found->high * 2, found));
    }
    s->cases[of].lr = found->best.lr;
    s->cases[of].lr_at_edge = edge(found);
    return TAC_OK;
}

static tac_status do_case(sweep *s, size_t of)
{
    search found = {.found = 0};
    sweep_row row;
    tac_status status = search_rate(s, of, &found);

    if (status < 0) {
        if (found.found) sweep_row_free(&found.best);
        return status;
    }
    TAC_TRY(keep_row(s, &found.best));
    for (int64_t seed = 2; seed <= s->o->seeds; seed++) {
        TAC_TRY(run_case(s, of, s->cases[of].lr, seed, &row));
        TAC_TRY(keep_row(s, &row));
    }
    return TAC_OK;
}

/* The case's runs that will not be made. */
static void give_up_case(sweep *s, size_t of, size_t planned)
{
    s->cases[of].failed = 1;
    if (!s->failed) s->failed = s->cases[of].label;
    if (s->runs_done < planned) s->runs_done = planned;
}

tac_status sweep_run(sweep *s)
{
    for (size_t i = 0; i < s->n_cases; i++) {
        const size_t planned =
            s->runs_done + s->n_lrs + (size_t)s->o->seeds - 1;
        const tac_status status = do_case(s, i);

        if (status == TAC_ERR_INTERRUPTED || status == TAC_ERR_NOMEM)
            return status;
        if (status < 0) give_up_case(s, i, planned);
    }
    return TAC_OK;
}
