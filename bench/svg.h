/* svg.h: plots of lines as self-contained SVG, for reports.
 *
 * A figure is a column of panels of one size. Colours are the Okabe-Ito set,
 * which readers with any colour vision can tell apart; series differ in dash
 * and marker, too. */
#ifndef TAC_BENCH_SVG_H
#define TAC_BENCH_SVG_H

#include <stddef.h>
#include <stdio.h>

/* Points in any order are drawn in the order given. Those that are not finite,
 * or not positive on a logarithmic axis, are left out, and the line is broken
 * there. All borrowed. */
typedef struct tac__series {
    const char *name;
    size_t n;
    const double *x, *y;
    int colour; /* index; -1: grey */
    int dashed;
} tac__series;

typedef enum tac__unit {
    TAC__UNIT_NONE = 0,
    TAC__UNIT_BYTES, /* 4K, 1M: ticks at powers of 4 or 2 */
    TAC__UNIT_US     /* 10 us, 1 ms, 1 s */
} tac__unit;

typedef struct tac__axis {
    const char *label;
    int log;
    tac__unit unit;
} tac__axis;

typedef struct tac__panel {
    const char *title, *subtitle; /* subtitle may be NULL */
    tac__axis x, y;
    const tac__series *series;
    size_t n;
} tac__panel;

/* Writes a whole file. Returns 0, or -1 with errno. */
int tac__svg_write(FILE *f, const tac__panel *panels, size_t n);

/* `text` with & < > " replaced, to f. */
void tac__svg_text(FILE *f, const char *text);

#endif
