/* The table as a picture: a line a row, and in it memory by kind as a stacked
 * bar, bytes, time measured and modelled as bars, and accuracy with its
 * standard error; a dashed line goes down from the baseline's value. Colours
 * are the page's variables; a file of its own brings them along. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "efficiency.h"

enum {
    WIDTH = 1300,
    TOP = 96, /* of the first line */
    LINE = 25,
    BAR = 14,
    LABEL = 8
};

/* What a column shows: from `low` at x to `high` at x + width. */
typedef struct column {
    const char *title, *unit;
    double x, width;
    double low, high;
} column;

enum { MEMORY, BYTES, HERE, THERE, ACCURACY, COLUMNS };

typedef struct drawing {
    const eff *e;
    FILE *f;
    column c[COLUMNS];
    size_t network; /* of THERE */
    char there[64];
} drawing;

/* ---- values ----------------------------------------------------------------
 */

static double value(const drawing *d, const eff_row *r, int c)
{
    switch (c) {
    case MEMORY: return r->memory_total / 1048576;
    case BYTES: return r->bytes_sample / 1e3;
    case HERE: return r->seconds * 1e6;
    case THERE:
        return d->network < d->e->n_networks ? r->modelled[d->network] * 1e6
                                             : NAN;
    default: return 100 * r->test_mean;
    }
}

static double error(const eff_row *r)
{
    return isfinite(r->test_error) ? 100 * r->test_error : 0;
}

static void scale(drawing *d, int c)
{
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < d->e->n_rows; i++) {
        const eff_row *r = &d->e->rows[i];
        const double v = value(d, r, c), e = c == ACCURACY ? error(r) : 0;

        if (r->n == 0 || !isfinite(v)) continue;
        low = fmin(low, v - e);
        high = fmax(high, v + e);
    }
    d->c[c].low = c == ACCURACY && isfinite(low) ? floor(low - 0.5) : 0;
    d->c[c].high = high > d->c[c].low ? high : d->c[c].low + 1;
}

static double place(const column *c, double v)
{
    return c->x + c->width * (v - c->low) / (c->high - c->low);
}

static void lay_out(drawing *d)
{
    static const column columns[COLUMNS] = {
        {"memory of a rank", "MiB, by kind", 320, 230, 0, 0},
        {"between ranks", "kB a sample", 612, 80, 0, 0},
        {"time here", "\xc2\xb5s a sample, measured", 758, 90, 0, 0},
        {"time on a network", NULL, 932, 90, 0, 0},
        {"accuracy", NULL, 1104, 124, 0, 0}};

    memcpy(d->c, columns, sizeof columns);
    d->network = d->e->n_networks - 1; /* the last is the slowest */
    if (d->e->n_networks > 0)
        snprintf(d->there, sizeof d->there, "\xc2\xb5s, modelled: %.20s",
                 d->e->network_names[d->network]);
    d->c[THERE].unit = d->there;
    d->c[ACCURACY].unit =
        d->e->tested ? "test, %, with standard error" : "validation, %";
    for (int c = 0; c < COLUMNS; c++) scale(d, c);
}

/* ---- drawing ---------------------------------------------------------------
 */

static void text(const drawing *d, double x, double y, const char *how,
                 const char *words)
{
    fprintf(d->f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, how);
    tac_svg_text(d->f, words);
    fputs("</text>\n", d->f);
}

static void bar(const drawing *d, double x, double y, double width,
                const char *colour, const char *note)
{
    if (!(width > 0)) return;
    fprintf(d->f,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" "
            "style=\"fill:var(--tac-%s)\"><title>",
            x, y, width, BAR, colour);
    tac_svg_text(d->f, note);
    fputs("</title></rect>\n", d->f);
}

static const char *colour_of(int memory)
{
    static const char *const colours[] = {"c0", "c5", "c4",  "c1",
                                          "c2", "c7", "grey"};

    return colours[memory];
}

static void put_value(const drawing *d, const column *c, double v, double y)
{
    char words[32];
    const int digits = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;

    snprintf(words, sizeof words, "%.*f", digits, v);
    text(d, place(c, v) + 5, y + 11.5, "", words);
}

static void draw_memory(const drawing *d, const eff_row *r, double y)
{
    const column *c = &d->c[MEMORY];
    double sum = 0;

    for (int m = 0; m < EFF_MEMORY; m++) {
        const double v = r->memory[m] / 1048576;
        char note[96];

        snprintf(note, sizeof note, "%s: %.2f MiB",
                 eff_memory_title((eff_memory)m), v);
        bar(d, place(c, sum), y, c->width * v / c->high, colour_of(m), note);
        sum += isfinite(v) ? v : 0;
    }
    put_value(d, c, sum, y);
}

static void draw_bar(const drawing *d, const eff_row *r, int k, double y)
{
    const column *c = &d->c[k];
    const double v = value(d, r, k);
    char note[120];

    if (!isfinite(v)) {
        text(d, c->x, y + 11.5, " class=\"sub\"", "-");
        return;
    }
    snprintf(note, sizeof note, "%.4g %.60s", v, c->unit);
    bar(d, c->x, y, place(c, v) - c->x, "c0", note);
    put_value(d, c, v, y);
}

