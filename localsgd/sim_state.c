/* sim_state.c: memory of a run: two arrays of units x cells, and clocks. */
#include <math.h>
#include <stdlib.h>

#include "sim_impl.h"

static double total_share(const tac_sim_config *c)
{
    double sum = 0;
    for (int64_t l = 0; l < c->layers; l++) sum += c->share ? c->share[l] : 1;
    return sum;
}

static void set_compute(tac__sim *s)
{
    const double sum = total_share(s->c), step = s->c->step_s;
    for (int64_t l = 0; l < s->c->layers; l++) {
        const double share = (s->c->share ? s->c->share[l] : 1) / sum;
        s->forward[l] = step / 3 * share;
        s->backward[l] = step * 2 / 3 * share;
    }
}

static tac_status allocate(tac__sim *s)
{
    const size_t n = (size_t)s->cells.n, units = (size_t)s->plan.units;
    const size_t layers = (size_t)s->c->layers;
    s->forward = calloc(layers, sizeof(double));
    s->backward = calloc(layers, sizeof(double));
    s->now = calloc(n, sizeof(double));
    s->ready = calloc(units * n, sizeof(double));
    s->late = calloc(units * n, sizeof(double));
    s->late_step = malloc(units * sizeof *s->late_step);
    int ok = s->forward && s->backward && s->now && s->ready && s->late &&
             s->late_step;
    for (int k = 0; k < s->cells.n_levels; k++) {
        s->channel[k] = calloc((size_t)s->cells.n_groups[k], sizeof(double));
        ok = ok && s->channel[k];
    }
    for (size_t u = 0; s->late_step && u < units; u++) s->late_step[u] = -1;
    return ok ? TAC_OK : TAC_ERR_NOMEM;
}

static int inner_jitter(const tac__sim *s)
{
    for (int k = 0; k + 1 < tac__sim_levels(s->c); k++)
        if (s->nets[k].jitter_s > 0) return 1;
    return 0;
}

static tac_status open_parts(tac_context *ctx, tac__sim *s)
{
    TAC_TRY(tac__sim_cells_make(ctx, s->c, inner_jitter(s), &s->cells));
    TAC_TRY(tac__sim_plan_make(ctx, s->c, &s->plan));
    if (allocate(s) < 0)
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "no memory to simulate %lld layers of %lld classes of "
                        "workers; simulate fewer layers or groups",
                        (long long)s->c->layers, (long long)s->cells.n);
    set_compute(s);
    return TAC_OK;
}

tac_status tac__sim_open(tac_context *ctx, const tac_sim_config *c,
                         const tac_sim_network *nets, tac__sim *s)
{
    *s = (tac__sim){.c = c, .nets = nets};
    const tac_status status = open_parts(ctx, s);
    if (status < 0) tac__sim_close(s);
    return status;
}

void tac__sim_close(tac__sim *s)
{
    for (int k = 0; k < s->cells.n_levels; k++) free(s->channel[k]);
    free(s->forward);
    free(s->backward);
    free(s->now);
    free(s->ready);
    free(s->late);
    free(s->late_step);
    tac__sim_plan_free(&s->plan);
    tac__sim_cells_free(&s->cells);
    *s = (tac__sim){0};
}
