/* What is seen in a terminal: the set-up, progress, and two tables: memory by
 * kind; bytes, time and accuracy. Progress goes to stderr. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "efficiency.h"

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

void eff_print_begin(const eff *e)
{
    const eff_row *b = &e->rows[0];

    if (e->o->quiet) return;
    printf("efficiency: %s on %s, %s; %zu rows, %lld seed%s, %zu runs\n",
           e->model, e->data, e->how, e->n_rows, (long long)e->o->seeds,
           plural((size_t)e->o->seeds), e->runs_planned);
    printf("samples: the same for every row, in the same order: %lld steps of "
           "%lld, %.3g epochs of %zu\n",
           (long long)b->steps, (long long)b->batch * e->world,
           (double)b->steps / (double)e->epoch_steps, e->train_count);
    if (e->o->epochs <= 0 && b->steps != e->o->steps)
        printf("  (not %lld steps, so that H and the accumulation divide "
               "them)\n",
               (long long)e->o->steps);
    printf("learning rate: for each optimizer, batch and way to synchronise "
           "%s on the\n"
           "  %zu validation samples; accuracy is of %zu test samples that no "
           "choice looked at\n",
           e->n_lrs > 1 ? "the one with the least loss"
                        : "its own; nothing is chosen",
           e->val_count, e->test_count);
    fflush(stdout);
}

static int shows_progress(const eff *e)
{
    return !e->o->quiet && isatty(2);
}

void eff_print_clear(const eff *e)
{
    if (shows_progress(e)) fputs("\r\033[K", stderr);
}

void eff_print_progress(const eff *e, const char *what)
{
    if (!shows_progress(e)) return;
    eff_print_clear(e);
    fprintf(stderr, "[%zu/%zu] %.50s", e->runs_done + 1, e->runs_planned, what);
    if (e->executed > 0)
        fprintf(stderr, ", about %.0f s left",
                e->executed_s / (double)e->executed *
                    (double)(e->runs_planned - e->runs_done));
    fflush(stderr);
}

/* ---- tables ----------------------------------------------------------------
 */

static int has(const eff_row *r)
{
    return r->n + r->missing > 0;
}

static void put(int width, int digits, double v)
{
    if (isfinite(v))
        printf(" %*.*f", width, digits, v);
    else
        printf(" %*s", width, "-");
}

/* "-12 %", of a share. */
static void put_change(int width, double v)
{
    if (isfinite(v))
        printf(" %+*.0f %%", width - 2, 100 * v + 0.0);
    else
        printf(" %*s", width, "-");
}

static void put_part(const eff *e, size_t i)
{
    static const char *const parts[] = {
        "baseline", "alone, against the baseline", "added, one to the other",
        "another convention"};

    if (i == 0 || e->rows[i].part != e->rows[i - 1].part)
        printf("%s\n", parts[e->rows[i].part]);
}

static void print_memory(const eff *e)
{
    const double mib = 1048576;

    printf("\n%-46s %8s %8s %8s %8s %8s %8s %8s %8s %7s\n",
           "memory of a rank, MiB", "param.", "gradient", "optim.", "activat.",
           "commun.", "local", "other", "total", "change");
    for (size_t i = 0; i < e->n_rows; i++) {
        const eff_row *r = &e->rows[i];

        if (!has(r)) continue;
        put_part(e, i);
        printf("  %-44s", r->label);
        for (int m = 0; m < EFF_MEMORY; m++) put(8, 2, r->memory[m] / mib);
        put(8, 2, r->memory_total / mib);
        put_change(7, r->memory_total / e->rows[0].memory_total - 1);
        printf("\n");
    }
}

static void put_accuracy(const eff *e, const eff_row *r)
{
    put(7, 2, 100 * r->test_mean);
    printf(" +-%5.2f", 100 * r->test_error);
    if (r != &e->rows[0] && isfinite(r->gain))
        printf(" %+6.2f +-%5.2f", 100 * r->gain, 100 * r->gain_error);
    if (r->missing > 0) printf("  %zu diverged", r->missing);
}

static void print_rest(const eff *e)
{
    printf("\n%-46s %9s %9s %9s", "bytes, time, accuracy", "kB sent", "kB",
           "us");
    for (size_t k = 0; k < e->n_networks; k++) printf(" %9s", "us");
    printf(" %15s %15s\n%-46s %9s %9s %9s", e->tested ? "test" : "validation",
           "against the", "", "a step", "a sample", "a sample");
    for (size_t k = 0; k < e->n_networks; k++)
        printf(" %9s", e->network_names[k]);
    printf(" %15s %15s\n", "%, +-SE", "baseline");
    for (size_t i = 0; i < e->n_rows; i++) {
        const eff_row *r = &e->rows[i];

        if (!has(r)) continue;
        put_part(e, i);
        printf("  %-44s", r->label);
        put(9, 1, r->bytes_step / 1e3);
        put(9, 3, r->bytes_sample / 1e3);
        put(9, 1, r->seconds * 1e6);
        for (size_t k = 0; k < e->n_networks; k++)
            put(9, 1, r->modelled[k] * 1e6);
        put_accuracy(e, r);
        printf("\n");
    }
}

static void print_legend(const eff *e)
{
    printf("\nsteps: the optimizer's; bytes a step are of one rank, a sample "
           "of all. us a sample: measured\nhere, median over seeds");
    if (e->n_networks > 0)
        printf("; by network: modelled from the row's own computing time and "
               "bytes");
    printf(".\nSE: standard error, %s.\n",
           e->o->seeds > 1 ? "over seeds" : "of so many images; a single seed");
    if (e->oversubscribed)
        printf("OVERSUBSCRIBED: ranks share cores, so times contain other "
               "ranks' computing\n");
}

void eff_print_table(const eff *e)
{
    if (e->o->quiet) return;
    print_memory(e);
    print_rest(e);
    print_legend(e);
    printf("\n");
    eff_finding(e, stdout);
    fflush(stdout);
}
