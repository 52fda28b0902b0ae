/* sweep_page_accuracy.c: what averaging less often costs: accuracy, and how far
 * ranks drift apart, against H. */
#include <math.h>

#include "sweep_page.h"

/* ---- accuracy --------------------------------------------------------------
 */

static double low_of(const sweep_mean *m)
{
    return m->n > 1 ? m->mean - m->sd : NAN;
}

static double high_of(const sweep_mean *m)
{
    return m->n > 1 ? m->mean + m->sd : NAN;
}

static void add_accuracy(picture *k, size_t of, double every)
{
    const sweep *s = k->page->s;
    const sweep_mean m = tac__sweep_accuracy(s, of);
    char text[SWEEP_TEXT];
    tac__picture_point(k, every, m.mean, low_of(&m), high_of(&m),
                       "%.40s: %s, %zu seeds", s->cases[of].label,
                       tac__sweep_share_mean(&m, text), m.n);
}

static void accuracy_line(picture *k, const sweep_group *g)
{
    const sweep *s = k->page->s;
    const tac_svg_series look = {
        .colour = g->colour, .dashed = g->dashed, .marker = g->marker};
    if (g->kind != SWEEP_LOCAL && g->kind != SWEEP_ACCUMULATE) return;
    tac__picture_line(k, g->name, &look);
    for (size_t i = 0; i < g->n; i++)
        add_accuracy(k, g->cases[i],
                     (double)tac__sweep_interval(&s->cases[g->cases[i]]));
}

static int64_t steps_of(const sweep *s, size_t of)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].of == of) return s->rows[i].steps;
    return 0;
}

/* One average in all: an H as long as the run. */
static void oneshot(picture *k, const sweep_group *g)
{
    const int64_t steps = steps_of(k->page->s, g->cases[0]);
    const tac_svg_series look = {
        .colour = g->colour, .marker = g->marker, .style = TAC_SVG_POINTS};
    if (g->kind != SWEEP_ONESHOT || steps < 1) return;
    tac__picture_line(k, "one-shot (H: all steps)", &look);
    add_accuracy(k, g->cases[0], (double)steps);
}

/* What has no H is a line over the whole panel. */
static size_t lines_across(const sweep_page *p, tac_svg_mark *marks,
                           size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_groups && n < room; i++) {
        const sweep_group *g = &p->groups[i];
        if (g->kind != SWEEP_PER_STEP && g->kind != SWEEP_ALONE) continue;
        const sweep_mean m = tac__sweep_accuracy(p->s, g->cases[0]);
        if (m.n == 0) continue;
        marks[n++] =
            (tac_svg_mark){.name = g->name,
                           .colour = g->colour,
                           .dashed = g->kind == SWEEP_ALONE ? 2 : g->dashed,
                           .across = 1,
                           .y = m.mean,
                           .low = low_of(&m),
                           .high = high_of(&m)};
    }
    return n;
}

/* Ten points below the standard at most, or a case that learnt nothing would
 * press all others together. */
static void accuracy_span(const sweep_page *p, tac_svg_axis *y)
{
    const double standard = tac__sweep_standard(p);
    double low = standard, high = standard;
    for (size_t i = 0; i < p->s->n_cases; i++) {
        const sweep_mean m = tac__sweep_accuracy(p->s, i);
        if (m.n == 0 || m.mean < standard - 0.1) continue;
        low = fmin(low, fmax(m.mean - m.sd, standard - 0.1));
        high = fmax(high, m.mean + m.sd);
    }
    if (!isfinite(low)) return;
    const double room = fmax(0.06 * (high - low), 1e-4);
    y->from = low - room;
    y->to = high + room;
}

static void mark_legend(sweep_page *p, const tac_svg_mark *marks, size_t n)
{
    picture k = {.page = p};
    for (size_t i = 0; i < n; i++) {
        const tac_svg_series look = {.colour = marks[i].colour,
                                     .dashed = marks[i].dashed,
                                     .marker = TAC_SVG_NO_MARKER};
        tac__picture_line(&k, marks[i].name, &look);
    }
    tac__picture_legend(&k);
    tac__picture_free(&k);
}

