/* The option table of ddp_train. */
#include "tacit/train_config.h"

#include <string.h>

#define AT(field) offsetof(tac_train_config, field)

static const tac_option table[] = {
    {"model", TAC_OPT_STR, "cnn", NULL,
     "model to train: cnn, mlp, mlp with its hidden sizes, or linear (softmax "
     "regression)",
     AT(model), 0, 0, "cnn|mlp|mlp:500,500|linear", "model and data"},
    {"data", TAC_OPT_STR, "fashion-mnist", NULL,
     "data set: Fashion-MNIST, IDX files of one folder, or generated data",
     AT(data), 0, 0, "fashion-mnist|idx:DIR|synth[:N]", NULL},
    {"data-dir", TAC_OPT_STR, NULL, NULL,
     "folder of the Fashion-MNIST files, instead of where Debian's package "
     "dataset-fashion-mnist puts them",
     AT(data_dir), 0, 0, "DIR", NULL},
    {"dropout", TAC_OPT_F64, "0", NULL,
     "probability of dropping an activation before the last layers",
     AT(dropout), 0, 0.99, NULL, NULL},

    {"ranks", TAC_OPT_INT, "0", "ranks",
     "ranks as threads of this process; under mpirun or srun the launcher "
     "decides",
     AT(ranks), 0, 256, NULL, "ranks and communication"},
    {"allow-singleton", TAC_OPT_BOOL, "false", NULL,
     "train alone where a launcher has made a job of its own of each task",
     AT(allow_singleton), 0, 0, NULL, NULL},
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
    {"bucket-mb", TAC_OPT_F64, "25", "MiB", "size of gradient buckets",
     AT(bucket_mb), 1e-6, 1e6, NULL, NULL},
    {"first-bucket-mb", TAC_OPT_F64, "1", "MiB",
     "size of the bucket that is ready first", AT(first_bucket_mb), 1e-6, 1e6,
     NULL, NULL},
    {"compress", TAC_OPT_STR, "none", NULL,
     "what gradients, or in local modes differences of parameters, travel as; "
     "options follow after commas (ef, noef, start=N, ...; see docs/comm.md)",
     AT(compress), 0, 0, "none|fp16|bf16|int8|fp4|topk:F|powersgd:R", NULL},
    {"deterministic", TAC_OPT_BOOL, "false", NULL,
     "same bits for every transport, bucket size and order of arrival",
     AT(deterministic), 0, 0, NULL, NULL},
    {"timeout", TAC_OPT_INT, "300", "s",
     "give up when a communication takes longer", AT(timeout_s), 1, 86400, NULL,
     NULL},
    {"stall-warn", TAC_OPT_INT, "60", "s",
     "name the missing ranks when a communication takes longer",
     AT(stall_warn_s), 1, 86400, NULL, NULL},

    {"sync", TAC_OPT_ENUM, "grad", NULL,
     "how replicas stay together: grad averages gradients in every step; "
     "local, post-local, slowmo, diloco, streaming and oneshot average "
     "parameters now and then (docs/localsgd.md); none lets them drift, for "
     "measuring compute alone",
     AT(sync), 0, 0,
     "grad|local|post-local|slowmo|diloco|streaming|oneshot|none", "replicas"},
    {"sync-every", TAC_OPT_INT, "0", "steps",
     "H: steps between two averages in local modes; 0: 16", AT(sync_every), 0,
     1e12, NULL, NULL},
    {"sync-start", TAC_OPT_F64, "auto", "steps",
     "steps at the beginning that each end in an average; auto: none, for "
     "post-local half of the run",
     AT(sync_start), 0, 1e12, "auto", NULL},
    {"sync-schedule", TAC_OPT_STR, "fixed", NULL,
     "how the interval changes: by the learning rate (qsr), by the loss "
     "(adacomm), by bytes a second and rank (budget: 500000, 2M)",
     AT(sync_schedule), 0, 0, "fixed|qsr:ALPHA[,POWER]|adacomm|budget:BYTES",
     NULL},
    {"sync-min", TAC_OPT_INT, "0", "steps",
     "shortest interval of such a schedule; 0: no limit", AT(sync_min), 0, 1e12,
     NULL, NULL},
    {"sync-max", TAC_OPT_INT, "0", "steps",
     "longest interval of such a schedule; 0: no limit", AT(sync_max), 0, 1e12,
     NULL, NULL},
    {"sync-levels", TAC_OPT_STR, NULL, NULL,
     "groups of so many workers average every so many steps, inner groups "
     "first; the last has all workers and takes the place of --sync-every",
     AT(sync_levels), 0, 0, "WORKERS:EVERY,...", NULL},
    {"worker-size", TAC_OPT_INT, "1", "ranks",
     "ranks that average gradients in every step and are one worker to the "
     "local modes",
     AT(worker_size), 1, 65536, NULL, NULL},
    {"outer", TAC_OPT_ENUM, "auto", NULL,
     "outer optimizer, which takes the averaged difference for a gradient; "
     "auto: average for local, post-local and oneshot, slowmo for slowmo, "
     "nesterov for diloco and streaming",
     AT(outer), 0, 0, "auto|average|sgd|heavy-ball|nesterov|slowmo|adam", NULL},
    {"outer-lr", TAC_OPT_F64, "auto", NULL,
     "its rate; auto: 0.7 for diloco, 0.4 for streaming, else 1", AT(outer_lr),
     0, 1e6, "auto", NULL},
    {"outer-momentum", TAC_OPT_F64, "auto", NULL,
     "its momentum; auto: 0.5 for slowmo, 0.9 for nesterov, heavy-ball and "
     "adam",
     AT(outer_momentum), 0, 0.999999, "auto", NULL},
    {"fragments", TAC_OPT_INT, "0", NULL,
     "parts of the layers that are averaged at steps of their own; 0: one, for "
     "streaming one a layer, at most 4",
     AT(fragments), 0, 65536, NULL, NULL},
    {"sync-delay", TAC_OPT_F64, "auto", "steps",
     "steps that training goes on before an average is applied; auto: 0, for "
     "streaming 1",
     AT(sync_delay), 0, 1e12, "auto", NULL},
    {"sync-alpha", TAC_OPT_F64, "auto", NULL,
     "share of its own parameters that a rank keeps then; auto: 0, for "
     "streaming 0.5",
     AT(sync_alpha), 0, 1, "auto", NULL},
    {"stale", TAC_OPT_ENUM, "delayed", NULL,
     "with --sync-delay equal to --sync-every: apply the old average as it is, "
     "or with this rank's own part made fresh",
     AT(stale), 0, 0, "delayed|eager", NULL},
    {"weighting", TAC_OPT_ENUM, "uniform", NULL,
     "what a worker counts by in averages", AT(weighting), 0, 0,
     "uniform|samples|steps", NULL},
    {"moments", TAC_OPT_ENUM, "keep", NULL,
     "what an average does to the optimizer's moments: each worker keeps its "
     "own, or they are averaged too, or start anew",
     AT(moments), 0, 0, "keep|average|reset", NULL},
    {"late", TAC_OPT_STR, "wait", NULL,
     "workers whose interval takes longer: wait for them, or let them drop "
     "what is left of it",
     AT(late), 0, 0, "wait|drop:SECONDS", NULL},
    {"drop-deltas", TAC_OPT_F64, "0", NULL,
     "probability that a worker's part of an average is lost, for experiments",
     AT(drop_deltas), 0, 0.999999, NULL, NULL},
    {"shards", TAC_OPT_STR, "iid", NULL,
     "which samples a rank sees: iid deals all anew each epoch; sorted cuts "
     "them by label; dirichlet draws each rank's mix of labels, the less even "
     "the smaller A",
     AT(shards), 0, 0, "iid|sorted|dirichlet:A", NULL},

    {"precision", TAC_OPT_ENUM, "fp32", NULL,
     "type that products are computed in; parameters, gradients and the "
     "optimizer's state stay f32",
     AT(precision), 0, 0, "fp32|fp16|bf16", "precision"},
    {"loss-scale", TAC_OPT_STR, "auto", NULL,
     "factor on the loss in backward, so that small gradients survive fp16: "
     "dynamic, a number, or none; auto: dynamic for fp16, else none",
     AT(loss_scale), 0, 0, "auto|dynamic|NUMBER|none", NULL},
    {"init-scale", TAC_OPT_F64, "65536", NULL, "first loss scale",
     AT(init_scale), 1e-30, 1e30, NULL, NULL},
    {"growth-interval", TAC_OPT_INT, "2000", "steps",
     "steps without a skip after which the loss scale doubles",
     AT(growth_interval), 1, 2147483647, NULL, NULL},
    {"min-scale", TAC_OPT_F64, "1", NULL, "the loss scale never falls below",
     AT(min_scale), 1e-30, 1e30, NULL, NULL},
    {"max-scale", TAC_OPT_F64, "16777216", NULL,
     "the loss scale never rises above", AT(max_scale), 1e-30, 1e30, NULL,
     NULL},
    {"max-skips", TAC_OPT_INT, "100", "steps",
     "give up after so many skipped steps in a row; 0: never", AT(max_skips), 0,
     1e12, NULL, NULL},
    {"rounding", TAC_OPT_ENUM, "nearest", NULL,
     "how f32 parameters become 16-bit working weights", AT(rounding), 0, 0,
     "nearest|stochastic", NULL},
    {"underflow-every", TAC_OPT_INT, "0", "steps",
     "look each N steps how much of the gradients fp16 would lose, and report "
     "it at the end; 0: never",
     AT(underflow_every), 0, 1e12, NULL, NULL},
    {"inject-inf", TAC_OPT_STR, NULL, NULL,
     "for tests: an inf into the first gradient element of a rank before "
     "averaging, at the given attempts (from 1)",
     AT(inject_inf), 0, 0, "STEP[-STEP][:RANK]", NULL},

    {"optimizer", TAC_OPT_ENUM, "adamw", NULL, "update rule", AT(optimizer), 0,
     0, "sgd|adamw|adafactor|adamw8bit", "optimization"},
    {"lr", TAC_OPT_F64, "auto", NULL,
     "peak learning rate; auto: 0.03 for sgd, 0.003 for the others, none for "
     "adafactor with --relative-step",
     AT(lr), 0, 1e6, "auto", NULL},
    {"momentum", TAC_OPT_F64, "auto", NULL, "of sgd; auto: 0.9", AT(momentum),
     0, 0.999999, "auto", NULL},
    {"nesterov", TAC_OPT_BOOL, "false", NULL, "Nesterov momentum for sgd",
     AT(nesterov), 0, 0, NULL, NULL},
    {"weight-decay", TAC_OPT_F64, "0", NULL,
     "weight decay: added to the gradient for sgd, decoupled for the others",
     AT(weight_decay), 0, 1e6, NULL, NULL},
    {"decay-rule", TAC_OPT_ENUM, "matrices", NULL,
     "what is decayed: parameters with two or more dimensions, or all",
     AT(decay_rule), 0, 0, "matrices|all", NULL},
    {"beta1", TAC_OPT_F64, "auto", NULL,
     "decay of the first moment; auto: 0.9, none for adafactor", AT(beta1), 0,
     0.9999999, "auto", NULL},
    {"beta2", TAC_OPT_F64, "auto", NULL,
     "decay of the second moment of adamw and adamw8bit; auto: 0.999",
     AT(beta2), 0, 0.9999999, "auto", NULL},
    {"eps", TAC_OPT_F64, "auto", NULL, "of adamw and adamw8bit; auto: 1e-8",
     AT(eps), 0, 1, "auto", NULL},
    {"relative-step", TAC_OPT_BOOL, "false", NULL,
     "adafactor sets its rate by itself: min(0.01, 1/sqrt(step)), times the "
     "schedule",
     AT(relative_step), 0, 0, NULL, NULL},
    {"scale-parameter", TAC_OPT_BOOL, "false", NULL,
     "adafactor multiplies the rate by the root mean square of the parameter",
     AT(scale_parameter), 0, 0, NULL, NULL},
    {"warmup-init", TAC_OPT_BOOL, "false", NULL,
     "adafactor's relative step begins with 1e-6 * step", AT(warmup_init), 0, 0,
     NULL, NULL},
    {"eps1", TAC_OPT_F64, "auto", NULL,
     "of adafactor: added to squared gradients; auto: 1e-30", AT(eps1), 0, 1,
     "auto", NULL},
    {"eps2", TAC_OPT_F64, "auto", NULL,
     "of adafactor: least root mean square of a parameter; auto: 1e-3",
     AT(eps2), 0, 1, "auto", NULL},
    {"clip-threshold", TAC_OPT_F64, "auto", NULL,
     "of adafactor: largest root mean square of an update; auto: 1",
     AT(clip_threshold), 1e-30, 1e30, "auto", NULL},
    {"decay-rate", TAC_OPT_F64, "auto", NULL,
     "of adafactor: exponent of the second moment's decay; auto: -0.8",
     AT(decay_rate), -10, 0, "auto", NULL},
    {"param-groups", TAC_OPT_STR, NULL, NULL,
     "settings of parameters by name: a factor on the learning rate, weight "
     "decay, 32-bit moments under adamw8bit",
     AT(param_groups), 0, 0, "GLOB:lr=X,wd=X,bits=32;...", NULL},
    {"schedule", TAC_OPT_ENUM, "cosine", NULL,
     "learning rate over the run: constant, or falling to 0", AT(schedule), 0,
     0, "constant|linear|cosine", NULL},
    {"warmup-steps", TAC_OPT_INT, "0", "steps",
     "steps over which the learning rate rises to --lr", AT(warmup_steps), 0,
     1e12, NULL, NULL},
    {"warmup-ratio", TAC_OPT_F64, "0", NULL,
     "the same as a share of all steps; 0: not used", AT(warmup_ratio), 0, 1,
     NULL, NULL},
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
    {"recompute", TAC_OPT_ENUM, "none", NULL,
     "block: keep only what goes into the model's blocks, and run them again "
     "in backward",
     AT(recompute), 0, 0, "none|block", NULL},
    {"epochs", TAC_OPT_F64, "4", "epochs", "passes over the training images",
     AT(epochs), 0, 1e9, NULL, NULL},
    {"steps", TAC_OPT_INT, "0", "steps",
     "optimizer steps, instead of --epochs; 0: not used", AT(steps), 0, 1e12,
     NULL, NULL},
    {"eval-every", TAC_OPT_STR, "epoch", NULL,
     "when to evaluate on the validation images: each epoch, each N steps, 0 "
     "for only at the end, or never",
     AT(eval_every), 0, 0, "epoch|N|never", NULL},
    {"eval-batch", TAC_OPT_INT, "0", "samples",
     "batch of a rank in evaluations, which changes no result; 0: as --batch",
     AT(eval_batch), 0, 1 << 24, NULL, NULL},
    {"drop-last", TAC_OPT_BOOL, "false", NULL,
     "leave out the last batch of an epoch if it has fewer samples",
     AT(drop_last), 0, 0, NULL, NULL},
    {"target-accuracy", TAC_OPT_F64, "0", NULL,
     "stop when an evaluation on the validation images is as accurate (0.85), "
     "and say when that was; 0: never",
     AT(target_accuracy), 0, 1, NULL, NULL},
    {"skip-compute", TAC_OPT_BOOL, "false", NULL,
     "communication alone: everything is sent as in a real run, nothing is "
     "computed",
     AT(skip_compute), 0, 0, NULL, NULL},
    {"seed", TAC_OPT_INT, "42", NULL,
     "seed of initial weights, order of samples and dropout", AT(seed), 0, 9e18,
     NULL, NULL},
    {"memory-limit", TAC_OPT_SIZE, "0", "bytes",
     "memory for all ranks of a host: a run that needs more is refused, with "
     "what would fit; 0: what the machine has free, less a tenth",
     AT(memory_limit), 0, 9.2e18, NULL, NULL},
    {"prefetch", TAC_OPT_INT, "2", "batches",
     "batches prepared in the background; 0: none", AT(prefetch), 0, 64, NULL,
     NULL},

    {"run-dir", TAC_OPT_STR, NULL, NULL,
     "folder for config.ini, metrics.jsonl, summary.json, underflow.svg and "
     "checkpoints",
     AT(run_dir), 0, 0, "DIR", "output"},
    {"save-every", TAC_OPT_STR, "0", NULL,
     "when to save a checkpoint into the run folder: each epoch, each N steps, "
     "after each evaluation that is the best so far, or 0 for never",
     AT(save_every), 0, 0, "epoch|N|best", NULL},
    {"save-total-limit", TAC_OPT_INT, "0", "checkpoints",
     "keep so many: the oldest go first, the latest and the best never; 0: all",
     AT(save_total_limit), 0, 1e9, NULL, NULL},
    {"best-metric", TAC_OPT_STR, "loss", NULL,
     "which checkpoint is the best: of those that were evaluated, by loss or "
     "accuracy on the validation images",
     AT(best_metric), 0, 0, "loss|accuracy", NULL},
    {"load-best", TAC_OPT_BOOL, "false", NULL,
     "end with the parameters of the best checkpoint instead of the last "
     "step's",
     AT(load_best), 0, 0, NULL, NULL},
    {"resume", TAC_OPT_STR, NULL, NULL,
     "go on from a checkpoint; auto: from the run folder's latest, or from the "
     "start if there is none",
     AT(resume), 0, 0, "auto|DIR", NULL},
    {"trace", TAC_OPT_STR, NULL, NULL,
     "write a Chrome trace of all ranks (chrome://tracing, Perfetto)",
     AT(trace), 0, 0, "FILE", NULL},
    {"record", TAC_OPT_STR, NULL, NULL,
     "write when gradients become ready, for comm_bench --replay", AT(record),
     0, 0, "FILE", NULL},
    {"attempt-times", TAC_OPT_STR, NULL, NULL,
     "write how long each step took each rank, without communication, as CSV",
     AT(attempt_times), 0, 0, "FILE", NULL},
    {"json", TAC_OPT_STR, NULL, NULL,
     "write the summary to FILE; -: to standard output, with all else on "
     "standard error",
     AT(json), 0, 0, "FILE", NULL},
    {"log-every", TAC_OPT_INT, "50", "steps",
     "steps between lines of metrics.jsonl", AT(log_every), 1, 1e12, NULL,
     NULL},
    {"log-first", TAC_OPT_BOOL, "false", NULL,
     "a line after the first step, too", AT(log_first), 0, 0, NULL, NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL,
     "print only errors; results are in summary.json and --json", AT(quiet), 0,
     0, NULL, NULL},
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
