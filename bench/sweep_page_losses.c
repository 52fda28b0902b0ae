/* sweep_page_losses.c: validation loss against steps, against bytes, and
 * against modelled time on each network. All panels share the loss axis. */
#include <math.h>
#include <stdlib.h>

#include "sweep_page.h"

/* ---- the loss axis ---------------------------------------------------------
 */

typedef struct span {
    double from, to;
} span;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t all_losses(const sweep_page *p, double *out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->s->n_cases; i++)
        for (size_t k = 0; k < p->curves[i].n; k++) {
            const double v = p->curves[i].loss[k];
            if (out && isfinite(v)) out[n] = v;
            n += isfinite(v) != 0;
        }
    return n;
}

/* A case that drifts away must not press all others together: the axis ends
 * at twice the median, and what is beyond stands at its edge. */
static tac_status loss_span(const sweep_page *p, span *out)
{
    const size_t n = all_losses(p, NULL);
    double *v = calloc(n + 1, sizeof *v);
    *out = (span){0, 0};
    if (!v)
        return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory for %zu losses",
                        n);
    all_losses(p, v);
    qsort(v, n, sizeof *v, by_value);
    if (n > 0) {
        const double high = fmin(v[n - 1], 2 * v[n / 2]);
        const double room = 0.05 * (high - v[0]);
        *out = (span){v[0] - room, high + room};
        if (!(room > 0)) *out = (span){0, 2 * high + 1e-9};
    }
    free(v);
    return TAC_OK;
}

/* ---- lines -----------------------------------------------------------------
 */

typedef enum over { OVER_STEPS, OVER_BYTES, OVER_TIME } over;

static double place(const sweep_curve *c, size_t i, over x, int network)
{
    if (x == OVER_STEPS) return c->steps[i];
    if (x == OVER_BYTES) return c->bytes[i];
    return c->modelled[(size_t)network * c->n + i];
}

static void add_point(picture *k, const sweep_curve *c, size_t i, double x,
                      const char *label)
{
    char bytes[SWEEP_TEXT];
    tac__picture_point(k, x, c->loss[i], NAN, NAN,
                       "%.40s: loss %.4g after %.0f steps, %s a rank", label,
                       c->loss[i], c->steps[i],
                       tac_page_bytes(c->bytes[i], bytes));
}

static void add_case(picture *k, size_t of, over x, int network,
                     const char *name, const tac_svg_series *look)
{
    const sweep_page *p = k->page;
    const sweep_curve *c = &p->curves[of];
    if (c->n == 0 || (x == OVER_BYTES && !(c->bytes[c->n - 1] > 0))) return;
    tac__picture_line(k, name, look);
    for (size_t i = 0; i < c->n; i++)
        add_point(k, c, i, place(c, i, x, network), p->s->cases[of].label);
}

static tac_svg_series group_look(const sweep_group *g)
{
    return (tac_svg_series){
        .colour = g->colour, .dashed = g->dashed, .marker = g->marker};
}

static void add_per_step(picture *k, over x, int network, const char *name)
{
    const sweep_page *p = k->page;
    if (p->per_step == p->s->n_cases) return;
    const tac_svg_series look = group_look(tac__sweep_group_of(p, p->per_step));
    add_case(k, p->per_step, x, network, name, &look);
}

/* ---- a panel for each method -----------------------------------------------
 */

static void set_axes(picture *k, over x, const span *loss)
{
    tac_svg_panel *p = &k->panel;
    p->y = (tac_svg_axis){
        .label = "validation loss", .from = loss->from, .to = loss->to};
    if (x == OVER_STEPS)
        p->x = (tac_svg_axis){.label = "steps (accumulation: micro-steps)"};
    else if (x == OVER_BYTES)
        p->x = (tac_svg_axis){
            .label = "bytes a rank", .log = 1, .unit = TAC_SVG_UNIT_TRAFFIC};
    else
        p->x = (tac_svg_axis){
            .label = "modelled time", .log = 1, .unit = TAC_SVG_UNIT_S};
}

static tac_status group_panel(sweep_page *p, const sweep_group *g, over x,
                              const span *loss)
{
    picture k = {.page = p};
    char name[32], label[200];
    set_axes(&k, x, loss);
    k.panel.title = g->name;
    for (size_t i = 0; i < g->n; i++) {
        const int64_t every = tac__sweep_interval(&p->s->cases[g->cases[i]]);
        tac_svg_series look;
        tac__sweep_interval_look(p, every, &look);
        snprintf(name, sizeof name, "H = %lld", (long long)every);
        add_case(&k, g->cases[i], x, 0, name, &look);
    }
    add_per_step(&k, x, 0, NULL);
    snprintf(label, sizeof label,
             "Validation loss of %s against %s, a line "
             "for each H, and per-step",
             g->name, k.panel.x.label);
    const tac_status status = tac__picture_draw(&k, label);
    tac__picture_free(&k);
    return status;
}