/* A disc on the line of what chance explains. */
static void draw_accuracy(const drawing *d, const eff_row *r, double y)
{
    const column *c = &d->c[ACCURACY];
    const double v = value(d, r, ACCURACY), middle = y + BAR / 2.0;
    char words[32];

    if (!isfinite(v)) {
        text(d, c->x, y + 11.5, " class=\"sub\"", "diverged");
        return;
    }
    fprintf(d->f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
            "style=\"stroke:var(--tac-c1);stroke-width:2\"/>"
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" "
            "style=\"fill:var(--tac-c1)\"><title>%.2f %% &#177; %.2f</title>"
            "</circle>\n",
            place(c, v - error(r)), place(c, v + error(r)), middle, middle,
            place(c, v), middle, v, error(r));
    snprintf(words, sizeof words, "%.2f", v);
    text(d, c->x + c->width + 12, y + 11.5, "", words);
}

static void draw_row(const drawing *d, const eff_row *r, double y)
{
    text(d, LABEL, y + 11.5, "", r->label);
    if (r->n == 0) {
        text(d, d->c[MEMORY].x, y + 11.5, " class=\"sub\"", "diverged");
        return;
    }
    draw_memory(d, r, y);
    draw_bar(d, r, BYTES, y);
    draw_bar(d, r, HERE, y);
    draw_bar(d, r, THERE, y);
    draw_accuracy(d, r, y);
}

static void draw_head(const drawing *d)
{
    double x = d->c[MEMORY].x;
    char words[512];

    snprintf(words, sizeof words, "%s on %s, %s, %lld seed%s%s", d->e->model,
             d->e->data, d->e->how, (long long)d->e->o->seeds,
             d->e->o->seeds == 1 ? "" : "s",
             d->e->oversubscribed ? "; ranks share cores" : "");
    text(d, LABEL, 20, " class=\"title\"",
         "What each technique saves and costs");
    text(d, LABEL, 38, " class=\"sub\"", words);
    for (int m = 0; m < EFF_MEMORY; m++) {
        bar(d, x, 9, BAR, colour_of(m), eff_memory_title((eff_memory)m));
        text(d, x + BAR + 5, 20.5, "", eff_memory_title((eff_memory)m));
        x += BAR + 21 + 6.6 * (double)strlen(eff_memory_title((eff_memory)m));
    }
    for (int c = 0; c < COLUMNS; c++) {
        text(d, d->c[c].x, 66, " class=\"title\"", d->c[c].title);
        text(d, d->c[c].x, 81, " class=\"sub\"", d->c[c].unit);
    }
}

/* Down from the baseline's values; behind the rest. */
static void draw_baseline(const drawing *d, double bottom)
{
    const eff_row *b = &d->e->rows[0];

    for (int c = 0; c < COLUMNS && b->n > 0; c++) {
        const double v = value(d, b, c), x = place(&d->c[c], v);

        if (!isfinite(v)) continue;
        fprintf(d->f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\" "
                "class=\"grid\" stroke-dasharray=\"4 3\"/>\n",
                x, x, TOP - 8, bottom);
    }
}

static int shown(const eff_row *r)
{
    return r->n + r->missing > 0;
}

static int begins_part(const eff *e, size_t i)
{
    return i > 0 && e->rows[i].part != e->rows[i - 1].part;
}

static double height(const eff *e)
{
    double y = TOP;

    for (size_t i = 0; i < e->n_rows; i++)
        if (shown(&e->rows[i])) y += LINE + (begins_part(e, i) ? LINE : 0);
    return y + 6;
}

static void draw_rows(const drawing *d)
{
    static const char *const parts[] = {
        "", "each alone",
        "each added to the one before, the optimizers to mixed precision",
        "another convention: the batch grows"};
    const eff *e = d->e;
    double y = TOP;

    for (size_t i = 0; i < e->n_rows; i++) {
        if (!shown(&e->rows[i])) continue;
        if (begins_part(e, i)) {
            text(d, LABEL, y + 14, " class=\"title\"", parts[e->rows[i].part]);
            y += LINE;
        }
        draw_row(d, &e->rows[i], y);
        y += LINE;
    }
}

void eff_picture(const eff *e, FILE *f, int file)
{
    drawing d = {.e = e, .f = f};
    const double h = height(e);

    lay_out(&d);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bars\" "
            "viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"Memory by kind, "
            "bytes, time and accuracy of each technique; the table has the "
            "same figures\"",
            WIDTH, h);
    if (file) fprintf(f, " width=\"%d\" height=\"%.0f\"", WIDTH, h);
    fputs("><style>", f);
    if (file) fputs(tac_page_colours(), f);
    fputs("svg.bars{font:12.5px system-ui,sans-serif;fill:var(--tac-ink);"
          "background:var(--tac-paper)}"
          "svg.bars text{fill:var(--tac-ink);paint-order:stroke;"
          "stroke:var(--tac-paper);stroke-width:3px}"
          "svg.bars .title{font-weight:600}"
          "svg.bars .sub{fill:var(--tac-grey)}"
          "svg.bars .grid{stroke:var(--tac-grey);fill:none}</style>\n",
          f);
    draw_baseline(&d, h - 4);
    draw_head(&d);
    draw_rows(&d);
    fputs("</svg>\n", f);
}

tac_status eff_write_svg(const eff *e, const char *path)
{
    FILE *f = fopen(path, "w");

    if (f) eff_picture(e, f, 1);
    if (f && !(ferror(f) | fclose(f))) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_IO, "cannot write %s: %s; check the folder",
                    path, strerror(errno));
}
