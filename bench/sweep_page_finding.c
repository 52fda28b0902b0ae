/* sweep_page_finding.c: what came out, in words and figures: before the
 * pictures, because it is what is asked for. */
#include <math.h>
#include <stdlib.h>

#include "sweep_page.h"

/* ---- accuracy at H ---------------------------------------------------------
 */

/* 16 where there is one; else the largest, but one that is not 1. */
static size_t telling(const sweep_page *p, const sweep_group *g)
{
    const size_t at = tac__sweep_at(p, g, 16);
    if (at < p->s->n_cases) return at;
    return g->n ? g->cases[g->n - 1] : p->s->n_cases;
}

static sweep_mean bytes_of(const sweep_page *p, size_t of)
{
    return tac__sweep_mean(p->s, of, offsetof(sweep_row, bytes_counted));
}

static const char *accuracy_name(const sweep_page *p)
{
    return tac__sweep_tested(p->s) ? "test accuracy" : "validation accuracy";
}

static void against(sweep_page *p, const char *name, size_t of, size_t with,
                    const char *with_name)
{
    const sweep_mean a = tac__sweep_accuracy(p->s, of),
                     b = tac__sweep_accuracy(p->s, with);
    const sweep_mean x = bytes_of(p, of), y = bytes_of(p, with);
    char t[5][SWEEP_TEXT];
    tac__page_html(p, "<li><strong>");
    tac__page_print(p, "%s, H = %lld", name,
                    (long long)tac__sweep_interval(&p->s->cases[of]));
    tac__page_html(p, "</strong>: ");
    tac__page_print(p, "%s %s, against %s of %s: %s, with ", accuracy_name(p),
                    tac__sweep_share_mean(&a, t[0]),
                    tac__sweep_share_mean(&b, t[1]), with_name,
                    tac__sweep_points(a.mean - b.mean, t[2]));
    if (x.mean > 0)
        tac__page_print(p,
                        "%.3g times fewer bytes a rank than %s (%s instead of "
                        "%s).",
                        y.mean / x.mean, with_name,
                        tac_page_bytes(x.mean, t[3]),
                        tac_page_bytes(y.mean, t[4]));
    else
        tac__page_print(p, "no bytes at all.");
    tac__page_html(p, "</li>\n");
}

static void intervals(sweep_page *p)
{
    const size_t none = p->s->n_cases;
    tac__page_html(p,
                   "<p>What H saves: a method at a long H against the same "
                   "method with the same codec at H = 1. What a codec saves "
                   "comes on top; all bytes against plain per-step averaging "
                   "are in the table below.</p>\n<ul>\n");
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        const size_t of = telling(p, g), one = tac__sweep_at(p, g, 1);
        if (g->kind != SWEEP_LOCAL || of == none) continue;
        if (one != none && one != of)
            against(p, g->name, of, one, "the same at H = 1");
        else if (p->per_step != none)
            against(p, g->name, of, p->per_step, "per-step");
    }
    tac__page_html(p, "</ul>\n");
}

/* ---- what holds ------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Relative errors of predicted wall times; n of them, ascending. */
static double *wall_errors(const sweep *s, size_t *n)
{
    double *e = calloc(s->n_rows + 1, sizeof *e);
    *n = 0;
    for (size_t i = 0; e && i < s->n_rows; i++) {
        const sweep_row *r = &s->rows[i];
        if (!(r->wall_s > 0) || !isfinite(r->wall_predicted_s)) continue;
        e[(*n)++] = fabs(r->wall_predicted_s / r->wall_s - 1);
    }
    if (e) qsort(e, *n, sizeof *e, by_value);
    return e;
}

static void wall(sweep_page *p)
{
    size_t n;
    double *e = wall_errors(p->s, &n);
    if (n > 0)
        tac__page_print(p,
                        "Wall time, predicted from compute alone and "
                        "communication alone: off by %.1f %% in the median and "
                        "%.1f %% at most (%zu runs). ",
                        100 * e[n / 2], 100 * e[n - 1], n);
    else
        tac__page_print(p, "Wall times were not predicted. ");
    free(e);
}

static void bytes(sweep_page *p)
{
    size_t predictable = 0, equal = 0;
    for (size_t i = 0; i < p->s->n_rows; i++) {
        const sweep_row *r = &p->s->rows[i];
        predictable += r->predictable != 0;
        equal += r->predictable && r->bytes_predicted == r->bytes_counted;
    }
    if (predictable == equal)
        tac__page_print(p,
                        "Bytes predicted before training equal those counted, "
                        "exactly, in all %zu runs that can be predicted",
                        predictable);
    else
        tac__page_print(p,
                        "Bytes predicted before training DIFFER from those "
                        "counted in %zu of %zu runs",
                        predictable - equal, predictable);
    if (predictable < p->s->n_rows)
        tac__page_print(p,
                        " (%zu can't: what they send depends on losses or "
                        "times)",
                        p->s->n_rows - predictable);
    tac__page_print(p, ".");
}

