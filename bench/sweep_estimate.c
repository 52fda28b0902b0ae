/* --dry-run: how many runs, how long and how many bytes, from two short runs.
 * Started twice, so that what a run costs besides its steps shows. */
#include <math.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "tacit/clock.h"

enum { FEW = 8, MORE = 40, EVALUATIONS = 8 };

typedef struct trial {
    double all_s, train_s, eval_s, bytes;
} trial;

static tac_status try_steps(sweep *s, int64_t steps, trial *out)
{
    sweep_case k = {
        .sync = "grad", .every = 1, .accumulate = 1, .compress = "none"};
    char name[48];
    sweep_args args = {.n = 0};
    run_result r = {.name = NULL};

    k.steps = steps < s->micro_steps ? steps : s->micro_steps;
    snprintf(name, sizeof name, "trial%lld", (long long)steps);
    tac_status status = sweep_args_make(s, &k, 1e-6, 1, &args);
    const double begin = tac_clock_s();
    if (status >= 0) status = sweep_do(s, name, "a trial", &args, &r);
    out->all_s = tac_clock_s() - begin;
    out->train_s = run_number(&r, "train_s") / (double)k.steps;
    out->eval_s = (run_number(&r, "wall_s") - run_number(&r, "train_s")) /
                  (EVALUATIONS + 1);
    out->bytes =
        run_number(&r, "bytes_sync_wire") / s->world / run_number(&r, "syncs");
    run_result_free(&r);
    sweep_args_free(&args);
    return status;
}

/* Synchronisations of a case, as far as they follow from it. */
static double syncs_of(const sweep_case *k)
{
    if (strcmp(k->sync, "none") == 0) return 0;
    if (strcmp(k->sync, "grad") == 0) return (double)k->steps;
    return ceil((double)k->steps / (double)k->every);
}

static void print_cases(const sweep *s, double bytes)
{
    printf("\n%-26s %8s %8s %12s\n", "case", "steps", "syncs", "MB a rank");
    for (size_t i = 0; i < s->n_cases; i++) {
        const sweep_case *k = &s->cases[i];
        const int plain = strcmp(k->compress, "none") == 0;

        printf("%-26s %8lld %8.0f", k->label, (long long)k->steps, syncs_of(k));
        if (plain)
            printf(" %12.2f\n", syncs_of(k) * bytes / 1e6);
        else
            printf("  less than %.2f\n", syncs_of(k) * bytes / 1e6);
    }
}

static void print_span(double low, double high)
{
    if (low < high)
        printf("%.0f to %.0f minutes", low, high);
    else
        printf("%s%.0f minute%s", low > 1 ? "" : "at most ", low,
               low > 1 ? "s" : "");
}

tac_status sweep_estimate(sweep *s)
{
    const size_t least = s->n_cases * (s->n_lrs + (size_t)s->o->seeds - 1);
    const size_t most = least + (s->n_lrs > 1 ? 2 * s->n_cases : 0);
    trial few, more;

    s->runs.timeout_s = s->o->timeout_s;
    TAC_TRY(try_steps(s, FEW, &few));
    TAC_TRY(try_steps(s, MORE, &more));
    sweep_print_clear(s);
    const double rest = fmax(0, few.all_s - FEW * few.train_s);
    const double each = rest + (double)s->micro_steps * more.train_s;
    printf("\n%zu runs", least);
    if (most > least)
        printf(", and up to %zu where the best learning rate is an end of the "
               "list",
               most);
    printf(": ");
    print_span(ceil((double)least * each / 60), ceil((double)most * each / 60));
    printf(",\n%.3g s a run (a micro-step took %.3g ms, the rest %.2g s).\n",
           each, 1e3 * more.train_s, rest);
    print_cases(s, more.bytes);
    return TAC_OK;
}
