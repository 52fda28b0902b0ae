/* What is seen while it goes: what is compared and how, a line a row, and on a
 * terminal a line of progress below. Rows go to stdout, progress to stderr. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "localsgd_sweep.h"

static void print_rates(const sweep *s)
{
    if (s->n_lrs == 1) {
        printf(
            "learning rate: %g for all cases, as given; it is not searched\n",
            s->lrs[0]);
        return;
    }
    printf("learning rate: for each case the one of");
    for (size_t i = 0; i < s->n_lrs; i++)
        printf("%s %g", i ? "," : "", s->lrs[i]);
    printf(" with the least loss on\n"
           "  the %zu validation samples (seed 1, whole runs); if that is an "
           "end of the list, up to\n"
           "  two more, each a factor of two further\n",
           s->val_count);
}

void sweep_print_begin(const sweep *s)
{
    const sweep_options *o = s->o;

    if (o->quiet) return;
    printf("localsgd_sweep: %s on %s, %d rank%s (%s), %s, %s, shards %s%s%s\n",
           o->model, o->data, s->world, s->world == 1 ? "" : "s",
           s->runs.launch ? "processes" : "threads", o->optimizer, o->precision,
           o->shards, o->emulate ? ", " : "", o->emulate ? o->emulate : "");
    printf("%zu cases, %lld seed%s: %s at H = %s, and baselines\n", s->n_cases,
           (long long)o->seeds, o->seeds == 1 ? "" : "s", o->sync,
           o->sync_every);
    printf("batch: %lld a rank and micro-step in every case, so a step sees "
           "%lld samples; those of\n  accumulate H see H times as many, and "
           "there is an H-th of them\n",
           (long long)o->batch, (long long)o->batch * s->world);
    printf("samples: the same for every case, in the same order: %lld "
           "micro-steps a rank, %.4g epoch%s of %zu\n",
           (long long)s->micro_steps,
           (double)s->micro_steps / (double)s->epoch_batches,
           s->micro_steps == s->epoch_batches ? "" : "s", s->train_count);
    if (o->steps > 0 && o->steps != s->micro_steps)
        printf("  (not %lld, so that every H divides them)\n",
               (long long)o->steps);
    if (s->too_long)
        printf("no accumulation from H = %lld on: an epoch has %lld "
               "micro-steps, and no step crosses its end\n",
               (long long)s->too_long, (long long)s->epoch_batches);
    print_rates(s);
    printf("test accuracy is of the averaged model on %zu samples that no "
           "choice looked at\n",
           s->test_count);
    fflush(stdout);
}

/* One for each way to synchronise. */
static void print_syncs(const sweep *s)
{
    const char *gap = ":";

    for (size_t i = 0; i < s->n_cases; i++) {
        const sweep_case *k = &s->cases[i];
        size_t first = 0;

        while (strcmp(s->cases[first].sync, k->sync) != 0 ||
               strcmp(s->cases[first].compress, k->compress) != 0)
            first++;
        if (first != i || isnan(k->sync_alone_s)) continue;
        printf("%s %s%s%s %.3g ms", gap, k->sync,
               strcmp(k->compress, "none") ? " " : "",
               strcmp(k->compress, "none") ? k->compress : "",
               1e3 * k->sync_alone_s);
        gap = ",";
    }
}

static void print_head(void)
{
    printf("\n%-26s %4s %9s %6s %6s %9s %8s %8s %9s %7s %7s %8s\n", "case",
           "seed", "lr", "steps", "syncs", "MB a rank", "wall s", "pred. s",
           "eval loss", "eval %", "test %", "apart");
}

void sweep_print_measured(const sweep *s)
{
    if (s->o->quiet) return;
    sweep_print_clear(s);
    printf("alone: computing a micro-step takes %.3g ms, one synchronisation",
           1e3 * s->compute_s);
    print_syncs(s);
    printf("\n");
    if (s->oversubscribed)
        printf("OVERSUBSCRIBED: ranks share cores, so wall times contain other "
               "ranks' computing\n");
    print_head();
    fflush(stdout);
}

/* 12.3; "-" where there is no number. */
static void print_number(int width, int digits, double v)
{
    if (isfinite(v))
        printf(" %*.*f", width, digits, v);
    else
        printf(" %*s", width, "-");
}

void sweep_print_row(const sweep *s, const sweep_row *r)
{
    if (s->o->quiet) return;
    sweep_print_clear(s);
    printf("%-26s %4lld %9g %6lld %6lld", s->cases[r->of].label,
           (long long)r->seed, r->lr, (long long)r->steps, (long long)r->syncs);
    if (r->diverged) {
        printf("  diverged\n");
    } else {
        print_number(9, 2, r->bytes_counted / 1e6);
        print_number(8, 2, r->wall_s);
        print_number(8, 2, r->wall_predicted_s);
        print_number(9, 4, r->eval_loss);
        print_number(7, 2, 100 * r->eval_accuracy);
        print_number(7, 2, 100 * r->test_accuracy);
        if (isfinite(r->consensus_distance))
            printf(" %8.3g\n", r->consensus_distance);
        else
            printf(" %8s\n", "-");
    }
    fflush(stdout);
}

static int shows_progress(const sweep *s)
{
    return !s->o->quiet && isatty(2);
}

void sweep_print_clear(const sweep *s)
{
    if (shows_progress(s)) fputs("\r\033[K", stderr);
}

static void print_left(const sweep *s)
{
    const double each = s->executed_s / (double)s->executed;
    const double left = each * (double)(s->runs_planned - s->runs_done);

    if (s->executed == 0) return;
    fprintf(stderr, left < 90 ? ", about %.0f s left" : ", about %.0f min left",
            left < 90 ? left : left / 60);
}

void sweep_print_progress(const sweep *s, const char *what)
{
    if (!shows_progress(s)) return;
    sweep_print_clear(s);
    fprintf(stderr, "[%zu/%zu] %.60s", s->runs_done + 1, s->runs_planned, what);
    if (s->runs_done < s->runs_planned) print_left(s);
    fflush(stderr);
}
