/* tacit/svg.h: plots as SVG, for reports: files of their own, or parts of an
 * HTML page.
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
    TAC_SVG_AREA,     /* filled steps from `base` up to y: value i holds from
                         x[i] to x[i + 1], the last as long as the one before */
    TAC_SVG_POINTS    /* markers alone */
} tac_svg_style;

typedef enum tac_svg_marker {
    TAC_SVG_MARKER_AUTO = 0, /* a disc; of a dashed series an open square */
    TAC_SVG_DISC,
    TAC_SVG_SQUARE,
    TAC_SVG_DIAMOND,
    TAC_SVG_UP, /* triangles */
    TAC_SVG_DOWN,
    TAC_SVG_RING, /* the same, open */
    TAC_SVG_OPEN_SQUARE,
    TAC_SVG_OPEN_DIAMOND,
    TAC_SVG_OPEN_UP,
    TAC_SVG_OPEN_DOWN,
    TAC_SVG_NO_MARKER
} tac_svg_marker;

/* Points in any order are drawn in the order given. Those that are not finite,
 * or not positive on a logarithmic axis, are left out, and a line is broken
 * there. A series without a name is not in the legend. */
typedef struct tac_svg_series {
    const char *name;
    size_t n;
    const double *x, *y;
    int colour; /* index; -1: grey */
    int dashed; /* 0 to 3: how */
    tac_svg_style style;
    double base;              /* of an area */
    const double *low, *high; /* (n) ends of error bars; NULL: none */
    const char *const *notes; /* (n) what a pointer on the point is told; NULL,
                                 or an entry of NULL: nothing */
    tac_svg_marker marker;
} tac_svg_series;

typedef enum tac_svg_unit {
    TAC_SVG_UNIT_NONE = 0,
    TAC_SVG_UNIT_BYTES,   /* 4K, 1M: ticks at powers of 4 or 2 */
    TAC_SVG_UNIT_US,      /* 10 us, 1 ms, 1 s */
    TAC_SVG_UNIT_S,       /* the same, of seconds */
    TAC_SVG_UNIT_TRAFFIC, /* bytes as networks count: 10 kB, 1 MB */
    TAC_SVG_UNIT_PERCENT, /* of shares: 0.5 is 50 % */
    TAC_SVG_UNIT_POWER2   /* 1, 2, 4: ticks at powers of 2 */
} tac_svg_unit;

typedef struct tac_svg_axis {
    const char *label;
    int log;
    tac_svg_unit unit;
    const char *const *names; /* y axis: instead of numbers, names[i] stands at
                                 i + 1/2; NULL: numbers */
    size_t n_names;
    int tight;       /* a linear axis need not show 0 */
    double from, to; /* what is shown; equal: everything. Points beyond are
                        drawn at the edge, as triangles */
} tac_svg_axis;

/* A line over the whole panel, explained in the legend: vertical at x, or
 * `across`, horizontal at y, on a band from low to high where they differ. */
typedef struct tac_svg_mark {
    const char *name; /* NULL: not in the legend */
    double x;
    int colour, dashed;
    int across;
    double y, low, high;
} tac_svg_mark;

typedef struct tac_svg_panel {
    const char *title, *subtitle; /* subtitle may be NULL */
    tac_svg_axis x, y;
    const tac_svg_series *series;
    size_t n;
    const tac_svg_mark *marks;
    size_t n_marks;
    int height; /* of the whole panel in pixels; 0: 460, in a page 270 */
    int width;  /* 0: 760, in a page 380 */
} tac_svg_panel;

/* Writes a whole file. Returns 0, or -1 with errno. */
TAC_API int tac_svg_write(FILE *f, const tac_svg_panel *panels, size_t n);

/* Writes a panel as an <svg> element of an HTML page, without legend, small
 * enough for a telephone. Its colours are the page's CSS variables --tac-c0,
 * --tac-c1, ..., --tac-grey, --tac-ink, --tac-grid and --tac-paper, so that
 * they follow the page into the dark; `label` is its accessible name. */
TAC_API int tac_svg_inline(FILE *f, const tac_svg_panel *panel,
                           const char *label);
/* A piece of the series' line and its marker, for a legend in the page. */
TAC_API int tac_svg_inline_key(FILE *f, const tac_svg_series *series);

/* `text` with & < > " replaced, to f. */
TAC_API void tac_svg_text(FILE *f, const char *text);

TAC_END_DECLS

#endif
