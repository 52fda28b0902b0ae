/* The end: a line a case, means over its seeds, and what that says. */
#include <math.h>
#include <string.h>

#include "sweep_page.h"

static void put(int width, int digits, double v)
{
    if (isfinite(v))
        printf(" %*.*f", width, digits, v);
    else
        printf(" %*s", width, "-");
}

/* "88.12 +- 0.20": percent; the spread is a standard deviation. */
static void put_percent(const sweep_mean *m)
{
    if (m->n == 0)
        printf(" %14s", "-");
    else if (m->n == 1)
        printf(" %6.2f        ", 100 * m->mean);
    else
        printf(" %6.2f +-%5.2f", 100 * m->mean, 100 * m->sd);
}

static double mean_of(const sweep *s, size_t of, size_t offset)
{
    return tac__sweep_mean(s, of, offset).mean;
}

/* Of averaging plain gradients in every step. */
static double per_step_bytes(const sweep *s)
{
    for (size_t i = 0; i < s->n_cases; i++)
        if (strcmp(s->cases[i].label, "per-step") == 0)
            return mean_of(s, i, offsetof(sweep_row, bytes_counted));
    return NAN;
}

static void put_case(const sweep *s, size_t i, int on_front)
{
    const sweep_case *k = &s->cases[i];
    const double bytes = mean_of(s, i, offsetof(sweep_row, bytes_counted));
    const sweep_mean accuracy = tac__sweep_accuracy(s, i);
    const char *edge = k->lr_at_edge < 0 ? "<" : k->lr_at_edge > 0 ? ">" : " ";

    printf("%s%-26s %9g%s", on_front ? "*" : " ", k->label, k->lr, edge);
    put(9, 2, bytes / 1e6);
    put(8, 1, per_step_bytes(s) / bytes);
    put(8, 2, mean_of(s, i, offsetof(sweep_row, wall_s)));
    put(8, 2, mean_of(s, i, offsetof(sweep_row, wall_predicted_s)));
    put(9, 4, mean_of(s, i, offsetof(sweep_row, eval_loss)));
    put_percent(&accuracy);
    put(7, 2, 100 * mean_of(s, i, offsetof(sweep_row, local_accuracy)));
    if (accuracy.missing > 0) printf("  %zu diverged", accuracy.missing);
    printf("\n");
}

static int has_row(const sweep *s, size_t of)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].of == of) return 1;
    return 0;
}

static void put_legend(const sweep *s)
{
    int edges = 0;

    for (size_t i = 0; i < s->n_cases; i++)
        edges += s->cases[i].lr_at_edge != 0;
    printf("* nothing has both fewer bytes and more accuracy. +-: standard "
           "deviation over seeds.\n");
    if (edges > 0)
        printf("< > the best learning rate was the smallest or largest that "
               "was tried, also after\n    going two factors of two further: "
               "a better one may lie beyond (%d cases).\n",
               edges);
}

void sweep_print_end(const sweep *s)
{
    int front[512] = {0};

    if (s->o->quiet || s->n_rows == 0) return;
    sweep_print_clear(s);
    if (s->n_cases <= sizeof front / sizeof *front) sweep_pareto(s, front);
    printf("\n %-26s %10s %9s %8s %8s %8s %9s %14s %7s\n", "mean over seeds",
           "lr ", "MB a rank", "fewer x", "wall s", "pred. s", "eval loss",
           tac__sweep_tested(s) ? "test %       " : "eval %       ", "local %");
    for (size_t i = 0; i < s->n_cases; i++)
        if (has_row(s, i)) put_case(s, i, front[i % 512]);
    put_legend(s);
    printf("\n");
    sweep_finding(s, stdout);
    fflush(stdout);
}
