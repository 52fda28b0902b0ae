/* sim_run.c: a run of all steps, and the search for the bandwidth that a
 * utilisation needs. */
#include <math.h>
#include <string.h>

#include "sim_impl.h"

/* When the last worker is done and everything has arrived. */
static double end_of_run(const tac__sim *s)
{
    double end = 0;
    for (int64_t i = 0; i < s->cells.n; i++) end = fmax(end, s->now[i]);
    for (int k = 0; k < s->cells.n_levels; k++)
        for (int64_t g = 0; g < s->cells.n_groups[k]; g++)
            end = fmax(end, s->channel[k][g]);
    return end;
}

static double slowest(const tac__sim *s)
{
    double factor = 0;
    for (int64_t i = 0; i < s->cells.n; i++)
        factor = fmax(factor, s->cells.factor[i]);
    return factor;
}

static void sum_up(const tac__sim *s, tac_sim_result *out)
{
    out->total_s = end_of_run(s);
    out->compute_s = (double)s->c->steps * s->c->step_s;
    /* Sums of many layers differ in the last digits. */
    out->exposed_s = fmax(0, out->total_s - out->compute_s * slowest(s));
    out->utilisation = out->compute_s / out->total_s;
    out->bits_sent = s->bits_sent;
    out->bits_link = s->bits_link;
    out->bits_peak = s->bits_peak;
    out->syncs = s->syncs;
    out->classes = s->cells.n;
}

/* Checked before. */
static tac_status run(tac_context *ctx, const tac_sim_config *c,
                      const tac_sim_network *nets, const char *trace,
                      int64_t trace_steps, tac_sim_result *out)
{
    tac__sim s;
    tac__sim_trace t = {0};
    tac_status status = tac__sim_open(ctx, c, nets, &s);
    if (status < 0) return status;
    if (trace) status = tac__sim_trace_open(ctx, &s, trace, trace_steps, &t);
    if (status < 0) goto done;
    if (trace) s.trace = &t;
    while (s.step < c->steps) tac__sim_step(&s);
    if (c->finish) tac__sim_finish(&s);
    sum_up(&s, out);
    if (trace) status = tac__sim_trace_close(ctx, &t);
done:
    tac__sim_close(&s);
    return status;
}

tac_status tac_sim_run(tac_context *ctx, const tac_sim_config *c,
                       const tac_sim_network *nets, const char *trace,
                       int64_t trace_steps, tac_sim_result *out)
{
    tac_sim_result result;
    TAC_TRY(tac__sim_check(ctx, c));
    TAC_TRY(tac__sim_check_nets(ctx, c, nets, 1));
    TAC_TRY(run(ctx, c, nets, trace, trace_steps, &result));
    *out = result;
    return TAC_OK;
}

static tac_status check_search(tac_context *ctx, const double *targets, int n,
                               const double *grid, int g)
{
    for (int i = 0; i < n; i++)
        if (!(targets[i] > 0 && targets[i] <= 1))
            return tac_fail(ctx, TAC_ERR_ARG,
                            "a utilisation of %g can't be reached; give "
                            "numbers above 0, up to 1",
                            targets[i]);
    for (int i = 0; i < g; i++)
        if (!(grid[i] > 0) || (i > 0 && !(grid[i] > grid[i - 1])))
            return tac_fail(ctx, TAC_ERR_ARG,
                            "bandwidth %d of the grid is %g bits/s; they must "
                            "be above 0 and ascend",
                            i, grid[i]);
    return TAC_OK;
}

/* Returns how many targets still have no bandwidth. */
static int settle(const double *targets, int n, double reached, double bits,
                  double *out)
{
    int open = 0;
    for (int i = 0; i < n; i++) {
        if (isinf(out[i]) && reached >= targets[i]) out[i] = bits;
        open += isinf(out[i]) != 0;
    }
    return open;
}

tac_status tac_sim_required(tac_context *ctx, const tac_sim_config *c,
                            const tac_sim_network *nets, const double *targets,
                            int n, const double *grid, int g, double *out)
{
    tac_sim_network with[TAC_LOCALSGD_LEVELS];
    tac_sim_result r;
    int open = n;
    TAC_TRY(tac__sim_check(ctx, c));
    TAC_TRY(tac__sim_check_nets(ctx, c, nets, 0));
    TAC_TRY(check_search(ctx, targets, n, grid, g));
    const int levels = tac__sim_levels(c);
    memcpy(with, nets, (size_t)levels * sizeof *with);
    for (int i = 0; i < n; i++) out[i] = INFINITY;
    for (int i = 0; i < g && open > 0; i++) {
        with[levels - 1].up_bits = with[levels - 1].down_bits = grid[i];
        TAC_TRY(run(ctx, c, with, NULL, 0, &r));
        open = settle(targets, n, r.utilisation, grid[i], out);
    }
    return TAC_OK;
}
