/* localsgd_sim_model.c: one model and method: the bandwidth that utilisations
 * need, or what networks reach. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "localsgd_sim.h"

static void print_head(const tac__sim_bench *b, const tac__sim_case *k)
{
    char bits[64];
    if (b->opt->quiet) return;
    if (k->sim.bits > 0)
        snprintf(bits, sizeof bits, "%g bits a parameter%s", k->sim.bits,
                 k->sim.bits == TAC__SIM_FITTED_BITS ? " (fitted)" : "");
    else
        snprintf(bits, sizeof bits, "%s",
                 k->sim.method == TAC_SIM_DP ? "f32" : b->opt->codec);
    printf("%s: %g parameters, %lld layers, %g s a step; %s", k->model,
           k->sim.params, (long long)k->sim.layers, k->sim.step_s,
           b->opt->method);
    if (k->sim.method == TAC_SIM_LOCAL)
        printf(" every %lld, overlap %lld", (long long)tac__sim_interval(k),
               (long long)k->localsgd.delay);
    printf(", %s\n%lld workers, %s, %lld steps\n\n", bits,
           (long long)k->sim.workers, b->opt->topology,
           (long long)k->sim.steps);
}

/* ---- bandwidth needed ------------------------------------------------------
 */

static tac_status needed(tac__sim_bench *b, const tac__sim_case *k)
{
    double targets[TAC__SIM_TARGETS], grid[TAC__SIM_GRID];
    double bits[TAC__SIM_TARGETS];
    char text[32];
    int n;
    if (b->opt->trace)
        return tac_fail(b->ctx, TAC_ERR_ARG,
                        "a trace is of one network; give --bandwidth or one "
                        "--network, too");
    TAC_TRY(tac__sim_targets(b, targets, &n));
    tac__sim_grid(grid);
    TAC_TRY(tac_sim_required(b->ctx, &k->sim, k->nets, targets, n, grid,
                             TAC__SIM_GRID, bits));
    print_head(b, k);
    if (!b->opt->quiet) printf("%-12s %10s\n", "utilisation", "Gbit/s");
    for (int i = 0; i < n; i++) {
        tac__sim_row_begin(b->json, k->model, b->opt->method,
                           tac__sim_interval(k));
        tac_json_f64(b->json, "target", targets[i] * 100);
        tac_json_f64(b->json, "gbps", bits[i] / 1e9);
        tac_json_end_object(b->json);
        if (!b->opt->quiet)
            printf("%10g %% %10s\n", targets[i] * 100,
                   tac__sim_gbps_text(bits[i], text, sizeof text));
    }
    return TAC_OK;
}

/* ---- what networks reach
 * ----------------------------------------------------- */

static void write_reached(tac__sim_bench *b, const tac__sim_case *k,
                          const char *name, const tac_sim_result *r)
{
    const tac_sim_network *n = &k->nets[k->outermost];
    tac_json *j = b->json;
    tac__sim_row_begin(j, k->model, b->opt->method, tac__sim_interval(k));
    tac_json_null(j, "target");
    tac_json_f64(j, "gbps", fmin(n->up_bits, n->down_bits) / 1e9);
    tac_json_str(j, "network", name);
    tac_json_f64(j, "latency_s", n->latency_s);
    tac_json_f64(j, "utilisation", r->utilisation);
    tac_json_f64(j, "total_s", r->total_s);
    tac_json_f64(j, "compute_s", r->compute_s);
    tac_json_f64(j, "exposed_s", r->exposed_s);
    tac_json_f64(j, "bits_sent", r->bits_sent);
    tac_json_f64(j, "bits_link", r->bits_link);
    tac_json_f64(j, "bits_peak", r->bits_peak);
    tac_json_i64(j, "syncs", r->syncs);
    tac_json_end_object(j);
}

static tac_status reach(tac__sim_bench *b, const tac__sim_case *k,
                        const char *name)
{
    const tac_sim_network *n = &k->nets[k->outermost];
    tac_sim_result r;
    TAC_TRY(tac_sim_run(b->ctx, &k->sim, k->nets, b->opt->trace,
                        b->opt->trace_steps, &r));
    write_reached(b, k, name, &r);
    if (b->opt->quiet) return TAC_OK;
    printf("%-10s %10.4g %10.3g %9.2f %% %12.6g %12.6g %12.4g\n", name,
           fmin(n->up_bits, n->down_bits) / 1e9, n->latency_s,
           100 * r.utilisation, r.total_s / (double)k->sim.steps,
           r.exposed_s / (double)k->sim.steps,
           r.bits_link / 8 / (double)k->sim.steps);
    return TAC_OK;
}

static tac_status use_network(tac__sim_bench *b, tac__sim_case *k,
                              const char *name)
{
    tac_sim_network *n = &k->nets[k->outermost];
    const double jitter = n->jitter_s;
    TAC_TRY(tac_sim_network_find(b->ctx, name, n));
    if (!isnan(b->opt->latency)) n->latency_s = b->opt->latency;
    n->jitter_s = jitter;
    return reach(b, k, name);
}

static tac_status all_networks(tac__sim_bench *b, tac__sim_case *k)
{
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        TAC_TRY(use_network(b, k, e->name));
    return TAC_OK;
}

static tac_status listed_networks(tac__sim_bench *b, tac__sim_case *k)
{
    char names[256], *rest = NULL;
    snprintf(names, sizeof names, "%s", b->opt->network);
    for (char *name = strtok_r(names, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        TAC_TRY(use_network(b, k, name));
    return TAC_OK;
}

static tac_status check_trace(const tac__sim_bench *b)
{
    const char *name = b->opt->network;
    if (!b->opt->trace || !name) return TAC_OK;
    if (strcmp(name, "all") != 0 && !strchr(name, ',')) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_ARG,
                    "a trace is of one network; name one instead of '%s'",
                    name);
}

static tac_status reached(tac__sim_bench *b, tac__sim_case *k)
{
    const char *name = b->opt->network;
    TAC_TRY(check_trace(b));
    print_head(b, k);
    if (!b->opt->quiet)
        printf("%-10s %10s %10s %11s %12s %12s %12s\n", "network", "Gbit/s",
               "latency s", "utilisation", "s a step", "exposed s",
               "bytes a step");
    if (!name) return reach(b, k, "-");
    return strcmp(name, "all") == 0 ? all_networks(b, k)
                                    : listed_networks(b, k);
}

static tac_status check_networks(const tac__sim_bench *b)
{
    const int bandwidth = !isnan(b->opt->bandwidth);
    if (bandwidth && b->opt->network)
        return tac_fail(b->ctx, TAC_ERR_ARG,
                        "--network and --bandwidth both say how fast the "
                        "network is; give one");
    if (!bandwidth && !isnan(b->opt->up_bandwidth))
        return tac_fail(b->ctx, TAC_ERR_ARG,
                        "--up-bandwidth is for asymmetric links; give the "
                        "other direction by --bandwidth, too");
    return TAC_OK;
}

tac_status tac__sim_model(tac__sim_bench *b)
{
    tac__sim_case k;
    TAC_TRY(check_networks(b));
    TAC_TRY(tac__sim_case_make(b, &k));
    if (b->opt->network || !isnan(b->opt->bandwidth)) return reached(b, &k);
    return needed(b, &k);
}
