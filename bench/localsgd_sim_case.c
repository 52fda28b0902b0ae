/* localsgd_sim_case.c: from options to what the simulator takes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sim.h"

/* "8:10,64:100" */
static tac_status read_levels(tac_context *ctx, const char *text,
                              tac_localsgd_config *c)
{
    const char *at = text;
    while (at && *at) {
        tac_sync_level *l = &c->levels[c->n_levels];
        long long every = 0;
        int used = 0;
        if (c->n_levels == TAC_LOCALSGD_LEVELS)
            return tac_fail(ctx, TAC_ERR_ARG,
                            "levels '%s': more than %d; leave some out", text,
                            TAC_LOCALSGD_LEVELS);
        if (sscanf(at, "%d:%lld%n", &l->ranks, &every, &used) < 2 ||
            (at[used] != ',' && at[used] != 0))
            return tac_fail(ctx, TAC_ERR_ARG,
                            "levels '%s': can't read '%s'; write "
                            "WORKERS:STEPS,..., inner first: 8:10,64:100",
                            text, at);
        l->every = every;
        c->n_levels++;
        at += used + (at[used] == ',');
    }
    return TAC_OK;
}

static tac_status set_method(const tac__sim_bench *b, tac__sim_case *k)
{
    const tac__sim_options *o = b->opt;
    tac_localsgd_config *c = &k->localsgd;
    if (strcmp(o->method, "dp") == 0) {
        k->sim.method = TAC_SIM_DP;
        if (o->levels)
            return tac_fail(b->ctx, TAC_ERR_ARG,
                            "dp sends to all workers; levels are for local, "
                            "diloco and streaming");
        return TAC_OK;
    }
    TAC_TRY(tac_localsgd_preset(b->ctx, o->method, o->sync_every, c));
    c->schedule.start = o->start;
    c->delay = o->overlap;
    c->codec = o->codec;
    if (strcmp(o->method, "streaming") == 0) {
        c->fragments = o->layers / o->fragment_layers;
        if (c->fragments < 1) c->fragments = 1;
    }
    k->sim.method = TAC_SIM_LOCAL;
    k->sim.localsgd = c;
    return read_levels(b->ctx, o->levels, c);
}

static void set_sim(const tac__sim_options *o, tac_sim_config *s)
{
    *s = (tac_sim_config)TAC_SIM_CONFIG_INIT;
    s->layers = o->layers;
    s->params = o->params;
    s->bits = o->codec ? 0 : o->bits;
    s->step_s = o->step_seconds;
    s->codec_s = o->codec_seconds;
    s->workers = o->workers;
    s->straggler_factor = o->straggler;
    s->straggler_share = o->straggler_share;
    s->finish = o->finish;
    s->seed = (uint64_t)o->seed;
    if (strcmp(o->sending, "after-step") == 0) s->sending = TAC_SIM_AFTER_STEP;
    if (strcmp(o->topology, "ring") == 0) s->topology = TAC_SIM_RING;
    if (strcmp(o->topology, "halving") == 0) s->topology = TAC_SIM_HALVING;
}

static tac_status set_nets(const tac__sim_bench *b, tac__sim_case *k)
{
    const tac__sim_options *o = b->opt;
    const int levels = k->sim.method == TAC_SIM_DP ? 0 : k->localsgd.n_levels;
    k->outermost = levels > 0 ? levels - 1 : 0;
    for (int i = 0; i < k->outermost; i++)
        TAC_TRY(tac_sim_network_find(b->ctx, o->inner_network, &k->nets[i]));
    tac_sim_network *n = &k->nets[k->outermost];
    n->down_bits = o->bandwidth * 1e9;
    n->up_bits = isnan(o->up_bandwidth) ? n->down_bits : o->up_bandwidth * 1e9;
    n->latency_s = isnan(o->latency) ? 0 : o->latency;
    n->jitter_s = o->jitter;
    return TAC_OK;
}

int64_t tac__sim_interval(const tac__sim_case *k)
{
    if (k->sim.method == TAC_SIM_DP) return 1;
    return k->localsgd.n_levels > 0 ? k->localsgd.levels[k->outermost].every
                                    : k->localsgd.schedule.every;
}

int64_t tac__sim_steps(const tac__sim_options *o, int64_t every)
{
    if (o->steps > 0) return o->steps;
    return every > 100 ? 10 * every : 1000;
}

tac_status tac__sim_case_make(const tac__sim_bench *b, tac__sim_case *out)
{
    memset(out, 0, sizeof *out);
    set_sim(b->opt, &out->sim);
    TAC_TRY(set_method(b, out));
    TAC_TRY(set_nets(b, out));
    out->sim.steps = tac__sim_steps(b->opt, tac__sim_interval(out));
    if (b->opt->model)
        snprintf(out->model, sizeof out->model, "%s", b->opt->model);
    else
        tac__sim_size_text(b->opt->params, out->model, sizeof out->model);
    return TAC_OK;
}

tac_status tac__sim_targets(const tac__sim_bench *b,
                            double out[TAC__SIM_TARGETS], int *n)
{
    const char *at = b->opt->targets;
    char *end;
    *n = 0;
    while (*at) {
        const double x = strtod(at, &end);
        if (end == at || (*end != ',' && *end != 0) || !(x > 0 && x <= 100))
            return tac_fail(b->ctx, TAC_ERR_ARG,
                            "targets '%s': can't use '%s'; give percentages "
                            "above 0, up to 100, with commas",
                            b->opt->targets, at);
        if (*n == TAC__SIM_TARGETS)
            return tac_fail(b->ctx, TAC_ERR_ARG,
                            "more than %d targets; leave some out",
                            TAC__SIM_TARGETS);
        out[(*n)++] = x / 100;
        at = end + (*end == ',');
    }
    if (*n > 0) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_ARG, "no targets; give 50,80,90");
}

void tac__sim_grid(double out[TAC__SIM_GRID])
{
    for (int i = 0; i < TAC__SIM_GRID; i++)
        out[i] = 1e9 * pow(10, -1 + 4 * i / (double)(TAC__SIM_GRID - 1));
}
