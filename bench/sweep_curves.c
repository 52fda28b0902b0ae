/* sweep_curves.c: how the validation loss of a case fell, mean over its seeds,
 * against everything that it may be drawn over. */
#include <math.h>
#include <stdlib.h>

#include "sweep_page.h"

/* The row whose evaluations the others of the case are compared with. */
static const sweep_row *longest(const sweep *s, size_t of)
{
    const sweep_row *found = NULL;
    for (size_t i = 0; i < s->n_rows; i++) {
        const sweep_row *row = &s->rows[i];
        if (row->of != of || row->n_evals == 0 || !row->evals) continue;
        if (!found || row->n_evals > found->n_evals) found = row;
    }
    return found;
}

static tac_status allocate(const sweep *s, sweep_curve *c, size_t n)
{
    const size_t networks = (size_t)s->n_networks;
    double *at = calloc((5 + networks) * n + 1, sizeof *at);
    if (!at)
        return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory for %zu evaluations",
                        n);
    *c = (sweep_curve){n,          at,         at + n,     at + 2 * n,
                       at + 3 * n, at + 4 * n, at + 5 * n, at};
    return TAC_OK;
}

/* Evaluation i over all seeds that made it at the same step. */
static void fill_point(const sweep *s, size_t of, const run_point *at, size_t i,
                       sweep_curve *c)
{
    double loss = 0, bytes = 0, low = INFINITY, high = -INFINITY;
    size_t n = 0;
    for (size_t k = 0; k < s->n_rows; k++) {
        const sweep_row *row = &s->rows[k];
        if (row->of != of || row->n_evals <= i) continue;
        const run_point *e = &row->evals[i];
        if (e->step != at->step || !isfinite(e->loss)) continue;
        loss += e->loss;
        bytes += e->bytes;
        low = fmin(low, e->loss);
        high = fmax(high, e->loss);
        n++;
    }
    c->loss[i] = n ? loss / (double)n : NAN;
    c->low[i] = n ? low : NAN;
    c->high[i] = n ? high : NAN;
    c->bytes[i] =
        n ? bytes / (double)n / (double)(s->world > 0 ? s->world : 1) : NAN;
}

static tac_status make_curve(const sweep *s, size_t of, sweep_curve *c)
{
    const sweep_row *row = longest(s, of);
    const int64_t a = s->cases[of].accumulate;
    if (!row) return TAC_OK;
    TAC_TRY(allocate(s, c, row->n_evals));
    for (size_t i = 0; i < c->n; i++) {
        c->steps[i] = (double)row->evals[i].step * (double)(a > 0 ? a : 1);
        fill_point(s, of, &row->evals[i], i, c);
    }
    return tac__sweep_model_evals(s, row, c->modelled);
}

tac_status tac__sweep_curves(sweep_page *p)
{
    p->curves = calloc(p->s->n_cases + 1, sizeof *p->curves);
    if (!p->curves)
        return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory for %zu cases",
                        p->s->n_cases);
    for (size_t i = 0; i < p->s->n_cases; i++)
        TAC_TRY(make_curve(p->s, i, &p->curves[i]));
    return TAC_OK;
}

void tac__sweep_curves_free(sweep_page *p)
{
    for (size_t i = 0; p->curves && i < p->s->n_cases; i++)
        free(p->curves[i].memory);
    free(p->curves);
}
