/* sweep_picture.c: builds one plot, line by line and point by point. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sweep_page.h"

/* Room for one more; 0: no memory. */
static int make_room(void **list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return 1;
    const size_t more = *cap ? 2 * *cap : 32;
    void *grown = realloc(*list, more * size);
    if (!grown) return 0;
    *list = grown;
    *cap = more;
    return 1;
}

void tac__picture_line(picture *k, const char *name, const tac_svg_series *look)
{
    void *list = k->lines;
    if (!make_room(&list, k->n_lines, &k->cap_lines, sizeof *k->lines)) {
        k->failed = 1;
        return;
    }
    k->lines = list;
    picture_line *line = &k->lines[k->n_lines++];
    *line = (picture_line){.first = k->n_points, .look = *look};
    snprintf(line->name, sizeof line->name, "%s", name ? name : "");
}

void tac__picture_point(picture *k, double x, double y, double low, double high,
                        const char *note, ...)
{
    void *list = k->points;
    va_list args;
    if (!make_room(&list, k->n_points, &k->cap_points, sizeof *k->points)) {
        k->failed = 1;
        return;
    }
    k->points = list;
    picture_point *point = &k->points[k->n_points++];
    *point = (picture_point){.x = x, .y = y, .low = low, .high = high};
    va_start(args, note);
    vsnprintf(point->note, sizeof point->note, note, args);
    va_end(args);
}

static size_t end_of(const picture *k, size_t line)
{
    return line + 1 < k->n_lines ? k->lines[line + 1].first : k->n_points;
}

/* ---- drawing ---------------------------------------------------------------
 */

/* The same points as arrays. */
typedef struct columns {
    double *x, *y, *low, *high; /* one allocation */
    const char **notes;
    tac_svg_series *series;
} columns;

static int allocate(const picture *k, columns *c)
{
    const size_t n = k->n_points + 1;
    c->x = calloc(4 * n, sizeof *c->x);
    c->notes = calloc(n, sizeof *c->notes);
    c->series = calloc(k->n_lines + 1, sizeof *c->series);
    if (!c->x || !c->notes || !c->series) return 0;
    c->y = c->x + n;
    c->low = c->x + 2 * n;
    c->high = c->x + 3 * n;
    return 1;
}

static void fill(const picture *k, columns *c)
{
    for (size_t i = 0; i < k->n_points; i++) {
        c->x[i] = k->points[i].x;
        c->y[i] = k->points[i].y;
        c->low[i] = k->points[i].low;
        c->high[i] = k->points[i].high;
        c->notes[i] = k->points[i].note[0] ? k->points[i].note : NULL;
    }
    for (size_t l = 0; l < k->n_lines; l++) {
        const size_t first = k->lines[l].first;
        tac_svg_series *s = &c->series[l];
        *s = k->lines[l].look;
        s->name = k->lines[l].name[0] ? k->lines[l].name : NULL;
        s->n = end_of(k, l) - first;
        s->x = c->x + first;
        s->y = c->y + first;
        s->low = c->low + first;
        s->high = c->high + first;
        s->notes = c->notes + first;
    }
}

static void free_columns(columns *c)
{
    free(c->x);
    free(c->notes);
    free(c->series);
}

/* c is to be freed, also after a failure. */
static tac_status make_columns(const picture *k, columns *c)
{
    if (k->failed || !allocate(k, c))
        return tac_fail(k->page->s->ctx, TAC_ERR_NOMEM,
                        "no memory for a picture of %zu points", k->n_points);
    fill(k, c);
    return TAC_OK;
}

static tac_svg_panel panel_of(const picture *k, const columns *c)
{
    tac_svg_panel panel = k->panel;
    panel.series = c->series;
    panel.n = k->n_lines;
    return panel;
}

tac_status tac__picture_draw(picture *k, const char *label)
{
    columns c = {0};
    const tac_status status = make_columns(k, &c);
    if (status >= 0) {
        const tac_svg_panel panel = panel_of(k, &c);
        tac_svg_inline(k->page->f, &panel, label);
    }
    free_columns(&c);
    return status;
}

/* ---- a file ----------------------------------------------------------------
 */

static tac_status write_panels(tac_context *ctx, const tac_svg_panel *panels,
                               size_t n, const char *path)
{
    FILE *f = fopen(path, "w");
    const int failed = !f || tac_svg_write(f, panels, n) != 0;
    if ((f && fclose(f) != 0) || failed)
        return tac_fail(ctx, TAC_ERR_IO, "can't write %s: %s; check the folder",
                        path, strerror(errno));
    return TAC_OK;
}

tac_status tac__picture_write(picture *const *pictures, size_t n,
                              const char *path)
{
    columns c[4] = {{0}};
    tac_svg_panel panels[4];
    tac_status status = TAC_OK;
    if (n > 4) n = 4;
    for (size_t i = 0; i < n && status >= 0; i++) {
        status = make_columns(pictures[i], &c[i]);
        if (status >= 0) panels[i] = panel_of(pictures[i], &c[i]);
    }
    if (status >= 0)
        status = write_panels(pictures[0]->page->s->ctx, panels, n, path);
    for (size_t i = 0; i < n; i++) free_columns(&c[i]);
    return status;
}

/* ---- the legend ------------------------------------------------------------
 */

void tac__picture_legend(const picture *k)
{
    fputs("<ul class=\"legend\">", k->page->f);
    for (size_t l = 0; l < k->n_lines; l++) {
        if (!k->lines[l].name[0]) continue;
        fputs("<li>", k->page->f);
        tac_svg_inline_key(k->page->f, &k->lines[l].look);
        fputc(' ', k->page->f);
        tac__page_text(k->page, k->lines[l].name);
        fputs("</li>", k->page->f);
    }
    fputs("</ul>\n", k->page->f);
}

void tac__picture_free(picture *k)
{
    free(k->lines);
    free(k->points);
    k->lines = NULL;
    k->points = NULL;
    k->n_lines = k->cap_lines = k->n_points = k->cap_points = 0;
}
