/* experiment_e3.c: accuracy and wall time against H, on an emulated network.
 *
 * The learning rate is searched without the network: it changes when bytes
 * arrive, not what they say. */
#include <math.h>
#include <stdio.h>

#include "experiment.h"

enum { LENGTHS = 7 };

typedef struct plan {
    exp_variant v[LENGTHS];
    int n;
    char network[64], common[160];
} plan;

static void make_plan(const exp_bench *b, plan *p)
{
    const int step = b->o->quick ? 2 : 1;
    for (int k = 0; k < LENGTHS; k += step) {
        char label[48];
        snprintf(label, sizeof label, "H = %d", 1 << k);
        p->v[p->n++] = exp_variant_make(1 << k, label,
                                        "--sync local --sync-every %d", 1 << k);
    }
    snprintf(p->network, sizeof p->network, "hosts=%lld,rate=400mbit",
             (long long)b->o->ranks);
    snprintf(p->common, sizeof p->common,
             "--optimizer sgd --momentum 0.9 --batch 32 --emulate %s",
             p->network);
}

static tac_status measure(exp_trained *t, plan *p)
{
    t->common = "--optimizer sgd --momentum 0.9 --batch 32";
    for (int k = 0; k < p->n; k++) TAC_TRY(exp_search(t, &p->v[k]));
    t->common = p->common;
    for (int k = 0; k < p->n; k++) TAC_TRY(exp_measure(t, &p->v[k]));
    return TAC_OK;
}

static exp_line fit(const plan *p)
{
    double x[LENGTHS], y[LENGTHS];
    for (int k = 0; k < p->n; k++) {
        x[k] = 1 / p->v[k].number;
        y[k] = exp_mean(p->v[k].seconds, p->v[k].n);
    }
    return exp_fit(x, y, (size_t)p->n);
}

static void tell(exp_report *r, const plan *p, const exp_line *line)
{
    exp_table(r, "Accuracy and seconds of training by H:");
    exp_variant_columns(r, "averaging");
    exp_column(r, "train_s", "seconds", "%.2f");
    exp_column(r, "train_s_sd", "+-", "%.2f");
    exp_column(r, "fitted_s", "a + b/H", "%.2f");
    for (int k = 0; k < p->n; k++) {
        const exp_variant *v = &p->v[k];
        exp_variant_row(r, v);
        exp_number(r, exp_mean(v->seconds, v->n));
        exp_number(r, exp_deviation(v->seconds, v->n));
        exp_number(r, line->a + line->b / v->number);
    }
}

/* Is y above x by more than chance? Two standard deviations of a difference of
 * means, and half a point, since a few seeds tell little about spread. */
static double rise(const exp_variant *x, const exp_variant *y, double *noise)
{
    const double a = exp_deviation(x->accuracy, x->n);
    const double b = exp_deviation(y->accuracy, y->n);
    *noise = fmax(0.005, 2 * sqrt((a * a + b * b) / (double)x->n));
    return exp_accuracy(y) - exp_accuracy(x);
}

static void judge(exp_report *r, const plan *p, const exp_line *line)
{
    double worst = -INFINITY, of = 0, noise;
    int at = 1, rises = 0;
    for (int k = 1; k < p->n; k++) {
        const double up = rise(&p->v[k - 1], &p->v[k], &noise);
        rises += !(up <= noise);
        if (!(up <= worst)) worst = up, of = noise, at = k;
    }
    exp_condition(r, line->r2 > 0.98, "seconds = %.2f + %.2f/H with R^2 = %.4f",
                  line->a, line->b, line->r2);
    exp_condition(
        r, rises == 0,
        "the largest rise of accuracy from one H to the next is %+.2f "
        "points, at H = %.0f (noise: %.2f)",
        100 * worst, p->v[at].number, 100 * of);
}

tac_status exp_e3(exp_bench *b, exp_report *r)
{
    static const double rates[] = {0.01, 0.03, 0.1, 0.3};
    plan p = {.n = 0};
    exp_trained t = {.b = b,
                     .name = "E3",
                     .steps = exp_steps(b, 256, 64),
                     .lrs = rates + (b->o->quick ? 1 : 0),
                     .n_lrs = b->o->quick ? 2 : 4};
    if (b->o->ranks < 2)
        return tac_fail(b->ctx, TAC_ERR_CONFIG,
                        "E3 needs a network between ranks: --ranks 2 or more");
    make_plan(b, &p);
    TAC_TRY(measure(&t, &p));
    const exp_line line = fit(&p);
    exp_ran(r, "Each rank is a host of its own, with 400 Mbit/s each way.");
    exp_ran_trained(r, &t);
    tell(r, &p, &line);
    judge(r, &p, &line);
    return TAC_OK;
}
