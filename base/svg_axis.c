/* svg_axis.c: from values to pixels, and the ticks that tell so. */
#include "svg_impl.h"

#include <math.h>

/* One axis while its range is looked for. */
typedef struct range {
    const tac_svg_axis *axis;
    double low, high;
} range;

static int drawable(const tac_svg_axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static double along(const tac_svg_axis *a, double v)
{
    return a->log ? log10(v) : v;
}

static void include(range *r, double v)
{
    if (!drawable(r->axis, v)) return;
    v = along(r->axis, v);
    if (!(r->low <= v)) r->low = v;
    if (!(r->high >= v)) r->high = v;
}

double tac__svg_area_end(const tac_svg_series *s)
{
    if (s->n < 2) return s->n ? s->x[0] + 1 : 0;
    return 2 * s->x[s->n - 1] - s->x[s->n - 2];
}

static void include_series(range *x, range *y, const tac_svg_series *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (drawable(x->axis, s->x[i]) && drawable(y->axis, s->y[i])) {
            include(x, s->x[i]);
            include(y, s->y[i]);
        }
    if (s->style == TAC_SVG_AREA && s->n) {
        include(x, tac__svg_area_end(s));
        include(y, s->base);
    }
}

/* Room at the ends; linear axes begin at 0, those of names have their own. */
static void widen(range *r)
{
    if (!isfinite(r->low) || !isfinite(r->high)) r->low = r->high = 0;
    if (r->axis->names) {
        r->low = 0;
        r->high = r->axis->n_names ? (double)r->axis->n_names : 1;
        return;
    }
    if (!r->axis->log && r->low > 0) r->low = 0;
    double room = (r->high - r->low) * 0.04;
    if (room <= 0) room = r->axis->log ? 0.5 : 1;
    if (r->axis->log) r->low -= room;
    r->high += room;
}

void tac__svg_scale(const tac_svg_panel *p, tac__svg_plot *plot)
{
    range x = {&p->x, NAN, NAN}, y = {&p->y, NAN, NAN};
    for (size_t i = 0; i < p->n; i++) include_series(&x, &y, &p->series[i]);
    for (size_t i = 0; i < p->n_marks; i++) include(&x, p->marks[i].x);
    widen(&x);
    widen(&y);
    plot->x = &p->x;
    plot->y = &p->y;
    plot->x_low = x.low;
    plot->x_high = x.high;
    plot->y_low = y.low;
    plot->y_high = y.high;
}

int tac__svg_drawable(const tac__svg_plot *plot, double x, double y)
{
    return drawable(plot->x, x) && drawable(plot->y, y);
}

double tac__svg_x(const tac__svg_plot *plot, double x)
{
    const double share =
        (along(plot->x, x) - plot->x_low) / (plot->x_high - plot->x_low);
    return plot->left + share * plot->width;
}

double tac__svg_y(const tac__svg_plot *plot, double y)
{
    const double share =
        (along(plot->y, y) - plot->y_low) / (plot->y_high - plot->y_low);
    return plot->top + (1 - share) * plot->height;
}

/* ---- ticks -----------------------------------------------------------------
 */

static void bytes_label(double v, char text[32])
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    int u = 0;
    for (; v >= 1024 && u < 4; u++) v /= 1024;
    snprintf(text, 32, "%.4g%s", v, units[u]);
}

static void us_label(double v, char text[32])
{
    if (v >= 1e6)
        snprintf(text, 32, "%.4g s", v * 1e-6);
    else if (v >= 1e3)
        snprintf(text, 32, "%.4g ms", v * 1e-3);
    else
        snprintf(text, 32, "%.4g us", v);
}

static void label(const tac_svg_axis *a, double v, char text[32])
{
    if (a->unit == TAC_SVG_UNIT_BYTES)
        bytes_label(v, text);
    else if (a->unit == TAC_SVG_UNIT_US)
        us_label(v, text);
    else
        snprintf(text, 32, "%.4g", v);
}

/* From one tick to the next: a factor on a logarithmic axis, else a step; at
 * most nine or so. */
static double tick_step(const range *r)
{
    if (r->axis->log) {
        const double base = r->axis->unit == TAC_SVG_UNIT_BYTES ? 4 : 10;
        double factor = base;
        while ((r->high - r->low) / log10(factor) > 10) factor *= base;
        return factor;
    }
    const double raw = (r->high - r->low) / 6,
                 unit = pow(10, floor(log10(raw)));
    return unit * (raw / unit > 5 ? 10 : raw / unit > 2 ? 5 : 2);
}

static double first_tick(const range *r, double step)
{
    if (!r->axis->log) return ceil(r->low / step) * step;
    return pow(step, ceil(r->low / log10(step) - 1e-9));
}

static int inside(const range *r, double v)
{
    return along(r->axis, v) <= r->high + 1e-9;
}

static double next_tick(const range *r, double v, double step)
{
    return r->axis->log ? v * step : v + step;
}

static void x_ticks(FILE *f, const tac__svg_plot *plot)
{
    const range r = {plot->x, plot->x_low, plot->x_high};
    const double step = tick_step(&r);
    const int bottom = plot->top + plot->height;
    char text[32];
    for (double v = first_tick(&r, step); inside(&r, v);
         v = next_tick(&r, v, step)) {
        const double x = tac__svg_x(plot, v);
        label(plot->x, v, text);
        fprintf(f,
                "<path d=\"M%.1f %d V%d\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, plot->top, bottom, x, bottom + 18, text);
    }
}

static void y_ticks(FILE *f, const tac__svg_plot *plot)
{
    const range r = {plot->y, plot->y_low, plot->y_high};
    const double step = tick_step(&r);
    char text[32];
    for (double v = first_tick(&r, step); inside(&r, v);
         v = next_tick(&r, v, step)) {
        const double y = tac__svg_y(plot, v);
        label(plot->y, v, text);
        fprintf(f,
                "<path d=\"M%d %.1f H%d\" class=\"grid\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                plot->left, y, plot->left + plot->width, plot->left - 7, y + 4,
                text);
    }
}

static void y_names(FILE *f, const tac__svg_plot *plot)
{
    for (size_t i = 0; i < plot->y->n_names; i++) {
        fprintf(f,
                "<path d=\"M%d %.1f H%d\" class=\"grid\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                plot->left, tac__svg_y(plot, (double)i),
                plot->left + plot->width, plot->left - 7,
                tac__svg_y(plot, (double)i + 0.5) + 4);
        tac_svg_text(f, plot->y->names[i]);
        fputs("</text>\n", f);
    }
}

void tac__svg_ticks(FILE *f, const tac__svg_plot *plot)
{
    x_ticks(f, plot);
    if (plot->y->names)
        y_names(f, plot);
    else
        y_ticks(f, plot);
}
