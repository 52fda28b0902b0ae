/* The runs. With the first seed each row that searches tries its learning
 * rates; the best on the validation samples is also the rate of the rows that
 * share it. Seeds are the outer loop: a row's runs lie far apart in time, so
 * that a machine that is slower for a while is not so for one row alone. */
#include <math.h>
#include <string.h>

#include "efficiency.h"
#include "tacit/clock.h"

static double own_rate(const eff_row *row)
{
    return strcmp(row->optimizer, "sgd") == 0 ? 0.03 : 0.003;
}

/* DIVERGED is a result. */
static tac_status do_run(eff *e, const eff_row *row, double lr, int64_t seed,
                         run_result *out)
{
    char name[128], what[160];
    eff_told told;
    sweep_args args;

    snprintf(name, sizeof name, "%s-lr%.6g-seed%lld", row->key, lr,
             (long long)seed);
    snprintf(what, sizeof what, "%s, seed %lld", row->label, (long long)seed);
    eff_print_progress(e, what);
    TAC_TRY(eff_tell(e, row, &told));
    tac_status status = sweep_args_make(&told.s, &told.k, lr, seed, &args);
    const double begin = tac_clock_s();
    if (status >= 0) status = runs_do(&e->runs, name, args.argv, out);
    sweep_args_free(&args);
    e->runs_done++;
    if (status >= 0 && !out->reused) {
        e->executed++;
        e->executed_s += tac_clock_s() - begin;
    }
    return status == TAC_ERR_DIVERGED ? TAC_OK : status;
}

static int is_better(double loss, double than)
{
    return isfinite(loss) && !(loss >= than);
}

typedef struct found {
    double loss, lr;
} found;

static tac_status try_rate(eff *e, eff_row *row, double lr, found *best)
{
    run_result r;

    memset(&r, 0, sizeof r);
    const tac_status status = do_run(e, row, lr, 1, &r);
    if (status >= 0) {
        const double loss = run_number(&r, "eval_loss");
        if (best->lr == 0 || is_better(loss, best->loss)) {
            *best = (found){loss, lr};
            eff_row_take(e, row, 1, &r);
        }
    }
    run_result_free(&r);
    return status;
}

/* Its own, twice that, and then on towards where the loss fell. */
static tac_status climb(eff *e, eff_row *row, found *best)
{
    const double own = own_rate(row);

    TAC_TRY(try_rate(e, row, own, best));
    if (e->n_lrs == 1) return TAC_OK;
    TAC_TRY(try_rate(e, row, 2 * own, best));
    return try_rate(e, row, best->lr > own ? 4 * own : own / 2, best);
}

static tac_status search(eff *e, eff_row *row)
{
    found best = {NAN, 0};
    tac_status status = TAC_OK;

    if (!e->lrs_given) status = climb(e, row, &best);
    for (size_t i = 0; e->lrs_given && i < e->n_lrs && status >= 0; i++)
        status = try_rate(e, row, e->lrs[i], &best);
    row->lr = best.lr;
    return status;
}

static tac_status do_row(eff *e, eff_row *row, int64_t seed)
{
    run_result r;

    if (seed == 1 && row->searches) return search(e, row);
    memset(&r, 0, sizeof r);
    row->lr = e->rows[row->lr_of].lr;
    const tac_status status = do_run(e, row, row->lr, seed, &r);
    if (status >= 0) eff_row_take(e, row, seed, &r);
    run_result_free(&r);
    return status;
}

tac_status eff_run(eff *e)
{
    for (int64_t seed = 1; seed <= e->o->seeds; seed++) {
        for (size_t i = 0; i < e->n_rows; i++)
            TAC_TRY(do_row(e, &e->rows[i], seed));
        e->seeds_done = seed;
    }
    return TAC_OK;
}
