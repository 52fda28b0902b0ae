/* The option table of ddp_train, and the checks that no single row can make.
 */
#include "tacit/train_config.h"

#include <stdlib.h>
#include <string.h>

#include "tacit/codec.h"

#define AT(field) offsetof(tac_train_config, field)

static const tac_option table[] = {
    {"model", TAC_OPT_STR, "cnn", NULL,
     "model to train: cnn, mlp, or mlp with its hidden sizes", AT(model), 0, 0,
     "cnn|mlp|mlp:500,500", "model and data"},
    {"data", TAC_OPT_STR, "fashion-mnist", NULL,
     "data set: Fashion-MNIST, IDX files of one folder, or generated data",
     AT(data), 0, 0, "fashion-mnist|idx:DIR|synth[:N]", NULL},
    {"data-dir", TAC_OPT_STR, NULL, NULL,
     "folder of the Fashion-MNIST files (default: where Debian's package "
     "dataset-fashion-mnist puts them)",
     AT(data_dir), 0, 0, "DIR", NULL},
    {"dropout", TAC_OPT_F64, "0", NULL,
     "probability of dropping an activation before the last layers",
     AT(dropout), 0, 0.99, NULL, NULL},

    {"ranks", TAC_OPT_INT, "0", "ranks",
     "ranks as threads of this process; under mpirun or srun the launcher "
     "decides",
     AT(ranks), 0, 256, NULL, "ranks and communication"},
    {"threads", TAC_OPT_INT, "0", "threads",
     "compute threads of a rank; 0: its share of the CPUs", AT(threads), 0,
     4096, NULL, NULL},
    {"device", TAC_OPT_ENUM, "auto", NULL, "where to compute", AT(device), 0, 0,
     "auto|cpu", NULL},
    {"isa", TAC_OPT_ENUM, "auto", NULL,
     "CPU kernels: auto takes the best that the machine has", AT(isa), 0, 0,
     "auto|ref|avx2|avx512|onednn", NULL},
    {"transport", TAC_OPT_ENUM, "auto", NULL,
     "how ranks exchange data: auto is thread for --ranks, shm for processes "
     "of one host, mpi between hosts",
     AT(transport), 0, 0, "auto|thread|shm|mpi|ucx", NULL},
    {"emulate", TAC_OPT_STR, NULL, NULL,
     "an emulated network between virtual hosts", AT(emulate), 0, 0,
     "hosts=4,rate=1gbit,delay=10ms", NULL},
    {"progress", TAC_OPT_ENUM, "caller", NULL,
     "who drives communication: the training thread, or a thread of its own",
     AT(progress), 0, 0, "caller|thread", NULL},
    {"sync", TAC_OPT_ENUM, "grad", NULL,
     "grad averages gradients each step; none lets replicas drift (for "
     "measuring compute alone)",
     AT(sync), 0, 0, "grad|none", NULL},
    {"bucket-mb", TAC_OPT_F64, "25", "MiB", "size of gradient buckets",
     AT(bucket_mb), 1e-6, 1e6, NULL, NULL},
    {"first-bucket-mb", TAC_OPT_F64, "1", "MiB",
     "size of the bucket that is ready first", AT(first_bucket_mb), 1e-6, 1e6,
     NULL, NULL},
    {"compress", TAC_OPT_STR, "none", NULL,
     "what gradients travel as; options follow after commas (ef, noef, "
     "start=N, ...; see docs/comm.md)",
     AT(compress), 0, 0, "none|fp16|bf16|int8|topk:F|powersgd:R", NULL},
    {"deterministic", TAC_OPT_BOOL, "false", NULL,
     "same bits for every transport, bucket size and order of arrival",
     AT(deterministic), 0, 0, NULL, NULL},
    {"timeout", TAC_OPT_INT, "300", "s",
     "give up when a communication takes longer", AT(timeout_s), 1, 86400, NULL,
     NULL},
    {"stall-warn", TAC_OPT_INT, "60", "s",
     "name the missing ranks when a communication takes longer",
     AT(stall_warn_s), 1, 86400, NULL, NULL},

    {"optimizer", TAC_OPT_ENUM, "adamw", NULL, "update rule", AT(optimizer), 0,
     0, "sgd|adamw", "optimization"},
    {"lr", TAC_OPT_F64, "0.003", NULL, "peak learning rate", AT(lr), 0, 1e6,
     NULL, NULL},
    {"momentum", TAC_OPT_F64, "0.9", NULL, "momentum of sgd", AT(momentum), 0,
     0.999999, NULL, NULL},
    {"nesterov", TAC_OPT_BOOL, "false", NULL, "Nesterov momentum for sgd",
     AT(nesterov), 0, 0, NULL, NULL},
    {"weight-decay", TAC_OPT_F64, "0", NULL,
     "weight decay: decoupled for adamw, added to the gradient for sgd; "
     "biases are exempt",
     AT(weight_decay), 0, 1e6, NULL, NULL},
    {"beta1", TAC_OPT_F64, "0.9", NULL, "decay of adamw's first moment",
     AT(beta1), 0, 0.9999999, NULL, NULL},
    {"beta2", TAC_OPT_F64, "0.999", NULL, "decay of adamw's second moment",
     AT(beta2), 0, 0.9999999, NULL, NULL},
    {"eps", TAC_OPT_F64, "1e-8", NULL, "adamw's epsilon", AT(eps), 0, 1, NULL,
     NULL},
    {"schedule", TAC_OPT_ENUM, "cosine", NULL,
     "learning rate over the run: constant, or falling to 0", AT(schedule), 0,
     0, "constant|linear|cosine", NULL},
    {"warmup-steps", TAC_OPT_INT, "0", "steps",
     "steps over which the learning rate rises to --lr", AT(warmup_steps), 0,
     1e12, NULL, NULL},
    {"clip-norm", TAC_OPT_F64, "0", NULL,
     "largest global gradient norm; 0: no clipping", AT(clip_norm), 0, 1e12,
     NULL, NULL},

    {"batch", TAC_OPT_INT, "32", "samples", "batch of a rank and micro-step",
     AT(batch), 1, 1 << 24, NULL, "amount of work"},
    {"global-batch", TAC_OPT_INT, "0", "samples",
     "batch of a step over all ranks, instead of --batch; 0: not used",
     AT(global_batch), 0, 1 << 28, NULL, NULL},
    {"accumulate", TAC_OPT_INT, "1", "micro-steps",
     "micro-steps whose gradients are summed before a step", AT(accumulate), 1,
     1 << 20, NULL, NULL},
    {"epochs", TAC_OPT_F64, "4", "epochs", "passes over the training images",
     AT(epochs), 0, 1e9, NULL, NULL},
    {"steps", TAC_OPT_INT, "0", "steps",
     "optimizer steps, instead of --epochs; 0: not used", AT(steps), 0, 1e12,
     NULL, NULL},
    {"eval-every", TAC_OPT_STR, "epoch", NULL,
     "when to evaluate on the validation images: each epoch, each N steps, or "
     "0 for only at the end",
     AT(eval_every), 0, 0, "epoch|N", NULL},
    {"seed", TAC_OPT_INT, "42", NULL,
     "seed of initial weights, order of samples and dropout", AT(seed), 0, 9e18,
     NULL, NULL},
    {"prefetch", TAC_OPT_INT, "2", "batches",
     "batches prepared in the background; 0: none", AT(prefetch), 0, 64, NULL,
     NULL},

    {"run-dir", TAC_OPT_STR, NULL, NULL,
     "folder for config.ini, metrics.jsonl and summary.json", AT(run_dir), 0, 0,
     "DIR", "output"},
    {"trace", TAC_OPT_STR, NULL, NULL,
     "write a Chrome trace of all ranks (chrome://tracing, Perfetto)",
     AT(trace), 0, 0, "FILE", NULL},
    {"record", TAC_OPT_STR, NULL, NULL,
     "write when gradients become ready, for comm_bench --replay", AT(record),
     0, 0, "FILE", NULL},
    {"json", TAC_OPT_STR, NULL, NULL, "write the summary to FILE", AT(json), 0,
     0, "FILE", NULL},
    {"log-every", TAC_OPT_INT, "50", "steps",
     "steps between lines of metrics.jsonl", AT(log_every), 1, 1e12, NULL,
     NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL, "print only errors", AT(quiet), 0, 0,
     NULL, NULL},
    {"dry-run", TAC_OPT_BOOL, "false", NULL,
     "show the configuration, memory and bytes of a step, and stop",
     AT(dry_run), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "read options from an INI file",
     AT(config), 0, 0, "FILE", NULL},
    {NULL, TAC_OPT_BOOL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL},
};