static void predictions(sweep_page *p)
{
    tac__page_html(p, "<h3>Predictions</h3>\n<p>");
    wall(p);
    bytes(p);
    tac__page_html(p, "</p>\n");
}

/* ---- the front -------------------------------------------------------------
 */

/* Of methods at most half a point below, that of the least bytes; baselines are
 * what they are measured by. */
static void cheapest(sweep_page *p)
{
    size_t best = p->s->n_cases;
    char t[3][SWEEP_TEXT];
    for (size_t i = 0; i < p->s->n_cases; i++)
        if (!p->s->cases[i].baseline && tac__sweep_good_enough(p, i) &&
            (best == p->s->n_cases ||
             bytes_of(p, i).mean < bytes_of(p, best).mean))
            best = i;
    if (best == p->s->n_cases) return;
    const sweep_mean a = tac__sweep_accuracy(p->s, best);
    tac__page_html(p, "<p>The method with the fewest bytes and an accuracy at "
                      "most half a point below ");
    tac__page_print(
        p, "%s (%s): ", p->per_step < p->s->n_cases ? "per-step" : "the best",
        tac_page_share(tac__sweep_standard(p), t[0]));
    tac__page_html(p, "<strong>");
    tac__page_text(p, p->s->cases[best].label);
    tac__page_html(p, "</strong>");
    tac__page_print(p, ", %s with %s a rank.", tac__sweep_share_mean(&a, t[1]),
                    tac_page_bytes(bytes_of(p, best).mean, t[2]));
    tac__page_html(p, "</p>\n");
}

static void front(sweep_page *p)
{
    const char *comma = "";
    char t[2][SWEEP_TEXT];
    tac__page_html(p, "<h3>Bytes against error</h3>\n");
    cheapest(p);
    tac__page_html(p, "<p>Nothing beats these in "
                      "both bytes and error: ");
    for (size_t i = 0; i < p->s->n_cases; i++) {
        if (!p->front[i]) continue;
        const sweep_mean a = tac__sweep_accuracy(p->s, i), b = bytes_of(p, i);
        tac__page_print(p, "%s%s (%s a rank, error %s)", comma,
                        p->s->cases[i].label, tac_page_bytes(b.mean, t[0]),
                        tac_page_share(1 - a.mean, t[1]));
        comma = "; ";
    }
    tac__page_print(p, "%s.", comma[0] ? "" : "none, as no run was tested");
    tac__page_html(p, "</p>\n");
}

/* ---- doubts ----------------------------------------------------------------
 */

static size_t diverged(const sweep *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_rows; i++) n += !isfinite(s->rows[i].eval_loss);
    return n;
}

static void edges(sweep_page *p)
{
    const char *comma = "";
    tac__page_html(p, "<p class=\"warn\">The best learning rate was the "
                      "smallest or largest tried, so a better one may lie "
                      "beyond: ");
    for (size_t i = 0; i < p->s->n_cases; i++) {
        const sweep_case *k = &p->s->cases[i];
        if (!k->lr_at_edge) continue;
        tac__page_print(p, "%s%s (%s, %g)", comma, k->label,
                        k->lr_at_edge < 0 ? "smallest" : "largest", k->lr);
        comma = "; ";
    }
    tac__page_html(p, ".</p>\n");
}

static void doubts(sweep_page *p)
{
    int at_edge = 0;
    for (size_t i = 0; i < p->s->n_cases; i++)
        at_edge |= p->s->cases[i].lr_at_edge;
    if (p->s->o->seeds < 2)
        tac__page_html(p,
                       "<p class=\"warn\">One seed: nothing says how much of "
                       "a difference is chance.</p>\n");
    if (at_edge) edges(p);
    if (diverged(p->s) > 0) {
        tac__page_html(p, "<p class=\"warn\">");
        tac__page_print(p,
                        "%zu runs ended without a loss (they diverged or were "
                        "stopped). They are in the table, not in means.",
                        diverged(p->s));
        tac__page_html(p, "</p>\n");
    }
}

void tac__page_finding(sweep_page *p)
{
    tac__page_html(p, "<section id=\"finding\" aria-label=\"Finding\">\n"
                      "<h2>Finding</h2>\n");
    if (p->s->n_rows == 0) tac__page_html(p, "<p>No run has ended yet.</p>\n");
    doubts(p);
    intervals(p);
    tac__page_compare(p);
    tac__page_networks(p);
    front(p);
    predictions(p);
    tac__page_html(p, "</section>\n");
}
