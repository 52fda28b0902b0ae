/* svg.c: plots as self-contained SVG: panels, series, marks, legends. */
#include "svg_impl.h"

#include <string.h>

enum {
    WIDTH = 760,
    HEIGHT = 460,
    LEFT = 70,
    RIGHT = 190,
    TOP = 54,
    BOTTOM = 56
};

static const char *colour_of(int i)
{
    static const char *const okabe_ito[] = {"#0072b2", "#d55e00", "#009e73",
                                            "#cc79a7", "#e69f00", "#56b4e9",
                                            "#000000"};
    const int n = (int)(sizeof okabe_ito / sizeof *okabe_ito);
    return i < 0 ? "#888888" : okabe_ito[i % n];
}

static const char *dash_of(int dashed)
{
    return dashed ? " stroke-dasharray=\"6 4\"" : "";
}

void tac_svg_text(FILE *f, const char *text)
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

/* ---- series ----------------------------------------------------------------
 */

static void draw_marker(FILE *f, const tac_svg_series *s, double x, double y)
{
    const char *colour = colour_of(s->colour);
    if (s->style == TAC_SVG_AREA)
        fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"26\" height=\"10\" "
                "fill=\"%s\" fill-opacity=\"0.6\"/>\n",
                x - 13, y - 5, colour);
    else if (s->dashed)
        fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" "
                "fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.5\"/>\n",
                x - 3, y - 3, colour);
    else
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x,
                y, colour);
}

static void draw_line(FILE *f, const tac_svg_series *s,
                      const tac__svg_plot *plot)
{
    int down = 0;
    fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s d=\"",
            colour_of(s->colour), dash_of(s->dashed));
    for (size_t i = 0; i < s->n; i++) {
        const int ok = tac__svg_drawable(plot, s->x[i], s->y[i]);
        if (ok)
            fprintf(f, "%c%.1f %.1f ", down ? 'L' : 'M',
                    tac__svg_x(plot, s->x[i]), tac__svg_y(plot, s->y[i]));
        down = ok;
    }
    fputs("\"/>\n", f);
    for (size_t i = 0; i < s->n; i++)
        if (tac__svg_drawable(plot, s->x[i], s->y[i]))
            draw_marker(f, s, tac__svg_x(plot, s->x[i]),
                        tac__svg_y(plot, s->y[i]));
}

static void draw_area(FILE *f, const tac_svg_series *s,
                      const tac__svg_plot *plot)
{
    const char *colour = colour_of(s->colour);
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

static void draw_mark(FILE *f, const tac_svg_mark *m, const tac__svg_plot *plot)
{
    fprintf(f,
            "<path d=\"M%.1f %d V%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n",
            tac__svg_x(plot, m->x), plot->top, plot->top + plot->height,
            colour_of(m->colour), dash_of(m->dashed));
}

/* ---- legend ----------------------------------------------------------------
 */

static void draw_entry(FILE *f, const char *name, double x, double y)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">", x + 33, y + 4);
    tac_svg_text(f, name);
    fputs("</text>\n", f);
}

static void draw_key(FILE *f, int colour, int dashed, double x, double y)
{
    fprintf(f,
            "<path d=\"M%.1f %.1f h26\" stroke=\"%s\" "
            "stroke-width=\"2\"%s/>\n",
            x, y, colour_of(colour), dash_of(dashed));
}

static void draw_legend(FILE *f, const tac_svg_panel *p,
                        const tac__svg_plot *plot)
{
    const double x = plot->left + plot->width + 14;
    double y = TOP + 10;
    for (size_t i = 0; i < p->n; i++) {
        const tac_svg_series *s = &p->series[i];
        if (!s->name) continue;
        if (s->style == TAC_SVG_LINE) draw_key(f, s->colour, s->dashed, x, y);
        draw_marker(f, s, x + 13, y);
        draw_entry(f, s->name, x, y);
        y += 20;
    }
    for (size_t i = 0; i < p->n_marks; i++) {
        const tac_svg_mark *m = &p->marks[i];
        if (!m->name) continue;
        draw_key(f, m->colour, m->dashed, x, y);
        draw_entry(f, m->name, x, y);
        y += 20;
    }
}

/* ---- the figure ------------------------------------------------------------
 */

static int panel_height(const tac_svg_panel *p)
{
    return p->height > 0 ? p->height : HEIGHT;
}

/* Names beside the y axis need room; a letter is about 7 pixels wide. */
static int left_margin(const tac_svg_axis *y)
{
    size_t longest = 0;
    for (size_t i = 0; y->names && i < y->n_names; i++)
        if (strlen(y->names[i]) > longest) longest = strlen(y->names[i]);
    if (longest > 40) longest = 40;
    const int need = 36 + 7 * (int)longest;
    return need > LEFT ? need : LEFT;
}

static void draw_titles(FILE *f, const tac_svg_panel *p,
                        const tac__svg_plot *plot)
{
    fprintf(f, "<text x=\"%d\" y=\"22\" class=\"title\">", plot->left);
    tac_svg_text(f, p->title);
    fprintf(f, "</text>\n<text x=\"%d\" y=\"41\" class=\"sub\">", plot->left);
    tac_svg_text(f, p->subtitle ? p->subtitle : "");
    fprintf(f, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
            plot->left + plot->width / 2, panel_height(p) - 14);
    tac_svg_text(f, p->x.label);
    fprintf(f,
            "</text>\n<text transform=\"translate(16 %d) rotate(-90)\" "
            "text-anchor=\"middle\">",
            plot->top + plot->height / 2);
    tac_svg_text(f, p->y.label);
    fputs("</text>\n", f);
}

static void draw_panel(FILE *f, const tac_svg_panel *p, size_t down)
{
    tac__svg_plot plot = {.left = left_margin(&p->y), .top = TOP};
    plot.width = WIDTH - plot.left - RIGHT;
    plot.height = panel_height(p) - TOP - BOTTOM;
    tac__svg_scale(p, &plot);
    fprintf(f, "<g transform=\"translate(0 %zu)\">\n", down);
    draw_titles(f, p, &plot);
    tac__svg_ticks(f, &plot);
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "fill=\"none\" stroke=\"#333\"/>\n",
            plot.left, plot.top, plot.width, plot.height);
    for (size_t i = 0; i < p->n; i++)
        (p->series[i].style == TAC_SVG_AREA ? draw_area : draw_line)(
            f, &p->series[i], &plot);
    for (size_t i = 0; i < p->n_marks; i++) draw_mark(f, &p->marks[i], &plot);
    draw_legend(f, p, &plot);
    fputs("</g>\n", f);
}

int tac_svg_write(FILE *f, const tac_svg_panel *panels, size_t n)
{
    size_t height = n ? 0 : HEIGHT, down = 0;
    for (size_t i = 0; i < n; i++) height += (size_t)panel_height(&panels[i]);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%zu\" viewBox=\"0 0 %d %zu\" font-family=\"sans-serif\" "
            "font-size=\"12\" fill=\"#222\">\n"
            "<style>.grid{stroke:#ddd;fill:none}.title{font-size:15px;"
            "font-weight:bold}.sub{fill:#555}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    for (size_t i = 0; i < n; i++) {
        draw_panel(f, &panels[i], down);
        down += (size_t)panel_height(&panels[i]);
    }
    fputs("</svg>\n", f);
    return fflush(f) != 0 || ferror(f) ? -1 : 0;
}
