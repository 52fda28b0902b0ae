/* A row for each tensor: how often which binary exponent occurs in its
 * gradient, with what fp16 can hold of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacit/svg.h"
#include "underflow_report.h"

enum { ROW = 34, FRAME = 110, MARKS = 6, TITLE = 160 };

typedef struct picture {
    size_t rows, bins;
    int low; /* exponent of the first bin */
    double *x, *y;
    const char **names;
    tac_svg_series *series;
    tac_svg_mark marks[MARKS];
    char subtitle[TITLE];
} picture;

/* The bins that any row has values in. */
static void find_bins(const tac_underflow *u, picture *p)
{
    size_t first = TAC_UNDERFLOW_BINS, last = 0;

    for (size_t i = 0; i < p->rows; i++)
        for (size_t b = 0; b < TAC_UNDERFLOW_BINS; b++)
            if (tac_underflow_get(u, i)->bins[b] > 0) {
                if (b < first) first = b;
                if (b > last) last = b;
            }
    p->bins = first > last ? 0 : last - first + 1;
    p->low = TAC_UNDERFLOW_MIN + (int)first;
}

static uint64_t fullest(const tac_underflow_row *row)
{
    uint64_t most = 1;

    for (size_t b = 0; b < TAC_UNDERFLOW_BINS; b++)
        if (row->bins[b] > most) most = row->bins[b];
    return most;
}

/* The first tensor is the topmost row. */
static void add_row(const tac_underflow *u, size_t i, picture *p)
{
    const tac_underflow_row *row = tac_underflow_get(u, i);
    const size_t place = p->rows - 1 - i, first = p->low - TAC_UNDERFLOW_MIN;
    const double most = (double)fullest(row);
    double *y = p->y + place * p->bins;

    for (size_t b = 0; b < p->bins; b++)
        y[b] = (double)place + 0.92 * (double)row->bins[first + b] / most;
    p->names[place] = row->name;
    p->series[place] = (tac_svg_series){.n = p->bins,
                                        .x = p->x,
                                        .y = y,
                                        .colour = 0,
                                        .style = TAC_SVG_AREA,
                                        .base = (double)place};
}

/* Scaling by 2^k moves fp16's limits down by k. */
static void add_marks(picture *p, double scale)
{
    static const struct {
        const char *what;
        double at;
        int colour;
    } limits[3] = {{"zero below", -25, 1},
                   {"subnormal below", -14, 4},
                   {"infinite from", 16, 3}};
    static const char *const scaled_names[3] = {
        "zero, scaled", "subnormal, scaled", "infinite, scaled"};

    for (int i = 0; i < MARKS; i++) {
        const int scaled = i / 3;

        p->marks[i] = (tac_svg_mark){
            .name = scaled ? scaled_names[i % 3] : limits[i % 3].what,
            .x = limits[i % 3].at - (scaled ? floor(log2(scale)) : 0),
            .colour = limits[i % 3].colour,
            .dashed = scaled};
    }
}

static int open_picture(const tac_underflow *u, picture *p)
{
    p->rows = tac_underflow_rows(u);
    find_bins(u, p);
    p->x = calloc(p->bins + 1, sizeof *p->x);
    p->y = calloc(p->rows * p->bins + 1, sizeof *p->y);
    p->names = calloc(p->rows + 1, sizeof *p->names);
    p->series = calloc(p->rows + 1, sizeof *p->series);
    return p->x && p->y && p->names && p->series;
}

static void close_picture(picture *p)
{
    free(p->x);
    free(p->y);
    free(p->names);
    free(p->series);
}

static int write_picture(const picture *p, const char *path)
{
    const tac_svg_panel panel = {
        .title = "Gradients by size, and what fp16 holds of them",
        .subtitle = p->subtitle,
        .x = {.label = "|g|, as a power of two"},
        .y = {.label = "how often, each row to its own maximum",
              .names = p->names,
              .n_names = p->rows},
        .series = p->series,
        .n = p->rows,
        .marks = p->marks,
        .n_marks = MARKS,
        .height = FRAME + ROW * (int)(p->rows < 5 ? 5 : p->rows)};
    FILE *f = fopen(path, "w");

    if (!f) return -1;
    int rc = tac_svg_write(f, &panel, 1);
    if (fclose(f) != 0) rc = -1;
    return rc;
}

tac_status tac__underflow_draw(tac__run *run, const char *path)
{
    const tac_underflow *u = run->replica->underflow;
    const double scale = tac__underflow_scale(run);
    picture p = {.rows = 0};
    tac_status s = TAC_OK;

    if (!u) return TAC_OK;
    if (!open_picture(u, &p)) {
        s = tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for a picture");
    } else {
        for (size_t b = 0; b < p.bins; b++) p.x[b] = p.low + (int)b;
        for (size_t i = 0; i < p.rows; i++) add_row(u, i, &p);
        add_marks(&p, scale);
        snprintf(
            p.subtitle, sizeof p.subtitle,
            "%.60s; solid: without loss scaling, dashed: at loss scale %.10g",
            run->config->model, scale);
        if (write_picture(&p, path) != 0)
            s = tac_fail(run->rank->ctx, TAC_ERR_IO,
                         "cannot write %s: %m; check the free space", path);
    }
    close_picture(&p);
    return s;
}
