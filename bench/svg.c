/* svg.c: plots of lines as self-contained SVG. */
#include "svg.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 760,
    HEIGHT = 460,
    LEFT = 70,
    RIGHT = 190,
    TOP = 54,
    BOTTOM = 56
};
enum { PLOT_W = WIDTH - LEFT - RIGHT, PLOT_H = HEIGHT - TOP - BOTTOM };

/* Where values come to lie: [low, high] of the axis, in logarithms if it is
 * logarithmic. */
typedef struct scale {
    const tac__axis *axis;
    double low, high;
} scale;

static const char *colour_of(int i)
{
    static const char *const okabe_ito[] = {"#0072b2", "#d55e00", "#009e73",
                                            "#cc79a7", "#e69f00", "#56b4e9",
                                            "#000000"};
    const int n = (int)(sizeof okabe_ito / sizeof *okabe_ito);
    return i < 0 ? "#888888" : okabe_ito[i % n];
}

void tac__svg_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        default:
            if ((unsigned char)*text >= 0x20) fputc(*text, f);
        }
    }
}

/* ---- scales ----------------------------------------------------------------
 */

static int drawable(const tac__axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static double along(const tac__axis *a, double v)
{
    return a->log ? log10(v) : v;
}

static void include(scale *s, double v)
{
    if (!drawable(s->axis, v)) return;
    v = along(s->axis, v);
    if (!(s->low <= v)) s->low = v;
    if (!(s->high >= v)) s->high = v;
}

/* Room at the ends; linear axes begin at 0. */
static void widen(scale *s)
{
    if (!isfinite(s->low) || !isfinite(s->high)) s->low = s->high = 0;
    if (!s->axis->log && s->low > 0) s->low = 0;
    double room = (s->high - s->low) * 0.04;
    if (room <= 0) room = s->axis->log ? 0.5 : 1;
    if (s->axis->log) s->low -= room;
    s->high += room;
}

static double share(const scale *s, double v)
{
    return (along(s->axis, v) - s->low) / (s->high - s->low);
}

static double x_at(const scale *s, double v)
{
    return LEFT + share(s, v) * PLOT_W;
}

static double y_at(const scale *s, double v)
{
    return TOP + (1 - share(s, v)) * PLOT_H;
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

static void label(const tac__axis *a, double v, char text[32])
{
    if (a->unit == TAC__UNIT_BYTES)
        bytes_label(v, text);
    else if (a->unit == TAC__UNIT_US)
        us_label(v, text);
    else
        snprintf(text, 32, "%.4g", v);
}

/* From one tick to the next: a factor on a logarithmic axis, else a step; at
 * most nine or so. */
static double tick_step(const scale *s)
{
    if (s->axis->log) {
        const double base = s->axis->unit == TAC__UNIT_BYTES ? 4 : 10;
        double factor = base;
        while ((s->high - s->low) / log10(factor) > 10) factor *= base;
        return factor;
    }
    const double raw = (s->high - s->low) / 6,
                 unit = pow(10, floor(log10(raw)));
    return unit * (raw / unit > 5 ? 10 : raw / unit > 2 ? 5 : 2);
}

static double first_tick(const scale *s, double step)
{
    if (!s->axis->log) return ceil(s->low / step) * step;
    return pow(step, ceil(s->low / log10(step) - 1e-9));
}

static int inside(const scale *s, double v)
{
    return along(s->axis, v) <= s->high + 1e-9;
}

static double next_tick(const scale *s, double v, double step)
{
    return s->axis->log ? v * step : v + step;
}

static void draw_x_ticks(FILE *f, const scale *s)
{
    const double step = tick_step(s);
    char text[32];
    for (double v = first_tick(s, step); inside(s, v);
         v = next_tick(s, v, step)) {
        const double x = x_at(s, v);
        label(s->axis, v, text);
        fprintf(f,
                "<path d=\"M%.1f %d V%d\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, TOP, TOP + PLOT_H, x, TOP + PLOT_H + 18, text);
    }
}

static void draw_y_ticks(FILE *f, const scale *s)
{
    const double step = tick_step(s);
    char text[32];
    for (double v = first_tick(s, step); inside(s, v);
         v = next_tick(s, v, step)) {
        const double y = y_at(s, v);
        label(s->axis, v, text);
        fprintf(f,
                "<path d=\"M%d %.1f H%d\" class=\"grid\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, y, LEFT + PLOT_W, LEFT - 7, y + 4, text);
    }
}

/* ---- lines -----------------------------------------------------------------
 */

static void draw_marker(FILE *f, const tac__series *s, double x, double y)
{
    const char *colour = colour_of(s->colour);
    if (s->dashed)
        fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" "
                "fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.5\"/>\n",
                x - 3, y - 3, colour);
    else
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x,
                y, colour);
}

static void draw_path(FILE *f, const tac__series *s, const scale *xs,
                      const scale *ys)
{
    int down = 0;
    fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s d=\"",
            colour_of(s->colour), s->dashed ? " stroke-dasharray=\"6 4\"" : "");
    for (size_t i = 0; i < s->n; i++) {
        const int ok =
            drawable(xs->axis, s->x[i]) && drawable(ys->axis, s->y[i]);
        if (ok)
            fprintf(f, "%c%.1f %.1f ", down ? 'L' : 'M', x_at(xs, s->x[i]),
                    y_at(ys, s->y[i]));
        down = ok;
    }
    fputs("\"/>\n", f);
}

static void draw_series(FILE *f, const tac__series *s, const scale *xs,
                        const scale *ys)
{
    draw_path(f, s, xs, ys);
    for (size_t i = 0; i < s->n; i++)
        if (drawable(xs->axis, s->x[i]) && drawable(ys->axis, s->y[i]))
            draw_marker(f, s, x_at(xs, s->x[i]), y_at(ys, s->y[i]));
}

static void draw_legend(FILE *f, const tac__panel *p)
{
    const double x = LEFT + PLOT_W + 14;
    for (size_t i = 0; i < p->n; i++) {
        const tac__series *s = &p->series[i];
        const double y = TOP + 10 + 20.0 * (double)i;
        fprintf(f,
                "<path d=\"M%.1f %.1f h26\" stroke=\"%s\" "
                "stroke-width=\"2\"%s/>\n",
                x, y, colour_of(s->colour),
                s->dashed ? " stroke-dasharray=\"6 4\"" : "");
        draw_marker(f, s, x + 13, y);
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">", x + 33, y + 4);
        tac__svg_text(f, s->name);
        fputs("</text>\n", f);
    }
}