/* Those without an H together. */
static tac_status others_panel(sweep_page *p, over x, const span *loss)
{
    picture k = {.page = p};
    char label[120];
    set_axes(&k, x, loss);
    k.panel.title = "baselines without an H";
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        const tac_svg_series look = group_look(g);
        if (g->kind == SWEEP_LOCAL || g->kind == SWEEP_ACCUMULATE) continue;
        add_case(&k, g->cases[0], x, 0, g->name, &look);
    }
    snprintf(label, sizeof label,
             "Validation loss of baselines without an H against %s",
             k.panel.x.label);
    tac__page_html(p, "<div>");
    const tac_status status = tac__picture_draw(&k, label);
    tac__picture_legend(&k);
    tac__page_html(p, "</div>\n");
    tac__picture_free(&k);
    return status;
}

/* H is what all panels share. */
static void interval_legend(sweep_page *p)
{
    picture k = {.page = p};
    char name[32];
    for (size_t i = 0; i < p->n_intervals; i++) {
        tac_svg_series look;
        tac__sweep_interval_look(p, p->intervals[i], &look);
        snprintf(name, sizeof name, "H = %lld", (long long)p->intervals[i]);
        tac__picture_line(&k, name, &look);
    }
    if (p->per_step < p->s->n_cases) {
        const tac_svg_series look =
            group_look(tac__sweep_group_of(p, p->per_step));
        tac__picture_line(&k, "per-step", &look);
    }
    tac__picture_legend(&k);
    tac__picture_free(&k);
}

static tac_status group_panels(sweep_page *p, over x, const span *loss)
{
    interval_legend(p);
    tac__page_html(p, "<div class=\"panels\">\n");
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        if (g->kind == SWEEP_LOCAL || g->kind == SWEEP_ACCUMULATE)
            TAC_TRY(group_panel(p, g, x, loss));
    }
    TAC_TRY(others_panel(p, x, loss));
    tac__page_html(p, "</div></figure>\n");
    return TAC_OK;
}

/* ---- a panel for each network ----------------------------------------------
 */

static void add_fastest(picture *k, const sweep_group *g, int network)
{
    const sweep_page *p = k->page;
    const size_t of = tac__sweep_fastest(p, g, network);
    const tac_svg_series look = group_look(g);
    if (g->kind == SWEEP_ALONE || of == p->s->n_cases) return;
    add_case(k, of, OVER_TIME, network, p->s->cases[of].label, &look);
}

static tac_status network_panel(sweep_page *p, int network, const span *loss)
{
    picture k = {.page = p};
    char label[160], link[SWEEP_TEXT];
    const tac_sim_network_entry *e = p->s->networks[network];
    set_axes(&k, OVER_TIME, loss);
    k.panel.title = e->name;
    k.panel.subtitle = tac__sweep_link(&e->net, link);
    for (size_t i = 0; i < p->n_groups; i++)
        add_fastest(&k, &p->groups[i], network);
    snprintf(label, sizeof label,
             "Validation loss against modelled time on %s, %s, the fastest "
             "case of each method",
             e->name, link);
    tac__page_html(p, "<div>");
    const tac_status status = tac__picture_draw(&k, label);
    tac__picture_legend(&k);
    tac__page_html(p, "</div>\n");
    tac__picture_free(&k);
    return status;
}

static tac_status networks(sweep_page *p, const span *loss)
{
    tac__page_figure(
        p, "loss-time", "Validation loss against modelled time",
        "On each network, of each method the H that is fastest there with an "
        "accuracy at most half a point below per-step; a method without such "
        "an H is not drawn. Compute as measured here, communication as the "
        "simulator has it: rings, averages after the step, gradients behind "
        "backward. Codecs cost no time in it.");
    for (int k = 0; k < p->s->n_networks; k++)
        TAC_TRY(network_panel(p, k, loss));
    if (p->s->n_networks == 0)
        tac__page_html(p, "<p class=\"note\">No network was named.</p>\n");
    tac__page_figure_end(p);
    return TAC_OK;
}

static void heading(sweep_page *p, const char *id, const char *title,
                    const char *text)
{
    fprintf(p->f, "<figure id=\"%s\"><figcaption><h3>%s</h3><p>%s</p>", id,
            title, text);
    tac__page_html(p, "</figcaption>\n");
}

tac_status tac__page_losses(sweep_page *p)
{
    span loss;
    TAC_TRY(loss_span(p, &loss));
    heading(p, "loss-steps", "Validation loss against steps",
            "Of the averaged model, a panel for each method. Equal steps are "
            "equal samples. Triangles at the upper edge: beyond it.");
    TAC_TRY(group_panels(p, OVER_STEPS, &loss));
    heading(p, "loss-bytes", "Validation loss against bytes",
            "Counted bytes that a rank has sent by then, on a logarithmic "
            "axis; what had sent nothing yet can't be drawn on it.");
    TAC_TRY(group_panels(p, OVER_BYTES, &loss));
    return networks(p, &loss);
}
