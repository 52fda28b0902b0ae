/* sweep_page_rates.c: every learning rate that was tried: the search is only as
 * fair as what it looked at. */
#include <math.h>

#include "sweep_page.h"

/* ---- pictures --------------------------------------------------------------
 */

static void add_trials(picture *k, size_t of, const tac_svg_series *look)
{
    const sweep *s = k->page->s;
    const double chosen = s->cases[of].lr;
    double last = 0;
    /* In ascending order, whatever the order of the search. */
    for (;;) {
        const sweep_trial *next = NULL;
        for (size_t i = 0; i < s->n_trials; i++) {
            const sweep_trial *t = &s->trials[i];
            if (t->of != of || !(t->lr > last)) continue;
            if (!next || t->lr < next->lr) next = t;
        }
        if (!next) return;
        if (last == 0) tac__picture_line(k, "", look);
        tac__picture_point(k, next->lr, next->eval_loss, NAN, NAN,
                           "%.40s: learning rate %g, loss %.4g%s",
                           s->cases[of].label, next->lr, next->eval_loss,
                           next->lr == chosen ? ", chosen" : "");
        last = next->lr;
    }
}

static void add_chosen(picture *k, const sweep_group *g)
{
    const sweep *s = k->page->s;
    const tac_svg_series look = {
        .colour = 6, .marker = TAC_SVG_RING, .style = TAC_SVG_POINTS};
    tac__picture_line(k, "chosen", &look);
    for (size_t i = 0; i < s->n_trials; i++) {
        const sweep_trial *t = &s->trials[i];
        if (tac__sweep_group_of(k->page, t->of) == g &&
            t->lr == s->cases[t->of].lr)
            tac__picture_point(k, t->lr, t->eval_loss, NAN, NAN,
                               "%.40s: %g chosen, loss %.4g",
                               s->cases[t->of].label, t->lr, t->eval_loss);
    }
}

/* From the least loss to where a rate is clearly no good. */
static void loss_span(const sweep_page *p, const sweep_group *g,
                      tac_svg_axis *y)
{
    const sweep *s = p->s;
    double low = INFINITY, high = 0, worst = 0;
    for (size_t i = 0; i < s->n_trials; i++) {
        const sweep_trial *t = &s->trials[i];
        if (!isfinite(t->eval_loss) || tac__sweep_group_of(p, t->of) != g)
            continue;
        low = fmin(low, t->eval_loss);
        high = fmax(high, t->eval_loss);
        if (t->lr == s->cases[t->of].lr) worst = fmax(worst, t->eval_loss);
    }
    if (!(low <= high)) return;
    high = fmin(high, fmax(2 * low, 1.3 * worst));
    const double room = fmax(0.06 * (high - low), 1e-6);
    y->from = low - room;
    y->to = high + room;
}

static tac_status group_panel(sweep_page *p, const sweep_group *g)
{
    picture k = {.page = p};
    char label[200];
    k.panel.title = g->name;
    k.panel.x = (tac_svg_axis){.label = "learning rate", .log = 1};
    k.panel.y = (tac_svg_axis){.label = "validation loss", .tight = 1};
    loss_span(p, g, &k.panel.y);
    for (size_t i = 0; i < g->n; i++) {
        const int64_t every = tac__sweep_interval(&p->s->cases[g->cases[i]]);
        tac_svg_series look = {.colour = g->colour, .marker = g->marker};
        if (g->kind == SWEEP_LOCAL || g->kind == SWEEP_ACCUMULATE)
            tac__sweep_interval_look(p, every, &look);
        add_trials(&k, g->cases[i], &look);
    }
    add_chosen(&k, g);
    snprintf(label, sizeof label,
             "Learning rates tried for %s against validation loss", g->name);
    const tac_status status = tac__picture_draw(&k, label);
    tac__picture_free(&k);
    return status;
}

static int was_searched(const sweep_page *p, const sweep_group *g)
{
    for (size_t i = 0; i < p->s->n_trials; i++)
        if (tac__sweep_group_of(p, p->s->trials[i].of) == g) return 1;
    return 0;
}

/* ---- the table -------------------------------------------------------------
 */

static void number(sweep_page *p, const char *format, double v)
{
    char text[SWEEP_TEXT] = "-";
    if (!isfinite(v)) {
        tac__page_html(p, "<td data-v=\"\">-</td>");
        return;
    }
    snprintf(text, sizeof text, format, v);
    fprintf(p->f, "<td data-v=\"%.17g\">%s</td>", v, text);
}

static void trial_row(sweep_page *p, const sweep_trial *t)
{
    const sweep_case *k = &p->s->cases[t->of];
    char text[SWEEP_TEXT];
    tac__page_html(p, "<tr><td>");
    tac__page_text(p, k->label);
    tac__page_html(p, "</td>");
    number(p, "%g", t->lr);
    number(p, "%.5g", t->eval_loss);
    fprintf(p->f, "<td data-v=\"");
    if (isfinite(t->eval_accuracy)) fprintf(p->f, "%.17g", t->eval_accuracy);
    tac__page_html(p, "\">");
    tac__page_text(p, tac_page_share(t->eval_accuracy, text));
    fprintf(p->f, "</td><td class=\"t\">%s%s</td></tr>\n",
            t->lr == k->lr ? "chosen" : "",
            t->lr != k->lr || !k->lr_at_edge ? ""
            : k->lr_at_edge < 0              ? ", the smallest tried"
                                             : ", the largest tried");
}

static void table(sweep_page *p)
{
    tac__page_html(
        p, "<details><summary>All rates tried</summary>\n"
           "<div class=\"box\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"Learning rates tried\"><table class=\"all\" "
           "id=\"trials\">\n<thead><tr><th>case</th><th>learning rate</th>"
           "<th>validation loss</th><th>validation accuracy</th>"
           "<th class=\"t\"></th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < p->s->n_trials; i++) trial_row(p, &p->s->trials[i]);
    tac__page_html(p, "</tbody></table></div></details>\n");
}

/* ---- both ------------------------------------------------------------------
 */

tac_status tac__page_rates(sweep_page *p)
{
    tac__page_figure(
        p, "rates", "Learning rates tried",
        "Validation loss at the end of each trial, a panel for each method, "
        "colours and markers by H as above; what was chosen is ringed.");
    for (size_t i = 0; i < p->n_groups; i++)
        if (was_searched(p, &p->groups[i]))
            TAC_TRY(group_panel(p, &p->groups[i]));
    if (p->s->n_trials == 0)
        tac__page_html(p, "<p class=\"note\">None was searched.</p>\n");
    tac__page_html(p, "</div>\n");
    if (p->s->n_trials > 0) table(p);
    tac__page_html(p, "</figure>\n");
    return TAC_OK;
}
