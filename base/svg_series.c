/* svg_series.c: data in a panel: lines, areas, points with error bars, and
 * marks over the whole of it. */
#include <math.h>

#include "svg_impl.h"

/* ---- points ----------------------------------------------------------------
 */

static void draw_bar(FILE *f, const tac_svg_series *s, size_t i,
                     const tac__svg_plot *plot)
{
    char buf[24];
    if (!s->low || !s->high || !(s->low[i] < s->high[i])) return;
    if (!tac__svg_drawable(plot, s->x[i], s->low[i])) return;
    const double x = tac__svg_x(plot, s->x[i]);
    fprintf(f,
            "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6\" "
            "stroke=\"%s\" fill=\"none\"/>\n",
            x, tac__svg_y(plot, s->low[i]), tac__svg_y(plot, s->high[i]), x - 3,
            tac__svg_y(plot, s->low[i]), x - 3, tac__svg_y(plot, s->high[i]),
            tac__svg_colour(plot->page, s->colour, buf));
}

static tac_svg_marker marker_at(const tac_svg_series *s, size_t i,
                                const tac__svg_plot *plot)
{
    const int beyond = tac__svg_beyond(plot->y, s->y[i]);
    if (beyond < 0) return TAC_SVG_DOWN;
    return beyond > 0 ? TAC_SVG_UP : tac__svg_marker_of(s);
}

/* Room around a small marker that the pointer finds, too. */
static void draw_target(FILE *f, double x, double y)
{
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"7\" fill-opacity=\"0\"/>\n",
            x, y);
}

static void draw_point(FILE *f, const tac_svg_series *s, size_t i,
                       const tac__svg_plot *plot)
{
    const double x = tac__svg_x(plot, s->x[i]), y = tac__svg_y(plot, s->y[i]);
    const char *note = s->notes ? s->notes[i] : NULL;
    if (note) {
        fputs("<g><title>", f);
        tac_svg_text(f, note);
        fputs("</title>", f);
    }
    draw_bar(f, s, i, plot);
    tac__svg_marker(f, plot->page, s->colour, marker_at(s, i, plot), x, y);
    if (note) {
        draw_target(f, x, y);
        fputs("</g>\n", f);
    }
}

static void draw_points(FILE *f, const tac_svg_series *s,
                        const tac__svg_plot *plot)
{
    for (size_t i = 0; i < s->n; i++)
        if (tac__svg_drawable(plot, s->x[i], s->y[i]))
            draw_point(f, s, i, plot);
}

/* ---- lines and areas -------------------------------------------------------
 */

static void draw_line(FILE *f, const tac_svg_series *s,
                      const tac__svg_plot *plot)
{
    char buf[24];
    int down = 0;
    fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s d=\"",
            tac__svg_colour(plot->page, s->colour, buf),
            plot->page ? "1.6" : "2", tac__svg_dash(s->dashed));
    for (size_t i = 0; i < s->n; i++) {
        const int ok = tac__svg_drawable(plot, s->x[i], s->y[i]);
        if (ok)
            fprintf(f, "%c%.1f %.1f ", down ? 'L' : 'M',
                    tac__svg_x(plot, s->x[i]), tac__svg_y(plot, s->y[i]));
        down = ok;
    }
    fputs("\"/>\n", f);
    draw_points(f, s, plot);
}

static void draw_area(FILE *f, const tac_svg_series *s,
                      const tac__svg_plot *plot)
{
    char buf[24];
    const char *colour = tac__svg_colour(plot->page, s->colour, buf);
    const double base = tac__svg_y(plot, s->base);
    fprintf(f,
            "<path fill=\"%s\" fill-opacity=\"0.6\" stroke=\"%s\" "
            "stroke-width=\"0.7\" d=\"",
            colour, colour);
    for (size_t i = 0; i < s->n; i++) {
        const double next = i + 1 < s->n ? s->x[i + 1] : tac__svg_area_end(s);
        if (!tac__svg_drawable(plot, s->x[i], s->y[i]) || s->y[i] == s->base)
            continue;
        fprintf(f, "M%.1f %.1f V%.1f H%.1f V%.1f Z ", tac__svg_x(plot, s->x[i]),
                base, tac__svg_y(plot, s->y[i]), tac__svg_x(plot, next), base);
    }
    fputs("\"/>\n", f);
}

void tac__svg_series(FILE *f, const tac_svg_series *s,
                     const tac__svg_plot *plot)
{
    switch (s->style) {
    case TAC_SVG_AREA: draw_area(f, s, plot); break;
    case TAC_SVG_POINTS: draw_points(f, s, plot); break;
    default: draw_line(f, s, plot);
    }
}

/* ---- marks -----------------------------------------------------------------
 */

static void draw_band(FILE *f, const tac_svg_mark *m, const tac__svg_plot *plot)
{
    char buf[24];
    if (!(m->low < m->high)) return;
    const double top = tac__svg_y(plot, m->high),
                 bottom = tac__svg_y(plot, m->low);
    fprintf(f,
            "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
            "fill=\"%s\" fill-opacity=\"0.15\"/>\n",
            plot->left, top, plot->width, bottom - top,
            tac__svg_colour(plot->page, m->colour, buf));
}

static void draw_across(FILE *f, const tac_svg_mark *m,
                        const tac__svg_plot *plot)
{
    char buf[24];
    draw_band(f, m, plot);
    if (!isfinite(m->y) || tac__svg_beyond(plot->y, m->y)) return;
    fprintf(
        f, "<path d=\"M%d %.1f H%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n",
        plot->left, tac__svg_y(plot, m->y), plot->left + plot->width,
        tac__svg_colour(plot->page, m->colour, buf), tac__svg_dash(m->dashed));
}

void tac__svg_mark(FILE *f, const tac_svg_mark *m, const tac__svg_plot *plot)
{
    char buf[24];
    if (m->across) {
        draw_across(f, m, plot);
        return;
    }
    fprintf(
        f, "<path d=\"M%.1f %d V%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n",
        tac__svg_x(plot, m->x), plot->top, plot->top + plot->height,
        tac__svg_colour(plot->page, m->colour, buf), tac__svg_dash(m->dashed));
}

/* ---- of a legend -----------------------------------------------------------
 */

void tac__svg_sample(FILE *f, int page, const tac_svg_series *s, double x,
                     double y)
{
    char buf[24];
    if (s->style == TAC_SVG_AREA)
        fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"26\" height=\"10\" "
                "fill=\"%s\" fill-opacity=\"0.6\"/>\n",
                x - 13, y - 5, tac__svg_colour(page, s->colour, buf));
    else
        tac__svg_marker(f, page, s->colour, tac__svg_marker_of(s), x, y);
}

void tac__svg_key(FILE *f, int page, int colour, int dashed, double x, double y)
{
    char buf[24];
    fprintf(f,
            "<path d=\"M%.1f %.1f h26\" stroke=\"%s\" "
            "stroke-width=\"2\"%s/>\n",
            x, y, tac__svg_colour(page, colour, buf), tac__svg_dash(dashed));
}
