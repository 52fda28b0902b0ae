/* sweep_page_checks.c: predicted against measured: wall time, and bytes. */
#include <math.h>

#include "sweep_page.h"

typedef struct check {
    const char *title, *x_label, *y_label;
    tac_svg_unit unit;
    size_t x, y; /* offsets in sweep_row */
    const char *(*text)(double v, char buf[SWEEP_TEXT]);
} check;

static int counts(const check *c, const sweep_row *row)
{
    if (c->y == offsetof(sweep_row, bytes_predicted) && !row->predictable)
        return 0;
    return tac__sweep_field(row, c->x) > 0 && tac__sweep_field(row, c->y) > 0;
}

/* The smallest and the largest of both axes; 0: no point. */
static int ends(const sweep *s, const check *c, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (!counts(c, &s->rows[i])) continue;
        const double x = tac__sweep_field(&s->rows[i], c->x),
                     y = tac__sweep_field(&s->rows[i], c->y);
        *low = fmin(*low, fmin(x, y));
        *high = fmax(*high, fmax(x, y));
    }
    return *high > 0;
}

static void diagonal(picture *k, const char *name, double low, double high,
                     double factor, int dashed)
{
    const tac_svg_series look = {
        .colour = -1, .dashed = dashed, .marker = TAC_SVG_NO_MARKER};
    tac__picture_line(k, name, &look);
    tac__picture_point(k, low, low * factor, NAN, NAN, "%s", "");
    tac__picture_point(k, high, high * factor, NAN, NAN, "%s", "");
}

static void add_group(picture *k, const check *c, const sweep_group *g)
{
    const sweep *s = k->page->s;
    const tac_svg_series look = {
        .colour = g->colour, .marker = g->marker, .style = TAC_SVG_POINTS};
    char x[SWEEP_TEXT], y[SWEEP_TEXT];
    int begun = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const sweep_row *row = &s->rows[i];
        if (!counts(c, row) || tac__sweep_group_of(k->page, row->of) != g)
            continue;
        if (!begun++) tac__picture_line(k, g->name, &look);
        tac__picture_point(
            k, tac__sweep_field(row, c->x), tac__sweep_field(row, c->y), NAN,
            NAN, "%.40s, seed %lld: predicted %s, %s", s->cases[row->of].label,
            (long long)row->seed, c->text(tac__sweep_field(row, c->y), y),
            c->text(tac__sweep_field(row, c->x), x));
    }
}

static tac_status draw(sweep_page *p, const check *c, int band)
{
    picture k = {.page = p};
    double low, high;
    if (!ends(p->s, c, &low, &high)) {
        fprintf(p->f, "<p class=\"note\">%s: nothing to compare.</p>\n",
                c->title);
        return TAC_OK;
    }
    k.panel.title = c->title;
    k.panel.height = 320;
    k.panel.x = (tac_svg_axis){.label = c->x_label, .log = 1, .unit = c->unit};
    k.panel.y = (tac_svg_axis){.label = c->y_label, .log = 1, .unit = c->unit};
    diagonal(&k, "equal", low / 1.1, high * 1.1, 1, 0);
    if (band) {
        diagonal(&k, "15 % more or less", low / 1.1, high * 1.1, 1.15, 2);
        diagonal(&k, NULL, low / 1.1, high * 1.1, 1 / 1.15, 2);
    }
    for (size_t i = 0; i < p->n_groups; i++) add_group(&k, c, &p->groups[i]);
    tac__page_html(p, "<div>");
    const tac_status status = tac__picture_draw(&k, c->title);
    tac__picture_legend(&k);
    tac__page_html(p, "</div>\n");
    tac__picture_free(&k);
    return status;
}

tac_status tac__page_checks(sweep_page *p)
{
    static const check wall = {"predicted against measured wall time",
                               "measured wall time of training",
                               "predicted",
                               TAC_SVG_UNIT_S,
                               offsetof(sweep_row, wall_s),
                               offsetof(sweep_row, wall_predicted_s),
                               tac_page_seconds};
    static const check bytes = {"predicted against counted bytes",
                                "bytes counted, a rank",
                                "predicted",
                                TAC_SVG_UNIT_TRAFFIC,
                                offsetof(sweep_row, bytes_counted),
                                offsetof(sweep_row, bytes_predicted),
                                tac_page_bytes};
    tac__page_figure(
        p, "predicted", "Predicted against measured",
        "Wall time: compute, measured without exchange, plus as many exchanges "
        "as the run has, measured without compute. Bytes: from the "
        "configuration, before training. A point for each run.");
    TAC_TRY(draw(p, &wall, 1));
    TAC_TRY(draw(p, &bytes, 0));
    tac__page_figure_end(p);
    return TAC_OK;
}
