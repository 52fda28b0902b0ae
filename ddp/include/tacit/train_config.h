/* tacit/train_config.h: everything that ddp_train can be told.
 *
 * One struct, one option table. The struct is plain data: a program that has
 * its own command line fills it itself, starting from
 * tac_train_config_defaults. */
#ifndef TACIT_TRAIN_CONFIG_H
#define TACIT_TRAIN_CONFIG_H

#include <stdint.h>

#include "tacit/localsgd_config.h"
#include "tacit/options.h"

TAC_BEGIN_DECLS

typedef struct tac_train_config {
    /* What is trained, on what. Strings are borrowed. */
    const char *model;    /* "cnn", "mlp", "mlp:500,500", "linear" */
    const char *data;     /* "fashion-mnist", "idx:DIR", "synth", "synth:N" */
    const char *data_dir; /* where fashion-mnist lies; NULL: Debian's folder */
    double dropout;       /* probability in [0,1) in front of the last layers */

    /* Ranks, threads, transport. */
    int64_t ranks;       /* thread ranks when there is no launcher; 0: one */
    int allow_singleton; /* go on where each task is a job of its own */
    int64_t threads; /* a rank; 0: CPUs of the affinity mask over local ranks */
    const char *device;
    const char *isa; /* NULL: best; "ref", "avx2", "avx512", "onednn" */
    const char *transport;
    const char *emulate;               /* an emulated network; NULL: none */
    const char *progress;              /* "caller", "thread" */
    double bucket_mb, first_bucket_mb; /* MiB */
    const char *compress; /* "none", or as in tacit/codec.h: of gradients, in
                             local modes of what workers exchange */
    int deterministic;
    int64_t timeout_s, stall_warn_s;

    /* Replicas. "grad" averages gradients in every step; the local modes
     * ("local", "post-local", "slowmo", "diloco", "streaming", "oneshot")
     * average parameters now and then, by tac_train_config_localsgd; "none"
     * lets replicas drift. What is NAN or "auto" is the mode's own. */
    const char *sync;
    int64_t sync_every;         /* H, attempts; 0: 16 */
    double sync_start;          /* attempts that average each step; NAN: 0, of
                                   post-local half of the run */
    const char *sync_schedule;  /* "fixed", "qsr:ALPHA[,POWER]", "adacomm",
                                   "budget:BYTES" a second */
    int64_t sync_min, sync_max; /* limits of H for the others; 0: none */
    const char *sync_levels;    /* "RANKS:EVERY,...", inner first, of workers;
                                   NULL: one level */
    const char *outer; /* "auto", "average", "sgd", "heavy-ball", "nesterov",
                          "slowmo", "adam" */
    double outer_lr, outer_momentum;
    int64_t fragments;     /* of streaming; 0: auto */
    double sync_delay;     /* tau, attempts */
    double sync_alpha;     /* share of local parameters that stays */
    const char *stale;     /* "delayed", "eager" */
    const char *weighting; /* "uniform", "samples", "steps" */
    const char *moments;   /* of the optimizer: "keep", "average", "reset" */
    const char *late;      /* "wait", "drop:SECONDS" */
    double drop_deltas;    /* probability, for experiments */
    int64_t worker_size;   /* ranks that average gradients in every step and
                              are one worker to the local modes */
    const char *shards;    /* which samples a rank sees: "iid", "sorted",
                              "dirichlet:A" */

    /* Precision. */
    const char *precision;  /* "fp32", "fp16", "bf16" */
    const char *loss_scale; /* "auto", "dynamic", "none" or a number */
    double init_scale, min_scale, max_scale; /* of a dynamic scale */
    int64_t growth_interval, max_skips;
    const char *rounding;    /* of working weights: "nearest", "stochastic" */
    int64_t underflow_every; /* attempts; 0: never */
    const char *inject_inf;  /* "STEP[-STEP][:RANK]", for tests; NULL: none */

    /* Optimization. Numbers that are NAN become the optimizer's own defaults
     * in tac_train_config_resolve, which refuses those that it does not have.
     */
    const char *optimizer; /* "sgd", "adamw", "adafactor", "adamw8bit" */
    double lr;             /* stays NAN for adafactor's relative step */
    double weight_decay, momentum, beta1, beta2, eps;
    double eps1, eps2, clip_threshold, decay_rate; /* adafactor */
    int nesterov;
    int relative_step, scale_parameter, warmup_init; /* adafactor */
    const char *decay_rule;                          /* "matrices", "all" */
    const char *param_groups; /* "GLOB:lr=X,wd=X,bits=32;..."; NULL: none */
    const char *schedule;     /* "constant", "linear", "cosine" */
    int64_t warmup_steps;
    double warmup_ratio; /* of all steps, instead of warmup_steps; 0: not */
    double clip_norm;    /* 0: none */

    /* How much. A step is one optimizer step. */
    int64_t batch;          /* a rank and micro-step */
    int64_t global_batch;   /* instead of batch; 0: not given */
    int64_t accumulate;     /* micro-steps a step */
    const char *recompute;  /* "none", "block" */
    double epochs;          /* may be fractional */
    int64_t steps;          /* 0: given by epochs */
    const char *eval_every; /* "epoch" or a number of steps, "0": only at the
                               end, "never" */
    int64_t eval_batch;     /* a rank, of evaluation; 0: batch */
    int drop_last;          /* no last micro-step of fewer samples */
    uint64_t seed;
    double target_accuracy; /* of validation; training stops there; 0: none */
    int skip_compute;       /* communication alone: nothing is computed */
    int64_t prefetch;       /* batches prepared ahead by the loader; 0: none */
    uint64_t memory_limit;  /* bytes of the ranks of a host; 0: what it has */

    /* What is written. */
    const char *run_dir;       /* NULL: nothing is kept */
    const char *save_every;    /* checkpoints: "epoch" or a number of steps,
                                  "best":    when an evaluation is, "0": never */
    int64_t save_total_limit;  /* checkpoints that are kept; 0: all */
    const char *best_metric;   /* "loss", "accuracy" or one of compute_metrics,
                                  of validation: which checkpoint is the best */
    int load_best;             /* end with the best checkpoint's parameters */
    const char *resume;        /* "auto" or a folder; NULL: from the start */
    const char *trace;         /* Chrome trace of all ranks; NULL: none */
    const char *record;        /* gradient-ready times; NULL: none */
    const char *attempt_times; /* seconds of each attempt of each rank; NULL */
    const char *json;          /* a copy of summary.json; NULL: none */
    int64_t log_every;         /* steps between lines of metrics.jsonl */
    int log_first;             /* one after the first step, too */
    int quiet;
    int dry_run;
    const char *config; /* the INI file that was read */
} tac_train_config;

/* Fills `c` with the defaults of the option table. */
TAC_API tac_status tac_train_config_defaults(tac_train_config *c);

/* The option table over a tac_train_config. */
TAC_API const tac_option *tac_train_config_options(void);

/* Checks what no single row can: combinations, settings that the optimizer does
 * not have, and that global_batch divides. Resolves batch and global_batch
 * against `world`, and what is left to the optimizer. Errors: CONFIG with one
 * message that says what to change. */
TAC_API tac_status tac_train_config_resolve(tac_context *ctx,
                                            tac_train_config *c, int world);

/* Is `c` one of the local modes? */
TAC_API int tac_train_config_is_local(const tac_train_config *c);
/* The one description of how replicas talk: what training does, what is
 * predicted and what the simulator is told. `c` is resolved and of a local
 * mode; `total` attempts in all; *out borrows strings of c. Errors: CONFIG. */
TAC_API tac_status tac_train_config_localsgd(tac_context *ctx,
                                             const tac_train_config *c,
                                             int workers, int64_t layers,
                                             int64_t total,
                                             tac_localsgd_config *out);

TAC_END_DECLS

#endif