/* ---- the figure ------------------------------------------------------------
 */

static void draw_titles(FILE *f, const tac__panel *p)
{
    fprintf(f, "<text x=\"%d\" y=\"22\" class=\"title\">", LEFT);
    tac__svg_text(f, p->title);
    fprintf(f, "</text>\n<text x=\"%d\" y=\"41\" class=\"sub\">", LEFT);
    tac__svg_text(f, p->subtitle ? p->subtitle : "");
    fprintf(f, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
            LEFT + PLOT_W / 2, HEIGHT - 14);
    tac__svg_text(f, p->x.label);
    fprintf(f,
            "</text>\n<text transform=\"translate(16 %d) rotate(-90)\" "
            "text-anchor=\"middle\">",
            TOP + PLOT_H / 2);
    tac__svg_text(f, p->y.label);
    fputs("</text>\n", f);
}

static void draw_panel(FILE *f, const tac__panel *p, size_t at)
{
    scale xs = {&p->x, NAN, NAN}, ys = {&p->y, NAN, NAN};
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->series[i].n; k++)
            if (drawable(&p->x, p->series[i].x[k]) &&
                drawable(&p->y, p->series[i].y[k])) {
                include(&xs, p->series[i].x[k]);
                include(&ys, p->series[i].y[k]);
            }
    widen(&xs);
    widen(&ys);
    fprintf(f, "<g transform=\"translate(0 %zu)\">\n", at * HEIGHT);
    draw_titles(f, p);
    draw_x_ticks(f, &xs);
    draw_y_ticks(f, &ys);
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "fill=\"none\" stroke=\"#333\"/>\n",
            LEFT, TOP, PLOT_W, PLOT_H);
    for (size_t i = 0; i < p->n; i++) draw_series(f, &p->series[i], &xs, &ys);
    draw_legend(f, p);
    fputs("</g>\n", f);
}

int tac__svg_write(FILE *f, const tac__panel *panels, size_t n)
{
    const size_t height = (n ? n : 1) * HEIGHT;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%zu\" viewBox=\"0 0 %d %zu\" font-family=\"sans-serif\" "
            "font-size=\"12\" fill=\"#222\">\n"
            "<style>.grid{stroke:#ddd;fill:none}.title{font-size:15px;"
            "font-weight:bold}.sub{fill:#555}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    for (size_t i = 0; i < n; i++) draw_panel(f, &panels[i], i);
    fputs("</svg>\n", f);
    return fflush(f) != 0 || ferror(f) ? -1 : 0;
}