tac_status tac__picture_accuracy(picture *k)
{
    const sweep_page *p = k->page;
    const char *name =
        tac__sweep_tested(p->s) ? "test accuracy" : "validation accuracy";
    k->panel.title = name;
    k->panel.x = (tac_svg_axis){.label = "H (steps between two averages)",
                                .log = 1,
                                .unit = TAC_SVG_UNIT_POWER2};
    k->panel.y =
        (tac_svg_axis){.label = name, .unit = TAC_SVG_UNIT_PERCENT, .tight = 1};
    accuracy_span(p, &k->panel.y);
    k->panel.marks = k->marks;
    k->panel.n_marks =
        lines_across(p, k->marks, sizeof k->marks / sizeof *k->marks);
    for (size_t i = 0; i < p->n_groups; i++) accuracy_line(k, &p->groups[i]);
    for (size_t i = 0; i < p->n_groups; i++) oneshot(k, &p->groups[i]);
    return TAC_OK;
}

static tac_status accuracy(sweep_page *p)
{
    picture k = {.page = p, .panel = {.width = 560, .height = 340}};
    tac__picture_accuracy(&k);
    const tac_status status = tac__picture_draw(
        &k, "Accuracy against H, a line for each method with error bars, "
            "per-step and no averaging as horizontal lines");
    tac__picture_legend(&k);
    mark_legend(p, k.marks, k.panel.n_marks);
    tac__picture_free(&k);
    return status;
}

/* ---- consensus distance ----------------------------------------------------
 */

static void consensus_line(picture *k, const sweep_group *g)
{
    const sweep *s = k->page->s;
    const tac_svg_series look = {
        .colour = g->colour, .dashed = g->dashed, .marker = g->marker};
    if (g->kind != SWEEP_LOCAL) return;
    tac__picture_line(k, g->name, &look);
    for (size_t i = 0; i < g->n; i++) {
        const sweep_case *c = &s->cases[g->cases[i]];
        const sweep_mean m = tac__sweep_mean(
            s, g->cases[i], offsetof(sweep_row, consensus_distance));
        tac__picture_point(k, (double)c->every, m.mean, m.n > 1 ? m.low : NAN,
                           m.n > 1 ? m.high : NAN, "%.40s: %.4g (%.4g to %.4g)",
                           c->label, m.mean, m.low, m.high);
    }
}

static tac_status consensus(sweep_page *p)
{
    picture k = {.page = p};
    k.panel.title = "consensus distance";
    k.panel.x = (tac_svg_axis){.label = "H (steps between two averages)",
                               .log = 1,
                               .unit = TAC_SVG_UNIT_POWER2};
    k.panel.y = (tac_svg_axis){.label = "squared distance", .log = 1};
    for (size_t i = 0; i < p->n_groups; i++) consensus_line(&k, &p->groups[i]);
    const tac_status status = tac__picture_draw(
        &k, "Consensus distance against H, a line for each method");
    tac__picture_legend(&k);
    tac__picture_free(&k);
    return status;
}

tac_status tac__page_consensus(sweep_page *p)
{
    tac__page_figure(p, "consensus", "Consensus distance against H",
                     "Mean over ranks of the squared distance between their "
                     "parameters and the mean, just before the last average; "
                     "bars from the smallest to the largest seed.");
    tac__page_html(p, "<div>");
    TAC_TRY(consensus(p));
    tac__page_html(p, "</div>\n");
    tac__page_figure_end(p);
    return TAC_OK;
}

tac_status tac__page_accuracy(sweep_page *p)
{
    tac__page_html(p,
                   "<figure id=\"accuracy\"><figcaption><h3>Accuracy against "
                   "H</h3><p>Of the averaged model at the end, mean and "
                   "sample standard deviation over seeds. Accumulation: of H "
                   "micro-steps. Triangles at the lower edge: beyond it."
                   "</p></figcaption>\n<div class=\"large\">\n");
    TAC_TRY(accuracy(p));
    tac__page_html(p, "</div></figure>\n");
    return TAC_OK;
}
