/* Everything that changed in the course of training, against steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_page_impl.h"
#include "tacit/svg.h"

/* A line of a picture: values of a key in lines of a kind. */
typedef struct curve {
    const char *name, *kind, *key;
    int colour, dashed;
} curve;

typedef struct picture {
    const char *title, *label; /* label: of the y axis, with its unit */
    curve curves[2];
    int log;
    tac_svg_unit unit;
    int skips; /* steps that were skipped are marked on the first curve */
} picture;

static const picture pictures[] = {
    {"Loss",
     "mean cross-entropy",
     {{"training", "train", "loss", 0, 0},
      {"validation", "eval", "eval_loss", 1, 1}},
     0,
     TAC_SVG_UNIT_NONE,
     0},
    {"Accuracy",
     "of samples",
     {{"training", "train", "accuracy", 0, 0},
      {"validation", "eval", "eval_accuracy", 1, 1}},
     0,
     TAC_SVG_UNIT_PERCENT,
     0},
    {"Learning rate", "", {{NULL, "train", "learning_rate", 2, 0}}, 0, 0, 0},
    {"Gradient norm",
     "2-norm, unscaled, before clipping",
     {{NULL, "train", "grad_norm", 3, 0}},
     0,
     0,
     0},
    {"Loss scale",
     "K: 1024; triangles: after skipped steps",
     {{NULL, "train", "loss_scale", 4, 0}},
     1,
     TAC_SVG_UNIT_BYTES,
     1},
    {"Throughput",
     "samples/s",
     {{NULL, "train", "samples_per_s", 5, 0}},
     0,
     0,
     0},
};

/* Values of one curve; arrays are one allocation, of at least one entry. */
typedef struct points {
    double *x, *y;
    size_t n;
} points;

static tac_status collect(const tac__report_page *p, const curve *c,
                          points *out)
{
    out->n = 0;
    out->x = calloc(2 * (p->n + 1), sizeof *out->x);
    if (!out->x)
        return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for a picture");
    out->y = out->x + p->n + 1;
    for (size_t i = 0; i < p->n && c->key; i++) {
        const json_t *line = p->lines[i];
        const char *kind = json_string_value(json_object_get(line, "kind"));
        const double x = tac__report_value(line, "attempts");
        const double y = tac__report_value(line, c->key);
        if (!kind || strcmp(kind, c->kind) != 0) continue;
        if (!isfinite(x) || !isfinite(y)) continue;
        out->x[out->n] = x;
        out->y[out->n++] = y;
    }
    return TAC_OK;
}

/* Where the running total of skipped steps rose: the scale that followed. */
static tac_status collect_skips(const tac__report_page *p, points *out)
{
    const curve none = {NULL, NULL, NULL, 0, 0};
    double before = 0;

    TAC_TRY(collect(p, &none, out));
    for (size_t i = 0; i < p->n; i++) {
        const json_t *line = p->lines[i];
        const double total = tac__report_value(line, "skipped_steps");
        const double x = tac__report_value(line, "attempts");
        const double y = tac__report_value(line, "loss_scale");

        if (!isfinite(total)) continue;
        if (total > before && isfinite(x) && isfinite(y)) {
            out->x[out->n] = x;
            out->y[out->n++] = y;
        }
        before = total;
    }
    return TAC_OK;
}

static int is_constant(const points *v)
{
    for (size_t i = 1; i < v->n; i++)
        if (v->y[i] != v->y[0]) return 0;
    return 1;
}

static tac_svg_series series_of(const curve *c, const points *v)
{
    return (tac_svg_series){.name = c->name,
                            .n = v->n,
                            .x = v->x,
                            .y = v->y,
                            .colour = c->colour,
                            .dashed = c->dashed,
                            .marker = v->n > 40 ? TAC_SVG_NO_MARKER
                                                : TAC_SVG_MARKER_AUTO};
}

static void draw(const tac__report_page *p, const picture *k,
                 const tac_svg_series *series, size_t n)
{
    const tac_svg_panel panel = {
        .title = k->title,
        .subtitle = *k->label ? k->label : NULL,
        .x = {.label = "step"},
        .y = {.label = "", .log = k->log, .unit = k->unit},
        .series = series,
        .n = n};
    char label[100];

    snprintf(label, sizeof label, "%s against steps", k->title);
    fputs("<div>", p->f);
    tac_svg_inline(p->f, &panel, label);
    if (series[0].name && n > 1) {
        fputs("<ul class=\"legend\">", p->f);
        for (size_t i = 0; i < n; i++) {
            fputs("<li>", p->f);
            tac_svg_inline_key(p->f, &series[i]);
            tac_page_print(p->f, " %s", series[i].name);
            fputs("</li>", p->f);
        }
        fputs("</ul>", p->f);
    }
    fputs("</div>\n", p->f);
}

/* A constant loss scale or one without values is no picture. */
static int is_worth(const picture *k, const points v[3])
{
    if (v[0].n + v[1].n == 0) return 0;
    return !k->skips || !is_constant(&v[0]) || v[2].n > 0;
}

static tac_status put_picture(const tac__report_page *p, const picture *k)
{
    points v[3] = {{NULL, NULL, 0}, {NULL, NULL, 0}, {NULL, NULL, 0}};
    tac_svg_series series[3];
    size_t n = 0;
    tac_status s = collect(p, &k->curves[0], &v[0]);

    if (s >= 0) s = collect(p, &k->curves[1], &v[1]);
    if (s >= 0 && k->skips) s = collect_skips(p, &v[2]);
    if (s >= 0 && is_worth(k, v)) {
        for (size_t i = 0; i < 2; i++)
            if (v[i].n) series[n++] = series_of(&k->curves[i], &v[i]);
        if (v[2].n)
            series[n++] = (tac_svg_series){.n = v[2].n,
                                           .x = v[2].x,
                                           .y = v[2].y,
                                           .colour = 1,
                                           .style = TAC_SVG_POINTS,
                                           .marker = TAC_SVG_DOWN};
        draw(p, k, series, n);
    }
    for (size_t i = 0; i < 3; i++) free(v[i].x);
    return s;
}

tac_status tac__report_page_curves(const tac__report_page *p)
{
    fputs("<h2>Course</h2>\n", p->f);
    if (p->n == 0) {
        fputs("<p class=\"note\">There is no metrics.jsonl, hence nothing to "
              "draw.</p>\n",
              p->f);
        return TAC_OK;
    }
    fputs(
        "<p>Losses and accuracies of training are means over the interval "
        "between two lines of metrics.jsonl, while parameters changed; those "
        "of validation are of the parameters at that step. Steps are attempts:"
        " skipped ones count.",
        p->f);
    if (p->all > p->n + p->damaged)
        tac_page_print(p->f, " %zu of %zu lines are drawn.", p->n, p->all);
    fputs("</p>\n<div class=\"panels\">\n", p->f);
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        TAC_TRY(put_picture(p, &pictures[i]));
    fputs("</div>\n", p->f);
    return TAC_OK;
}