const tac_option *tac_train_config_options(void)
{
    return table;
}

tac_status tac_train_config_defaults(tac_train_config *c)
{
    static const char *const program = "ddp_train";
    const tac_options_config oc = {program, "", NULL, table, c};
    tac_options *o = NULL;

    memset(c, 0, sizeof *c);
    TAC_TRY(tac_options_create(NULL, &oc, &o));
    /* Strings of defaults are the table's own and outlive the object. */
    for (const tac_option *row = table; row->key; row++)
        if (row->type == TAC_OPT_STR || row->type == TAC_OPT_ENUM)
            *(const char **)(void *)((char *)c + row->offset) = row->def;
    tac_options_destroy(o);
    return TAC_OK;
}

static tac_status check_eval_every(tac_context *ctx, const char *text)
{
    char *end = NULL;

    if (!strcmp(text, "epoch")) return TAC_OK;
    if (*text && strtoll(text, &end, 10) >= 0 && *end == '\0') return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--eval-every %s is neither 'epoch' nor a number of steps",
                    text);
}

static tac_status resolve_batch(tac_context *ctx, tac_train_config *c,
                                int world)
{
    const int64_t ranks = (int64_t)world * c->accumulate;

    if (c->global_batch == 0) {
        c->global_batch = c->batch * ranks;
        return TAC_OK;
    }
    if (c->global_batch % ranks != 0)
        return tac_fail(
            ctx, TAC_ERR_CONFIG,
            "--global-batch %lld does not divide by %d ranks x --accumulate "
            "%lld; the nearest that does is %lld",
            (long long)c->global_batch, world, (long long)c->accumulate,
            (long long)(ranks * ((c->global_batch + ranks / 2) / ranks > 0
                                     ? (c->global_batch + ranks / 2) / ranks
                                     : 1)));
    c->batch = c->global_batch / ranks;
    return TAC_OK;
}

