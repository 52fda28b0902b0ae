/* engine_bench: how fast the engine is, measured against the machine's own
 * limits in the same run. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_bench.h"
#include "tacit/autocast.h"
#include "tacit/options_ini.h"

static const char summary[] =
    "Measures training steps of a model, or each kernel by itself (--ops), and "
    "compares them with what the machine can do: the best f32 matrix product, "
    "a copy, an in-place update.";

static const char epilogue[] =
    "Examples:\n"
    "  engine_bench                                the cnn, batch 128\n"
    "  engine_bench --model mlp --batch 64 --threads 1 --json out.json\n"
    "  engine_bench --model mlp:2048,2048 --batch 256 --precision "
    "fp32,bf16,fp16\n"
    "  engine_bench --ops --precision bf16\n"
    "  engine_bench --optimizers --json optimizers.json\n"
    "\n"
    "TACIT_ISA=ref|avx2|avx512|onednn forces kernels.\n"
    "Exit codes: 0 ok, 1 run-time failure, 2 usage or configuration.\n";

#define AT(field) offsetof(tac__bench_options, field)

static const tac_option table[] = {
    {"ops", TAC_OPT_BOOL, "false", NULL, "Measure kernels instead of a model.",
     AT(ops), 0, 0, NULL, "What"},
    {"optimizers", TAC_OPT_BOOL, "false", NULL,
     "Measure the optimizers: memory, and time of a pass.", AT(optimizers), 0,
     0, NULL, NULL},
    {"small", TAC_OPT_BOOL, "false", NULL,
     "Leave out the shape of 124 million parameters.", AT(small), 0, 0, NULL,
     NULL},
    {"model", TAC_OPT_STR, "cnn", NULL, "The model.", AT(model), 0, 0,
     "mlp[:H1,H2,...]|cnn", NULL},
    {"batch", TAC_OPT_INT, "128", "samples", "Samples a step.", AT(batch), 1,
     1e6, NULL, NULL},
    {"precision", TAC_OPT_STR, "fp32", NULL,
     "What products are computed in; several, with commas, are measured in "
     "turns and compared.",
     AT(precision), 0, 0, "fp32|fp16|bf16,...", NULL},
    {"optimizer", TAC_OPT_ENUM, "sgd", NULL,
     "The update of a step; sgd has momentum 0.9.", AT(optimizer), 0, 0,
     "sgd|adamw|adafactor|adamw8bit", NULL},
    {"threads", TAC_OPT_INT, "0", "threads",
     "Threads of the pool; 0: the CPUs that this process may use.", AT(threads),
     0, 4096, NULL, "How"},
    {"steps", TAC_OPT_INT, "80", "steps", "Steps that are counted.", AT(steps),
     8, 1e6, NULL, NULL},
    {"seconds", TAC_OPT_F64, "0.2", "s",
     "Least time for each kernel and each bandwidth.", AT(seconds), 1e-3, 60,
     NULL, NULL},
    {"seed", TAC_OPT_INT, "1", NULL, "Seed of values and data.", AT(seed), 0,
     1e15, NULL, NULL},
    {"json", TAC_OPT_STR, NULL, NULL, "Write the results to this file.",
     AT(json), 0, 0, "FILE", "Output"},
    {"quiet", TAC_OPT_BOOL, "false", NULL, "Print nothing but failures.",
     AT(quiet), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "Read options from this file.",
     AT(config), 0, 0, "FILE.ini", NULL},
    {0},
};

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

tac_status tac__bench_precisions(tac__bench *b, char *text,
                                 const char *names[TAC__PRECISIONS], size_t *n)
{
    char *rest = NULL;
    tac_dtype type;
    *n = 0;
    for (char *name = strtok_r(text, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        if (*n == TAC__PRECISIONS)
            return tac_fail(b->ctx, TAC_ERR_ARG,
                            "more than %d precisions; leave some out",
                            TAC__PRECISIONS);
        TAC_TRY(tac_precision_parse(b->ctx, name, &type));
        names[(*n)++] = name;
    }
    if (*n > 0) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_ARG,
                    "no precision; give fp32, fp16, bf16, or several of them "
                    "with commas");
}

static tac_status measure(tac__bench *b)
{
    tac_json_begin_object(b->json, NULL);
    TAC_TRY(b->opt->optimizers ? tac__bench_optimizers(b)
            : b->opt->ops      ? tac__bench_ops(b)
                               : tac__bench_model(b));
    tac_json_end_object(b->json);
    if (!b->opt->json) return TAC_OK;
    const tac_status s = tac_json_write_file(b->json, b->opt->json);
    if (s >= 0) return s;
    return tac_fail(b->ctx, s, "can't write %s: %m", b->opt->json);
}

/* In a context of its own, with the threads asked for. */
static tac_status run(const tac__bench_options *opt)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac__bench b = {.opt = opt};
    config.threads = (int)opt->threads;
    TAC_TRY(tac_context_create(&config, &b.ctx));
    tac_status s = tac_device_open(b.ctx, "cpu", NULL, &b.dev);
    if (s < 0) goto done_ctx;
    b.k = tac_device_kernels(b.dev, TAC_F32);
    b.kc = tac_device_kctx(b.dev, NULL);
    b.json = tac_json_create();
    s = b.json ? measure(&b)
               : tac_fail(b.ctx, TAC_ERR_NOMEM, "no memory for results");
    tac_json_destroy(b.json);
    tac_device_close(b.dev);
done_ctx:
    tac_context_destroy(b.ctx);
    return s;
}

static int act(const tac_options *o, tac_options_action action)
{
    if (action == TAC_ACTION_RUN) return 0;
    if (action == TAC_ACTION_HELP)
        tac_options_print_help(o, stdout);
    else if (action == TAC_ACTION_VERSION)
        printf("engine_bench (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(o, stdout);
    return 1;
}

static int exit_code(tac_status s)
{
    if (s >= 0) return 0;
    return s == TAC_ERR_CONFIG || s == TAC_ERR_ARG ? 2 : 1;
}

int main(int argc, char **argv)
{
    tac__bench_options opt;
    const tac_options_config config = {"engine_bench", summary, epilogue, table,
                                       &opt};
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;
    if (tac_context_create(NULL, &ctx) < 0) return 1;
    tac_status s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = read_options(ctx, o, argc, argv, &action);
    if (s >= 0 && !act(o, action)) s = run(&opt);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    return tac_options_end("engine_bench", exit_code(s));
}
