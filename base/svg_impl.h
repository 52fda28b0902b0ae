/* svg_impl.h: where things lie in a panel, shared by the files of svg. Private
 * to base/.
 *
 *   svg.c         figures, panels, legends
 *   svg_inline.c  panels of an HTML page
 *   svg_series.c  lines, areas, error bars, marks
 *   svg_marker.c  markers, colours, dashes
 *   svg_axis.c    from values to pixels
 *   svg_ticks.c   grid lines and their numbers */
#ifndef TAC_SVG_IMPL_H
#define TAC_SVG_IMPL_H

#include "tacit/svg.h"

/* The rectangle that data is drawn in, and the values at its edges: in
 * logarithms where the axis is logarithmic. */
typedef struct tac__svg_plot {
    int left, top, width, height;
    const tac_svg_axis *x, *y;
    double x_low, x_high, y_low, y_high;
    int page; /* colours are the page's */
} tac__svg_plot;

/* svg_axis.c */
/* Edges that show all series and marks of the panel. */
void tac__svg_scale(const tac_svg_panel *p, tac__svg_plot *plot);
/* Can the point be drawn, and where? In pixels. */
int tac__svg_drawable(const tac__svg_plot *plot, double x, double y);
double tac__svg_x(const tac__svg_plot *plot, double x);
double tac__svg_y(const tac__svg_plot *plot, double y);
/* -1, 1: below or above what the axis shows. */
int tac__svg_beyond(const tac_svg_axis *a, double v);
/* Where the last step of an area ends. */
double tac__svg_area_end(const tac_svg_series *s);

/* svg_ticks.c: grid lines with their numbers or names. */
void tac__svg_ticks(FILE *f, const tac__svg_plot *plot);

/* svg_marker.c */
const char *tac__svg_colour(int page, int i, char buf[24]);
const char *tac__svg_paper(int page);
const char *tac__svg_dash(int dashed);
/* What AUTO stands for. */
tac_svg_marker tac__svg_marker_of(const tac_svg_series *s);
void tac__svg_marker(FILE *f, int page, int colour, tac_svg_marker m, double x,
                     double y);

/* svg_series.c */
void tac__svg_series(FILE *f, const tac_svg_series *s,
                     const tac__svg_plot *plot);
void tac__svg_mark(FILE *f, const tac_svg_mark *m, const tac__svg_plot *plot);
/* The marker of a legend; of an area a piece of it. */
void tac__svg_sample(FILE *f, int page, const tac_svg_series *s, double x,
                     double y);
/* A piece of a line, 26 pixels wide. */
void tac__svg_key(FILE *f, int page, int colour, int dashed, double x,
                  double y);

#endif
