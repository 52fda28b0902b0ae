/* svg_marker.c: what points look like: colours, dashes, markers. */
#include "svg_impl.h"

const char *tac__svg_colour(int page, int i, char buf[24])
{
    static const char *const okabe_ito[] = {"#0072b2", "#d55e00", "#009e73",
                                            "#cc79a7", "#e69f00", "#56b4e9",
                                            "#000000"};
    const int n = (int)(sizeof okabe_ito / sizeof *okabe_ito);
    if (!page) return i < 0 ? "#888888" : okabe_ito[i % n];
    if (i < 0) return "var(--tac-grey)";
    snprintf(buf, 24, "var(--tac-c%d)", i);
    return buf;
}

const char *tac__svg_paper(int page)
{
    return page ? "var(--tac-paper)" : "#fff";
}

const char *tac__svg_dash(int dashed)
{
    static const char *const dashes[] = {"", " stroke-dasharray=\"6 4\"",
                                         " stroke-dasharray=\"2 3\"",
                                         " stroke-dasharray=\"9 3 2 3\""};
    return dashes[dashed < 0 ? 0 : dashed % 4];
}

tac_svg_marker tac__svg_marker_of(const tac_svg_series *s)
{
    if (s->marker != TAC_SVG_MARKER_AUTO) return s->marker;
    return s->dashed ? TAC_SVG_OPEN_SQUARE : TAC_SVG_DISC;
}

static int is_open(tac_svg_marker m)
{
    return m >= TAC_SVG_RING && m <= TAC_SVG_OPEN_DOWN;
}

static void circle(FILE *f, double x, double y)
{
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"", x, y);
}

static void square(FILE *f, double x, double y)
{
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\"", x - 3,
            y - 3);
}

static void shape(FILE *f, tac_svg_marker m, double x, double y)
{
    switch (m) {
    case TAC_SVG_DIAMOND:
    case TAC_SVG_OPEN_DIAMOND:
        fprintf(f, "<path d=\"M%.1f %.1fl4 4l-4 4l-4 -4z\"", x, y - 4);
        break;
    case TAC_SVG_UP:
    case TAC_SVG_OPEN_UP:
        fprintf(f, "<path d=\"M%.1f %.1fl4 6.8h-8z\"", x, y - 4.3);
        break;
    case TAC_SVG_DOWN:
    case TAC_SVG_OPEN_DOWN:
        fprintf(f, "<path d=\"M%.1f %.1fl4 -6.8h-8z\"", x, y + 4.3);
        break;
    case TAC_SVG_SQUARE:
    case TAC_SVG_OPEN_SQUARE: square(f, x, y); break;
    default: circle(f, x, y);
    }
}

void tac__svg_marker(FILE *f, int page, int colour, tac_svg_marker m, double x,
                     double y)
{
    char buf[24];
    const char *ink = tac__svg_colour(page, colour, buf);
    if (m == TAC_SVG_NO_MARKER) return;
    shape(f, m, x, y);
    if (is_open(m))
        fprintf(f, " fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"/>\n",
                tac__svg_paper(page), ink);
    else
        fprintf(f, " fill=\"%s\"/>\n", ink);
}
