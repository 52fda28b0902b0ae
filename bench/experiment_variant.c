/* experiment_variant.c: variants of a training run: their options, and their
 * columns, rows and paragraphs in a report. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "experiment.h"

exp_variant exp_variant_make(double number, const char *label,
                             const char *format, ...)
{
    va_list args;
    exp_variant v = {.number = number, .lr = NAN, .bytes = NAN, .syncs = NAN};
    snprintf(v.label, sizeof v.label, "%s", label);
    va_start(args, format);
    vsnprintf(v.args, sizeof v.args, format, args);
    va_end(args);
    return v;
}

double exp_loss(const exp_variant *v)
{
    return exp_mean(v->loss, v->n);
}

double exp_accuracy(const exp_variant *v)
{
    return exp_mean(v->accuracy, v->n);
}

void exp_variant_columns(exp_report *r, const char *head)
{
    exp_column(r, "variant", head, NULL);
    exp_column(r, "eval_loss", "loss", "%.4f");
    exp_column(r, "eval_loss_sd", "+-", "%.4f");
    exp_column(r, "eval_accuracy", "accuracy", "%.4f");
    exp_column(r, "eval_accuracy_sd", "+-", "%.4f");
    exp_column(r, "syncs", "syncs", "%.0f");
    exp_column(r, "bytes", "bytes a rank", "%.4g");
    exp_column(r, "lr", "lr", "%g");
    exp_column(r, "lr_at_edge", "of those tried", NULL);
}

void exp_variant_row(exp_report *r, const exp_variant *v)
{
    exp_row(r);
    exp_text(r, v->label);
    exp_number(r, exp_loss(v));
    exp_number(r, exp_deviation(v->loss, v->n));
    exp_number(r, exp_accuracy(v));
    exp_number(r, exp_deviation(v->accuracy, v->n));
    exp_number(r, v->syncs);
    exp_number(r, v->bytes);
    exp_number(r, v->lr);
    exp_text(r, v->lr_at_edge < 0   ? "smallest"
                : v->lr_at_edge > 0 ? "largest"
                                    : "inner");
}

void exp_variant_table(exp_report *r, const exp_variant *v, size_t n,
                       const char *head, const char *caption)
{
    exp_table(r, "%s", caption);
    exp_variant_columns(r, head);
    for (size_t k = 0; k < n; k++) exp_variant_row(r, &v[k]);
}

static void list_rates(const exp_trained *t, char *out, size_t bytes)
{
    size_t at = 0;
    *out = 0;
    for (size_t k = 0; k < t->n_lrs && at < bytes; k++)
        at += (size_t)snprintf(out + at, bytes - at, "%s%g", k ? ", " : "",
                               t->lrs[k]);
}

void exp_ran_trained(exp_report *r, const exp_trained *t)
{
    const exp_options *o = t->b->o;
    const long long ranks = exp_ranks(t);
    const long long seeds = exp_seeds(t->b);
    const long long tried = exp_search_seeds(t);
    char rates[160];
    list_rates(t, rates, sizeof rates);
    exp_report_seeds(r, seeds);
    exp_ran(r,
            "%s on %s, %lld rank%s, %lld steps, `ddp_train %s`; the batch is a "
            "rank's and the same for all, so all see the same samples.",
            o->model, o->data, ranks, ranks > 1 ? "s" : "", (long long)t->steps,
            t->common);
    exp_ran(r,
            "Learning rates %s, the best on the validation images by %lld "
            "other seed%s; then %lld seed%s. Loss and accuracy are of the "
            "averaged model on the validation images, means over seeds, +- "
            "one standard deviation.",
            rates, tried, tried > 1 ? "s" : "", seeds, seeds > 1 ? "s" : "");
}
