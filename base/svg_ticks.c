/* svg_ticks.c: grid lines and their numbers or names. */
#include "svg_impl.h"

#include <math.h>
#include <string.h>

enum { MOST = 32 };

/* ---- numbers ---------------------------------------------------------------
 */

static void scaled(double v, double thousand, const char *const *units,
                   char text[32])
{
    int u = 0;
    for (; v >= thousand && u < 4; u++) v /= thousand;
    snprintf(text, 32, "%.4g%s", v, units[u]);
}

static void us_label(double v, char text[32])
{
    if (v >= 1e6)
        snprintf(text, 32, "%.6g s", v * 1e-6);
    else if (v >= 1e3)
        snprintf(text, 32, "%.4g ms", v * 1e-3);
    else
        snprintf(text, 32, "%.4g us", v);
}

static void label(const tac_svg_axis *a, double v, char text[32])
{
    static const char *const binary[] = {"", "K", "M", "G", "T"};
    static const char *const traffic[] = {" B", " kB", " MB", " GB", " TB"};
    switch (a->unit) {
    case TAC_SVG_UNIT_BYTES: scaled(v, 1024, binary, text); break;
    case TAC_SVG_UNIT_TRAFFIC: scaled(v, 1000, traffic, text); break;
    case TAC_SVG_UNIT_US: us_label(v, text); break;
    case TAC_SVG_UNIT_S: us_label(v * 1e6, text); break;
    case TAC_SVG_UNIT_PERCENT: snprintf(text, 32, "%.4g %%", 100 * v); break;
    default: snprintf(text, 32, "%.6g", v);
    }
}

/* ---- where -----------------------------------------------------------------
 */

typedef struct ticks {
    double low, high; /* in logarithms where `log` */
    int log, n;
    double at[MOST];
} ticks;

static void add(ticks *t, double v)
{
    const double where = t->log ? log10(v) : v;
    const double slack = (t->high - t->low) * 1e-9;
    if (t->n < MOST && where >= t->low - slack && where <= t->high + slack)
        t->at[t->n++] = v;
}

/* Steps of 1, 2 or 5 times a power of ten, at most `most` or so. */
static void even(ticks *t, double low, double high, int most)
{
    const double raw = (high - low) / most;
    if (!(raw > 0)) return;
    const double unit = pow(10, floor(log10(raw)));
    const double step = unit * (raw / unit > 5 ? 10 : raw / unit > 2 ? 5 : 2);
    for (double k = ceil(low / step - 1e-9);
         k * step <= high * (1 + 1e-12) || k * step <= high; k++) {
        if (t->n == MOST) return;
        add(t, k == 0 ? 0 : k * step);
    }
}

static void powers(ticks *t, double base, int most)
{
    double factor = base;
    while ((t->high - t->low) / log10(factor) > most) factor *= base;
    const double step = log10(factor);
    for (double k = ceil(t->low / step - 1e-9);
         k * step <= t->high + 1e-9 && t->n < MOST; k++)
        add(t, pow(factor, k));
}

/* 1, 2, 5, 10, 20, ... */
static void thirds(ticks *t)
{
    for (double k = floor(t->low); k <= t->high; k++) {
        add(t, pow(10, k));
        add(t, 2 * pow(10, k));
        add(t, 5 * pow(10, k));
    }
}

static void logarithmic(ticks *t, tac_svg_unit unit, int most)
{
    if (unit == TAC_SVG_UNIT_BYTES || unit == TAC_SVG_UNIT_POWER2) {
        powers(t, unit == TAC_SVG_UNIT_BYTES ? 4 : 2, most);
        return;
    }
    powers(t, 10, most);
    if (t->n > 2) return;
    t->n = 0; /* too few decades: finer */
    thirds(t);
    if (t->n > 2) return;
    t->n = 0;
    even(t, pow(10, t->low), pow(10, t->high), most);
}

static void find(ticks *t, const tac_svg_axis *a, double low, double high,
                 int most)
{
    *t = (ticks){.low = low, .high = high, .log = a->log};
    if (a->log)
        logarithmic(t, a->unit, most);
    else
        even(t, low, high, most > 6 ? 6 : most);
}

/* ---- drawing ---------------------------------------------------------------
 */

/* The middle of a label of 7 pixels a letter, moved so far that a page does not
 * cut it off. */
static double label_place(const tac__svg_plot *plot, double x, const char *text)
{
    const double half = 3.5 * (double)strlen(text);
    const double edge = plot->left + plot->width + 14;
    return plot->page && x + half > edge ? edge - half : x;
}

static void x_ticks(FILE *f, const tac__svg_plot *plot)
{
    const int bottom = plot->top + plot->height;
    char text[32];
    ticks t;
    find(&t, plot->x, plot->x_low, plot->x_high, plot->width / 50);
    for (int i = 0; i < t.n; i++) {
        const double x = tac__svg_x(plot, t.at[i]);
        label(plot->x, t.at[i], text);
        const double at = label_place(plot, x, text);
        fprintf(f,
                "<path d=\"M%.1f %d V%d\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, plot->top, bottom, at, bottom + (plot->page ? 15 : 18),
                text);
    }
}

static void y_ticks(FILE *f, const tac__svg_plot *plot)
{
    char text[32];
    ticks t;
    find(&t, plot->y, plot->y_low, plot->y_high, plot->height / 30);
    for (int i = 0; i < t.n; i++) {
        const double y = tac__svg_y(plot, t.at[i]);
        label(plot->y, t.at[i], text);
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
