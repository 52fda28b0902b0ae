/* svg_axis.c: from values to pixels. */
#include "svg_impl.h"

#include <math.h>

/* One axis while its range is looked for. */
typedef struct range {
    const tac_svg_axis *axis;
    double low, high;
} range;

static int drawable(const tac_svg_axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static double along(const tac_svg_axis *a, double v)
{
    return a->log ? log10(v) : v;
}

static int is_fixed(const tac_svg_axis *a)
{
    return a->from != a->to;
}

int tac__svg_beyond(const tac_svg_axis *a, double v)
{
    if (!is_fixed(a) || isnan(v)) return 0;
    return v < a->from ? -1 : v > a->to;
}

static double clamped(const tac_svg_axis *a, double v)
{
    if (!is_fixed(a)) return v;
    return fmin(fmax(v, a->from), a->to);
}

/* ---- the range -------------------------------------------------------------
 */

static void include(range *r, double v)
{
    if (!drawable(r->axis, v)) return;
    v = along(r->axis, v);
    if (!(r->low <= v)) r->low = v;
    if (!(r->high >= v)) r->high = v;
}

double tac__svg_area_end(const tac_svg_series *s)
{
    if (s->n < 2) return s->n ? s->x[0] + 1 : 0;
    return 2 * s->x[s->n - 1] - s->x[s->n - 2];
}

static void include_series(range *x, range *y, const tac_svg_series *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (drawable(x->axis, s->x[i]) && drawable(y->axis, s->y[i])) {
            include(x, s->x[i]);
            include(y, s->y[i]);
            if (s->low) include(y, s->low[i]);
            if (s->high) include(y, s->high[i]);
        }
    if (s->style == TAC_SVG_AREA && s->n) {
        include(x, tac__svg_area_end(s));
        include(y, s->base);
    }
}

static void include_mark(range *x, range *y, const tac_svg_mark *m)
{
    if (!m->across) {
        include(x, m->x);
        return;
    }
    include(y, m->y);
    if (m->low < m->high) {
        include(y, m->low);
        include(y, m->high);
    }
}

/* Room at the ends; linear axes begin at 0, those of names have their own. */
static void widen(range *r)
{
    const tac_svg_axis *a = r->axis;
    if (is_fixed(a)) {
        r->low = along(a, a->from);
        r->high = along(a, a->to);
        return;
    }
    if (!isfinite(r->low) || !isfinite(r->high)) r->low = r->high = 0;
    if (a->names) {
        r->low = 0;
        r->high = a->n_names ? (double)a->n_names : 1;
        return;
    }
    if (!a->log && !a->tight && r->low > 0) r->low = 0;
    double room = (r->high - r->low) * 0.04;
    if (room <= 0) room = a->log ? 0.5 : a->tight ? fabs(r->low) * 0.05 : 1;
    if (room <= 0) room = 1;
    if (a->log || a->tight) r->low -= room;
    r->high += room;
}

void tac__svg_scale(const tac_svg_panel *p, tac__svg_plot *plot)
{
    range x = {&p->x, NAN, NAN}, y = {&p->y, NAN, NAN};
    for (size_t i = 0; i < p->n; i++) include_series(&x, &y, &p->series[i]);
    for (size_t i = 0; i < p->n_marks; i++) include_mark(&x, &y, &p->marks[i]);
    widen(&x);
    widen(&y);
    plot->x = &p->x;
    plot->y = &p->y;
    plot->x_low = x.low;
    plot->x_high = x.high;
    plot->y_low = y.low;
    plot->y_high = y.high;
}

/* ---- pixels ----------------------------------------------------------------
 */

int tac__svg_drawable(const tac__svg_plot *plot, double x, double y)
{
    return drawable(plot->x, x) && drawable(plot->y, y);
}

double tac__svg_x(const tac__svg_plot *plot, double x)
{
    const double share = (along(plot->x, clamped(plot->x, x)) - plot->x_low) /
                         (plot->x_high - plot->x_low);
    return plot->left + share * plot->width;
}

double tac__svg_y(const tac__svg_plot *plot, double y)
{
    const double share = (along(plot->y, clamped(plot->y, y)) - plot->y_low) /
                         (plot->y_high - plot->y_low);
    return plot->top + (1 - share) * plot->height;
}
