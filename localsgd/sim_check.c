/* sim_check.c: everything that a simulation can't be, with what to change. */
#include <math.h>

#include "sim_impl.h"

#define FAIL(...) return tac_fail(ctx, TAC_ERR_ARG, __VA_ARGS__)

/* Written so that NaN is refused. */
static int is_time(double x)
{
    return x >= 0 && isfinite(x);
}

int tac__sim_levels(const tac_sim_config *c)
{
    const int local = c->method == TAC_SIM_LOCAL;
    return local && c->localsgd->n_levels > 0 ? c->localsgd->n_levels : 1;
}

static tac_status check_array(tac_context *ctx, const char *what,
                              const double *x, int64_t n, int whole)
{
    double sum = 0;
    for (int64_t i = 0; x && i < n; i++) {
        sum += x[i];
        if (!is_time(x[i]) || (whole && x[i] != floor(x[i])))
            FAIL("%s of layer %lld is %g; give a %s number, at least 0", what,
                 (long long)i, x[i], whole ? "whole" : "finite");
    }
    if (x && !(sum > 0))
        FAIL("%s of all layers is 0; one must have some", what);
    return TAC_OK;
}

static tac_status check_model(tac_context *ctx, const tac_sim_config *c)
{
    if (c->layers < 1 || c->layers > 1000000)
        FAIL("%lld layers can't be; give 1 to 1000000", (long long)c->layers);
    if (!(c->params > 0) || !isfinite(c->params))
        FAIL("%g parameters can't be; give a number above 0", c->params);
    if (!is_time(c->bits) || !is_time(c->codec_s))
        FAIL("%g bits and %g s of the codec a parameter can't be; give numbers "
             "that are at least 0",
             c->bits, c->codec_s);
    if (!(c->step_s > 0) || !isfinite(c->step_s))
        FAIL("a step of %g s can't be; give its compute time, above 0",
             c->step_s);
    TAC_TRY(check_array(ctx, "size", c->layer_params, c->layers, 1));
    return check_array(ctx, "share of compute", c->share, c->layers, 0);
}

static tac_status check_cluster(tac_context *ctx, const tac_sim_config *c)
{
    if (c->workers < 1 || c->workers > 10000000)
        FAIL("%lld workers can't be; give 1 to 10000000",
             (long long)c->workers);
    if (!(c->straggler_factor > 0) || !isfinite(c->straggler_factor))
        FAIL("a slow worker can't take %g times as long as others; 1 is as "
             "long",
             c->straggler_factor);
    if (!(c->straggler_share >= 0 && c->straggler_share <= 1))
        FAIL("a share of %g of the workers can't be slow; give 0 (one worker) "
             "to 1 (all)",
             c->straggler_share);
    if ((int)c->topology < 0 || c->topology > TAC_SIM_HALVING)
        FAIL("there is no topology %d; see tac_sim_topology", (int)c->topology);
    if ((int)c->sending < 0 || c->sending > TAC_SIM_AFTER_STEP)
        FAIL("there is no way of sending %d; see tac_sim_sending",
             (int)c->sending);
    return TAC_OK;
}

static tac_status check_method(tac_context *ctx, const tac_sim_config *c)
{
    if (c->method == TAC_SIM_DP) return TAC_OK;
    if (c->method != TAC_SIM_LOCAL)
        FAIL("there is no method %d; see tac_sim_method", (int)c->method);
    if (!c->localsgd)
        FAIL("local SGD needs a tac_localsgd_config; set `localsgd`");
    TAC_TRY(tac_localsgd_check(ctx, c->localsgd, (int)c->workers, c->layers));
    if (c->localsgd->schedule.kind == TAC_SYNC_ADACOMM)
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                        "adacomm depends on losses, which a simulation has "
                        "not; simulate fixed intervals or qsr");
    if (c->localsgd->total > 0 && c->steps > c->localsgd->total)
        FAIL("%lld steps of a run of %lld can't be simulated; lower `steps`",
             (long long)c->steps, (long long)c->localsgd->total);
    return TAC_OK;
}

tac_status tac__sim_check(tac_context *ctx, const tac_sim_config *c)
{
    if (c->struct_size != sizeof *c)
        FAIL("the simulation's configuration has %zu bytes instead of %zu; "
             "begin with TAC_SIM_CONFIG_INIT and build against this version",
             c->struct_size, sizeof *c);
    if (c->steps < 1 || c->steps > 1000000000)
        FAIL("%lld steps can't be simulated; give 1 to 1000000000",
             (long long)c->steps);
    TAC_TRY(check_model(ctx, c));
    TAC_TRY(check_cluster(ctx, c));
    return check_method(ctx, c);
}

tac_status tac__sim_check_nets(tac_context *ctx, const tac_sim_config *c,
                               const tac_sim_network *nets, int need_bits)
{
    const int levels = tac__sim_levels(c);
    for (int k = 0; k < levels; k++) {
        const tac_sim_network *n = &nets[k];
        const int read = need_bits || k < levels - 1;
        if (read && !(n->up_bits > 0 && n->down_bits > 0))
            FAIL("level %d: links of %g bits/s up and %g down can't be; give "
                 "numbers above 0 (infinite is one)",
                 k, n->up_bits, n->down_bits);
        if (!is_time(n->latency_s) || !is_time(n->jitter_s))
            FAIL("level %d: a latency of %g s with a jitter of %g s can't be; "
                 "give numbers that are at least 0",
                 k, n->latency_s, n->jitter_s);
    }
    return TAC_OK;
}
