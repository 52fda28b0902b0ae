/* localsgd_sim: how much network a way of training needs, and what a network
 * gives. docs/localsgd_sim.md is the manual. */
#include "localsgd_sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "tacit/options_ini.h"

static const char summary[] =
    "Simulates training on a network that is not here: layer by layer, "
    "forward, "
    "backward and reductions. Prints the bandwidth that a utilisation of the "
    "compute needs, or what named networks reach (--network), or a published "
    "table beside ours (--table).";

static const char epilogue[] =
    "Examples:\n"
    "  localsgd_sim --table streaming-diloco\n"
    "  localsgd_sim --params 124e6 --layers 12 --step-seconds 0.4 --method dp\n"
    "  localsgd_sim --method streaming --overlap 1 --bits 4 --workers 16 \\\n"
    "      --topology ring --latency 0.01\n"
    "  localsgd_sim --method local --sync-every 16 --codec none --sending \\\n"
    "      after-step --topology ring --workers 8 --network all\n"
    "  localsgd_sim --bandwidth 10 --workers 10000 --levels 8:10,10000:100\n"
    "  localsgd_sim --method streaming --overlap 1 --bandwidth 4 --trace "
    "t.json\n"
    "\n"
    "Bandwidths are looked for on the grid of the papers, 50 values from 0.1\n"
    "to 1000 Gbit/s, each 21 % above the one before.\n"
    "Exit codes: 0 ok, 1 run-time failure, 2 usage or configuration.\n";

static tac_status read_options(tac_context *ctx, tac_options *o, int argc,
                               char **argv, tac_options_action *action)
{
    static const char *const others[] = {"TACIT_ISA", "TACIT_LOG", NULL};
    const char *config = tac_options_peek_argv(argc, argv, "config");
    TAC_TRY(tac_options_read_argv(o, argc, argv, action));
    TAC_TRY(tac_options_read_env(o, others));
    if (!config) config = getenv("TACIT_CONFIG");
    if (config && *config) return tac_options_read_ini(ctx, o, config);
    return TAC_OK;
}

static tac_status simulate(tac__sim_bench *b)
{
    tac_json_begin_array(b->json, NULL);
    TAC_TRY(b->opt->table ? tac__sim_paper(b) : tac__sim_model(b));
    tac_json_end_array(b->json);
    if (!b->opt->json) return TAC_OK;
    const tac_status s = tac_json_write_file(b->json, b->opt->json);
    if (s >= 0) return s;
    return tac_fail(b->ctx, s, "can't write %s: %m", b->opt->json);
}

static tac_status run(tac_context *ctx, const tac__sim_options *opt)
{
    tac__sim_bench b = {ctx, opt, tac_json_create()};
    if (!b.json) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for results");
    const tac_status s = simulate(&b);
    tac_json_destroy(b.json);
    return s;
}

static int act(const tac_options *o, tac_options_action action)
{
    if (action == TAC_ACTION_RUN) return 0;
    if (action == TAC_ACTION_HELP)
        tac_options_print_help(o, stdout);
    else if (action == TAC_ACTION_VERSION)
        printf("localsgd_sim (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(o, stdout);
    return 1;
}

static int exit_code(tac_status s)
{
    if (s >= 0) return 0;
    return s == TAC_ERR_CONFIG || s == TAC_ERR_ARG || s == TAC_ERR_UNSUPPORTED
               ? 2
               : 1;
}

int main(int argc, char **argv)
{
    tac__sim_options opt;
    const tac_options_config config = {"localsgd_sim", summary, epilogue,
                                       tac__sim_table, &opt};
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;
    if (tac_context_create(NULL, &ctx) < 0) return 1;
    tac_status s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = read_options(ctx, o, argc, argv, &action);
    if (s >= 0 && !act(o, action)) s = run(ctx, &opt);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    return tac_options_end("localsgd_sim", exit_code(s));
}
