/* svg_inline.c: a panel as part of an HTML page: small, so that its letters
 * stay readable on a narrow screen, and in the page's colours. */
#include <errno.h>
#include <string.h>

#include "svg_impl.h"

enum {
    WIDTH = 380,
    HEIGHT = 270,
    LEFT = 66,
    RIGHT = 14,
    TOP = 26,
    SUBTITLE = 14,
    BOTTOM = 40
};

static void text_at(FILE *f, const char *attributes, double x, double y,
                    const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    tac_svg_text(f, text ? text : "");
    fputs("</text>\n", f);
}

static void draw_titles(FILE *f, const tac_svg_panel *p,
                        const tac__svg_plot *plot, int height)
{
    const double middle = plot->top + plot->height / 2.0;
    text_at(f, " class=\"title\"", 6, 15, p->title);
    if (p->subtitle) text_at(f, " class=\"sub\"", 6, 30, p->subtitle);
    text_at(f, " text-anchor=\"middle\"", plot->left + plot->width / 2.0,
            height - 7, p->x.label);
    fprintf(f,
            "<text transform=\"translate(12 %.1f) rotate(-90)\" "
            "text-anchor=\"middle\">",
            middle);
    tac_svg_text(f, p->y.label);
    fputs("</text>\n", f);
}

static void begin(FILE *f, int width, int height, const char *label)
{
    fprintf(f,
            "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 %d %d\" "
            "font-size=\"11.5\" fill=\"var(--tac-ink)\" aria-label=\"",
            width, height);
    tac_svg_text(f, label ? label : "");
    fputs("\">\n", f);
}

int tac_svg_inline(FILE *f, const tac_svg_panel *p, const char *label)
{
    const int width = p->width > 0 ? p->width : WIDTH;
    const int height = p->height > 0 ? p->height : HEIGHT;
    tac__svg_plot plot = {
        .left = LEFT, .top = TOP + (p->subtitle ? SUBTITLE : 0), .page = 1};
    plot.width = width - LEFT - RIGHT;
    plot.height = height - plot.top - BOTTOM;
    tac__svg_scale(p, &plot);
    begin(f, width, height, label);
    draw_titles(f, p, &plot, height);
    tac__svg_ticks(f, &plot);
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "fill=\"none\" stroke=\"var(--tac-grey)\"/>\n",
            plot.left, plot.top, plot.width, plot.height);
    for (size_t i = 0; i < p->n_marks; i++)
        tac__svg_mark(f, &p->marks[i], &plot);
    for (size_t i = 0; i < p->n; i++) tac__svg_series(f, &p->series[i], &plot);
    fputs("</svg>\n", f);
    return ferror(f) ? -1 : 0;
}

int tac_svg_inline_key(FILE *f, const tac_svg_series *s)
{
    fputs("<svg class=\"key\" aria-hidden=\"true\" width=\"34\" height=\"12\" "
          "viewBox=\"0 0 34 12\">",
          f);
    if (s->style == TAC_SVG_LINE)
        tac__svg_key(f, 1, s->colour, s->dashed, 4, 6);
    tac__svg_sample(f, 1, s, 17, 6);
    fputs("</svg>", f);
    return ferror(f) ? -1 : 0;
}
