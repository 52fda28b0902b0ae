/* sweep_page_front.c: bytes against error, with the front that nothing beats.
 */
#include <math.h>
#include <stdlib.h>

#include "sweep_page.h"

typedef struct place {
    double bytes, error;
} place;

static place place_of(const sweep_page *p, size_t of)
{
    return (place){
        tac__sweep_mean(p->s, of, offsetof(sweep_row, bytes_counted)).mean,
        1 - tac__sweep_accuracy(p->s, of).mean};
}

static int by_bytes(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* A staircase: with so many bytes, no error below was reached. */
static tac_status add_front(picture *k)
{
    const sweep_page *p = k->page;
    const tac_svg_series look = {
        .colour = -1, .dashed = 1, .marker = TAC_SVG_NO_MARKER};
    place *at = calloc(p->s->n_cases + 1, sizeof *at);
    size_t n = 0;
    if (!at) return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < p->s->n_cases; i++)
        if (p->front[i]) at[n++] = place_of(p, i);
    qsort(at, n, sizeof *at, by_bytes);
    tac__picture_line(k, "front", &look);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && at[i - 1].bytes > 0)
            tac__picture_point(k, at[i].bytes, at[i - 1].error, NAN, NAN, "%s",
                               "");
        tac__picture_point(k, at[i].bytes, at[i].error, NAN, NAN, "%s", "");
    }
    free(at);
    return TAC_OK;
}

static void add_group(picture *k, const sweep_group *g)
{
    const sweep_page *p = k->page;
    const tac_svg_series look = {
        .colour = g->colour, .marker = g->marker, .style = TAC_SVG_POINTS};
    char b[SWEEP_TEXT], e[SWEEP_TEXT];
    if (g->kind == SWEEP_ALONE) return; /* it has no place on the axis */
    tac__picture_line(k, g->name, &look);
    for (size_t i = 0; i < g->n; i++) {
        const place at = place_of(p, g->cases[i]);
        const sweep_mean m = tac__sweep_accuracy(p->s, g->cases[i]);
        tac__picture_point(
            k, at.bytes, at.error, m.n > 1 ? at.error - m.sd : NAN,
            m.n > 1 ? at.error + m.sd : NAN, "%.40s: %s a rank, error %s%s",
            p->s->cases[g->cases[i]].label, tac_page_bytes(at.bytes, b),
            tac_page_share(at.error, e),
            p->front[g->cases[i]] ? ", on the front" : "");
    }
}

static void error_span(const sweep_page *p, tac_svg_axis *y)
{
    double low = INFINITY, high = -INFINITY;
    const double most = 1 - tac__sweep_standard(p) + 0.1;
    for (size_t i = 0; i < p->s->n_cases; i++) {
        const double e = place_of(p, i).error,
                     sd = tac__sweep_accuracy(p->s, i).sd;
        if (!isfinite(e) || e > most) continue;
        low = fmin(low, e - sd);
        high = fmax(high, fmin(e + sd, most));
    }
    if (!(low <= high)) return;
    const double room = fmax(0.06 * (high - low), 1e-4);
    y->from = low - room;
    y->to = high + room;
}

tac_status tac__picture_front(picture *k)
{
    const sweep_page *p = k->page;
    k->panel.title =
        tac__sweep_tested(p->s) ? "test error" : "validation error";
    k->panel.x = (tac_svg_axis){.label = "bytes a rank sends in all",
                                .log = 1,
                                .unit = TAC_SVG_UNIT_TRAFFIC};
    k->panel.y = (tac_svg_axis){
        .label = "error", .unit = TAC_SVG_UNIT_PERCENT, .tight = 1};
    error_span(p, &k->panel.y);
    TAC_TRY(add_front(k));
    for (size_t i = 0; i < p->n_groups; i++) add_group(k, &p->groups[i]);
    return TAC_OK;
}

tac_status tac__page_front(sweep_page *p)
{
    picture k = {.page = p, .panel = {.width = 560, .height = 340}};
    tac__page_html(p, "<figure id=\"front\"><figcaption><h3>Bytes against error"
                      "</h3><p>Means over seeds with sample standard "
                      "deviations. What lies on the front is beaten by nothing "
                      "in both. A case that sent nothing can't be drawn on a "
                      "logarithmic axis.</p></figcaption>\n"
                      "<div class=\"large\">\n");
    tac_status status = tac__picture_front(&k);
    if (status >= 0)
        status = tac__picture_draw(
            &k, "Bytes a rank sends against error, a point for each case, and "
                "the Pareto front");
    tac__picture_legend(&k);
    tac__picture_free(&k);
    tac__page_html(p, "</div></figure>\n");
    return status;
}
