/* tacit/svg.h: plots as self-contained SVG, for reports.
 *
 * A figure is a column of panels. Colours are the Okabe-Ito set, which readers
 * with any colour vision can tell apart; lines differ in dash and marker, too.
 *
 * Everything is borrowed for the call. Thread-safe. */
#ifndef TACIT_SVG_H
#define TACIT_SVG_H

#include <stddef.h>
#include <stdio.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

typedef enum tac_svg_style {
    TAC_SVG_LINE = 0, /* points joined by lines, with markers */
    TAC_SVG_AREA      /* filled steps from `base` up to y: value i holds from
                         x[i] to x[i + 1], the last as long as the one before */
} tac_svg_style;

/* Points in any order are drawn in the order given. Those that are not finite,
 * or not positive on a logarithmic axis, are left out, and a line is broken
 * there. A series without a name is not in the legend. */
typedef struct tac_svg_series {
    const char *name;
    size_t n;
    const double *x, *y;
    int colour; /* index; -1: grey */
    int dashed;
    tac_svg_style style;
    double base; /* of an area */
} tac_svg_series;

typedef enum tac_svg_unit {
    TAC_SVG_UNIT_NONE = 0,
    TAC_SVG_UNIT_BYTES, /* 4K, 1M: ticks at powers of 4 or 2 */
    TAC_SVG_UNIT_US     /* 10 us, 1 ms, 1 s */
} tac_svg_unit;

typedef struct tac_svg_axis {
    const char *label;
    int log;
    tac_svg_unit unit;
    const char *const *names; /* y axis: instead of numbers, names[i] stands at
                                 i + 1/2; NULL: numbers */
    size_t n_names;
} tac_svg_axis;

/* A vertical line over the whole panel, explained in the legend. */
typedef struct tac_svg_mark {
    const char *name; /* NULL: not in the legend */
    double x;
    int colour, dashed;
} tac_svg_mark;

typedef struct tac_svg_panel {
    const char *title, *subtitle; /* subtitle may be NULL */
    tac_svg_axis x, y;
    const tac_svg_series *series;
    size_t n;
    const tac_svg_mark *marks;
    size_t n_marks;
    int height; /* of the whole panel in pixels; 0: 460 */
} tac_svg_panel;

/* Writes a whole file. Returns 0, or -1 with errno. */
TAC_API int tac_svg_write(FILE *f, const tac_svg_panel *panels, size_t n);

/* `text` with & < > " replaced, to f. */
TAC_API void tac_svg_text(FILE *f, const char *text);

TAC_END_DECLS

#endif
