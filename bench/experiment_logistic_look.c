/* experiment_logistic_look.c: what the workers' iterate is worth.
 *
 * By linearity the weighted average of the workers' mean iterates is the mean
 * of the workers' own weighted averages: a look costs two small collectives,
 * and nothing is sent between looks but what localsgd sends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment_logistic_worker.h"

double logistic_origin(const logistic_run *r, size_t j)
{
    return r->from_best ? r->p->best[j] : 0;
}

static tac_status add_up(logistic_worker *w, double *x, size_t n)
{
    tac_req *req = NULL;
    TAC_TRY(tac_allreduce(w->comm, x, x, n, TAC_F64, TAC_SUM, NULL, &req));
    return tac_wait(req, 0);
}

/* The iterate in question, the same on all workers. */
static tac_status combine(logistic_worker *w)
{
    const size_t d = w->r->p->d;
    const double size = tac_comm_size(w->comm);
    for (size_t j = 0; j < d; j++)
        w->look[j] =
            (w->r->averaged ? w->sum[j] / w->weight : (double)w->x[j]) / size;
    TAC_TRY(add_up(w, w->look, d));
    for (size_t j = 0; j < d; j++) w->look[j] += logistic_origin(w->r, j);
    return TAC_OK;
}

/* Each worker has a share of the rows. */
static tac_status gap_of(logistic_worker *w, double *gap)
{
    const logistic *p = w->r->p;
    const size_t rank = (size_t)w->rank, size = (size_t)tac_comm_size(w->comm);
    double squares = 0;
    *gap = logistic_loss_sum(p, w->look, p->n * rank / size,
                             p->n * (rank + 1) / size);
    TAC_TRY(add_up(w, gap, 1));
    for (size_t j = 0; j < p->d; j++) squares += w->look[j] * w->look[j];
    *gap = *gap / (double)p->n + p->lambda / 2 * squares - p->f_best;
    return TAC_OK;
}

static tac_status keep_look(logistic_worker *w, int64_t t, double gap)
{
    logistic_outcome *o = w->out;
    if (w->rank != 0) return TAC_OK;
    if (o->n_looks == w->cap_looks) {
        const size_t cap = w->cap_looks ? 2 * w->cap_looks : 64;
        logistic_look *more = realloc(o->looks, cap * sizeof *more);
        if (!more) return tac_fail(w->r->p->ctx, TAC_ERR_NOMEM, "no memory");
        o->looks = more;
        w->cap_looks = cap;
    }
    o->looks[o->n_looks++] = (logistic_look){t, gap};
    memcpy(o->mean, w->look, w->r->p->d * sizeof *o->mean);
    return TAC_OK;
}

/* Where a line through the last two looks, both scales logarithmic, meets the
 * target. */
static double meeting(const logistic_worker *w, int64_t t, double gap)
{
    if (w->last_look == 0 || !(w->last_gap > gap)) return (double)t;
    const double share =
        log(w->last_gap / w->r->target) / log(w->last_gap / fmax(gap, 1e-300));
    return (double)w->last_look *
           pow((double)t / (double)w->last_look, fmin(share, 1));
}

static int has_settled(logistic_worker *w)
{
    double moved = 0, away = 0;
    for (size_t j = 0; j < w->r->p->d; j++) {
        const double m = w->look[j] - w->old[j];
        const double a = w->look[j] - w->r->p->best[j];
        moved += m * m;
        away += a * a;
    }
    memcpy(w->old, w->look, w->r->p->d * sizeof *w->old);
    return w->last_look > 0 && sqrt(moved) <= w->r->settled * sqrt(away);
}

void logistic_plan_look(logistic_worker *w, int64_t t)
{
    const int64_t every = w->r->look_every;
    w->next_look = every ? t + every : t < 16 ? 16 : t + t / 10;
}

tac_status logistic_look_now(logistic_worker *w, int64_t t, int *stop)
{
    double gap;
    TAC_TRY(combine(w));
    TAC_TRY(gap_of(w, &gap));
    TAC_TRY(keep_look(w, t, gap));
    if (w->r->target > 0 && gap <= w->r->target) {
        if (w->rank == 0) w->out->reached = meeting(w, t, gap);
        *stop = 1;
    }
    if (w->r->settled > 0 && has_settled(w)) {
        if (w->rank == 0) w->out->settled = 1;
        *stop = 1;
    }
    if (!(gap < 1e6)) *stop = 1; /* it runs away */
    w->last_gap = gap;
    w->last_look = t;
    logistic_plan_look(w, t);
    return TAC_OK;
}