static tac_status check_path(tac_context *ctx, const char *option,
                             const char *path)
{
    if (!path || *path) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s is empty; give a path, or leave it out", option);
}

static tac_status check_compress(tac_context *ctx, const tac_train_config *c)
{
    tac_codec *codec = NULL;
    const tac_status s = tac_codec_create(ctx, c->compress, &codec);

    tac_codec_destroy(codec);
    return s == TAC_ERR_ARG ? TAC_ERR_CONFIG : s;
}

tac_status tac_train_config_resolve(tac_context *ctx, tac_train_config *c,
                                    int world)
{
    TAC_TRY(check_path(ctx, "run-dir", c->run_dir));
    TAC_TRY(check_path(ctx, "json", c->json));
    TAC_TRY(check_path(ctx, "trace", c->trace));
    TAC_TRY(check_path(ctx, "record", c->record));
    TAC_TRY(check_eval_every(ctx, c->eval_every));
    TAC_TRY(check_compress(ctx, c));
    if (c->steps == 0 && c->epochs <= 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "nothing to do: give --epochs above 0, or --steps");
    if (c->record && !strcmp(c->sync, "none"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--record needs gradients that are averaged: leave "
                        "out --sync none");
    if (c->nesterov && c->momentum <= 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--nesterov needs --momentum above 0");
    return resolve_batch(ctx, c, world);
}
