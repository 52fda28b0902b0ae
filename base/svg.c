/* svg.c: plots as files of their own: figures, panels, legends. */
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

/* ---- legend ----------------------------------------------------------------
 */

static void draw_entry(FILE *f, const char *name, double x, double y)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">", x + 33, y + 4);
    tac_svg_text(f, name);
    fputs("</text>\n", f);
}

static void draw_legend(FILE *f, const tac_svg_panel *p,
                        const tac__svg_plot *plot)
{
    const double x = plot->left + plot->width + 14;
    double y = TOP + 10;
    for (size_t i = 0; i < p->n; i++) {
        const tac_svg_series *s = &p->series[i];
        if (!s->name) continue;
        if (s->style == TAC_SVG_LINE)
            tac__svg_key(f, 0, s->colour, s->dashed, x, y);
        tac__svg_sample(f, 0, s, x + 13, y);
        draw_entry(f, s->name, x, y);
        y += 20;
    }
    for (size_t i = 0; i < p->n_marks; i++) {
        const tac_svg_mark *m = &p->marks[i];
        if (!m->name) continue;
        tac__svg_key(f, 0, m->colour, m->dashed, x, y);
        draw_entry(f, m->name, x, y);
        y += 20;
    }
}

/* ---- the figure ------------------------------------------------------------
 */

static int panel_width(const tac_svg_panel *p)
{
    return p->width > 0 ? p->width : WIDTH;
}

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
    plot.width = panel_width(p) - plot.left - RIGHT;
    plot.height = panel_height(p) - TOP - BOTTOM;
    tac__svg_scale(p, &plot);
    fprintf(f, "<g transform=\"translate(0 %zu)\">\n", down);
    draw_titles(f, p, &plot);
    tac__svg_ticks(f, &plot);
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "fill=\"none\" stroke=\"#333\"/>\n",
            plot.left, plot.top, plot.width, plot.height);
    for (size_t i = 0; i < p->n; i++) tac__svg_series(f, &p->series[i], &plot);
    for (size_t i = 0; i < p->n_marks; i++)
        tac__svg_mark(f, &p->marks[i], &plot);
    draw_legend(f, p, &plot);
    fputs("</g>\n", f);
}

int tac_svg_write(FILE *f, const tac_svg_panel *panels, size_t n)
{
    size_t height = n ? 0 : HEIGHT, down = 0;
    int width = n ? 0 : WIDTH;
    for (size_t i = 0; i < n; i++) {
        height += (size_t)panel_height(&panels[i]);
        if (panel_width(&panels[i]) > width) width = panel_width(&panels[i]);
    }
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%zu\" viewBox=\"0 0 %d %zu\" font-family=\"sans-serif\" "
            "font-size=\"12\" fill=\"#222\">\n"
            "<style>.grid{stroke:#ddd;fill:none}.title{font-size:15px;"
            "font-weight:bold}.sub{fill:#555}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width, height);
    for (size_t i = 0; i < n; i++) {
        draw_panel(f, &panels[i], down);
        down += (size_t)panel_height(&panels[i]);
    }
    fputs("</svg>\n", f);
    return fflush(f) != 0 || ferror(f) ? -1 : 0;
}
