/* comm_picture.c: size against time, a panel for each operation, type and
 * reduction. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_bench.h"
#include "tacit/svg.h"

enum { LINES = 6, NAME = 128 };

/* The lines of a panel: (what, placement). */
typedef struct line {
    const char *name;
    int in_place, colour, dashed;
    size_t field; /* offset of the time in tac__row */
} line;

static const line lines[LINES] = {
    {"tacit, out of place", 0, 0, 0, offsetof(tac__row, time_us)},
    {"tacit, in place", 1, 5, 0, offsetof(tac__row, time_us)},
    {"MPI, out of place", 0, 1, 0, offsetof(tac__row, baseline_us)},
    {"MPI, in place", 1, 4, 0, offsetof(tac__row, baseline_us)},
    {"floor, out of place", 0, -1, 1, offsetof(tac__row, floor_us)},
    {"floor, in place", 1, -1, 1, offsetof(tac__row, floor_us)},
};

typedef struct drawing {
    const tac__comm_bench *b;
    double *numbers; /* x and y of all series, one after the other */
    size_t used;
    tac_svg_series *series;
    size_t n_series;
    tac_svg_panel *panels;
    char (*titles)[2][NAME];
    size_t n_panels;
} drawing;

static int same_panel(const tac__case *a, const tac__case *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op;
}

/* Adds a line's series if it has a point. */
static void add_line(drawing *d, const tac__case *k, const line *l)
{
    const size_t n = d->b->n_rows;
    double *x = d->numbers + d->used, *y = x + n;
    size_t points = 0;
    for (size_t i = 0; i < n; i++) {
        const tac__row *r = &d->b->rows[i];
        double us;
        memcpy(&us, (const char *)r + l->field, sizeof us);
        if (!same_panel(&r->k, k) || r->k.in_place != l->in_place ||
            !isfinite(us))
            continue;
        x[points] = (double)r->k.bytes;
        y[points++] = us;
    }
    if (!points) return;
    d->used += 2 * n;
    d->series[d->n_series++] = (tac_svg_series){.name = l->name,
                                                .n = points,
                                                .x = x,
                                                .y = y,
                                                .colour = l->colour,
                                                .dashed = l->dashed};
}

static void add_panel(drawing *d, const tac__case *k)
{
    char(*title)[NAME] = d->titles[d->n_panels];
    tac_svg_panel *p = &d->panels[d->n_panels++];
    const size_t first = d->n_series;
    snprintf(title[0], NAME, "%s %s %s, %d ranks%s", tac_coll_name(k->coll),
             tac_dtype_name(k->dtype), tac_op_name(k->op), d->b->group.size,
             d->b->oversubscribed ? ", oversubscribed" : "");
    snprintf(title[1], NAME, "transport %s, %d host%s, wire %.30s, memory %s",
             tac_comm_transport_name(d->b->comm), tac_comm_hosts(d->b->comm),
             tac_comm_hosts(d->b->comm) == 1 ? "" : "s", d->b->opt->wire,
             d->b->opt->memory);
    for (int i = 0; i < LINES; i++) add_line(d, k, &lines[i]);
    *p = (tac_svg_panel){
        .title = title[0],
        .subtitle = title[1],
        .x = {.label = "size (bytes)", .log = 1, .unit = TAC_SVG_UNIT_BYTES},
        .y = {.label = "time, median of the slowest rank",
              .log = 1,
              .unit = TAC_SVG_UNIT_US},
        .series = d->series + first,
        .n = d->n_series - first};
}

static void add_panels(drawing *d)
{
    for (size_t i = 0; i < d->b->n_rows; i++) {
        size_t first = 0;
        while (!same_panel(&d->b->rows[first].k, &d->b->rows[i].k)) first++;
        if (first == i) add_panel(d, &d->b->rows[i].k);
    }
}

static int open_drawing(drawing *d)
{
    const size_t n = d->b->n_rows;
    d->numbers = calloc(n * LINES * 2 * n, sizeof *d->numbers);
    d->series = calloc(n * LINES, sizeof *d->series);
    d->panels = calloc(n, sizeof *d->panels);
    d->titles = calloc(n, sizeof *d->titles);
    return d->numbers && d->series && d->panels && d->titles;
}

static void close_drawing(drawing *d)
{
    free(d->numbers);
    free(d->series);
    free(d->panels);
    free(d->titles);
}

static int write_drawing(const drawing *d, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return -1;
    int rc = tac_svg_write(f, d->panels, d->n_panels);
    if (fclose(f) != 0) rc = -1;
    return rc;
}

tac_status tac__write_picture(tac__comm_bench *b)
{
    drawing d = {.b = b};
    tac_status s = TAC_OK;
    if (!open_drawing(&d)) {
        s = tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for the picture");
    } else {
        add_panels(&d);
        if (write_drawing(&d, b->opt->svg) != 0)
            s = tac_fail(b->ctx, TAC_ERR_IO, "can't write %s: %m", b->opt->svg);
    }
    close_drawing(&d);
    return s;
}
