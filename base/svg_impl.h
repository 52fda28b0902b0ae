/* svg_impl.h: where things lie in a panel, shared by the files of svg. Private
 * to base/. */
#ifndef TAC_SVG_IMPL_H
#define TAC_SVG_IMPL_H

#include "tacit/svg.h"

/* The rectangle that data is drawn in, and the values at its edges: in
 * logarithms where the axis is logarithmic. */
typedef struct tac__svg_plot {
    int left, top, width, height;
    const tac_svg_axis *x, *y;
    double x_low, x_high, y_low, y_high;
} tac__svg_plot;

/* svg_axis.c */
/* Edges that show all series and marks of the panel. */
void tac__svg_scale(const tac_svg_panel *p, tac__svg_plot *plot);
/* Can the point be drawn, and where? In pixels. */
int tac__svg_drawable(const tac__svg_plot *plot, double x, double y);
double tac__svg_x(const tac__svg_plot *plot, double x);
double tac__svg_y(const tac__svg_plot *plot, double y);
/* Where the last step of an area ends. */
double tac__svg_area_end(const tac_svg_series *s);
/* Grid lines with their numbers or names. */
void tac__svg_ticks(FILE *f, const tac__svg_plot *plot);

#endif
