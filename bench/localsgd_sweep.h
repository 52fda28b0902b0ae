/* localsgd_sweep: its parts, and what they hand each other.
 *
 *   options -> plan (a list of cases) -> compute and communication, each alone
 *   -> search (a learning rate a case) -> seeds -> rows -> model (networks) ->
 *   table, CSV, JSON, page
 */
#ifndef TAC_BENCH_LOCALSGD_SWEEP_H
#define TAC_BENCH_LOCALSGD_SWEEP_H

#include <stdio.h>

#include "runs.h"
#include "tacit/dataset.h"
#include "tacit/localsgd_sim.h"
#include "tacit/options.h"

typedef struct sweep_options {
    /* The grid. */
    const char *sync;       /* "local,slowmo,diloco" */
    const char *sync_every; /* "1,2,4,...,128" */
    const char *compress;   /* "none,int8": of every method; the per-step
                               baseline has its own list */
    const char *baseline_compress;
    const char *lrs; /* "auto" or a list that is searched */
    int64_t seeds;   /* 1, 2, ...: number of seeds */
    /* What is trained. */
    const char *model, *data, *optimizer, *shards, *precision, *emulate;
    const char *data_dir;
    int64_t batch; /* a rank and micro-step; 0: sweep_plan chooses */
    double epochs;
    int64_t steps;     /* micro-steps, instead of epochs; 0: not given */
    const char *extra; /* further options of ddp_train, split at blanks */
    /* How. */
    int64_t ranks, threads;
    const char *launch, *program;
    int64_t timeout_s;
    /* What is told. */
    const char *networks; /* names of tac_sim_networks */
    const char *out;      /* folder of runs and results */
    const char *html, *csv, *json, *svg;
    int quick, fresh, dry_run, quiet;
    const char *config;
} sweep_options;

/* What one line of the grid is, before seeds: a method at an H. */
typedef struct sweep_case {
    char label[64]; /* "local H=16", "per-step fp16", "accumulate 16" */
    char sync[16];  /* as of ddp_train */
    int64_t every;  /* H of local modes; 1 for grad; 0: none */
    int64_t accumulate;
    char compress[64];
    int baseline;   /* per-step, accumulation, one-shot, no averaging */
    int64_t steps;  /* optimizer steps, so that all have the same samples */
    double lr;      /* that the search chose; NaN: not yet */
    int lr_at_edge; /* the best was the smallest (-1) or largest (1) tried */
    double sync_alone_s; /* of one synchronisation; NaN: not measured */
    int failed;          /* a run ended neither well nor diverged */
} sweep_case;

enum { SWEEP_NETWORKS = 16 };

/* One run that counts. Bytes are of one rank. */
typedef struct sweep_row {
    size_t of; /* index of the case */
    int64_t seed;
    double lr;
    int64_t steps, samples, syncs;
    double bytes_predicted, bytes_counted;
    int predictable;
    double wall_s;           /* of training, evaluations not counted */
    double wall_predicted_s; /* compute alone + communication alone, nothing
                                overlapped; NaN: not measured */
    int diverged;
    double modelled_s[SWEEP_NETWORKS];
    double train_loss, eval_loss, eval_accuracy, test_accuracy, local_accuracy,
        consensus_distance;
    run_point *evals; /* borrowed of the result */
    size_t n_evals;
    run_result result;
} sweep_row;

/* Every learning rate that was tried, for the page. */
typedef struct sweep_trial {
    size_t of;
    double lr, eval_loss, eval_accuracy;
} sweep_trial;

typedef struct sweep {
    const sweep_options *o;
    tac_context *ctx;
    runs runs;
    /* sweep_plan.c */
    double *lrs; /* ascending */
    size_t n_lrs;
    int64_t epoch_batches; /* micro-steps of an epoch, of a rank */
    int64_t too_long; /* least H of the grid that no epoch has room for, so that
                         there is no `accumulate` H from it on; 0: none */
    int64_t micro_steps; /* of a rank and run, in all */
    size_t train_count, val_count, test_count;
    sweep_case *cases;
    size_t n_cases;
    sweep_row *rows;
    size_t n_rows, cap_rows;
    sweep_trial *trials;
    size_t n_trials, cap_trials;
    const tac_sim_network_entry *networks[SWEEP_NETWORKS];
    int n_networks;
    /* Measured apart, before the grid: */
    double compute_s;  /* an attempt, mean over ranks and attempts, from a run
                          with --sync none */
    double *attempt_s; /* (attempts, ranks), the same run's attempt times */
    int64_t n_attempts;
    double update_s;      /* of an attempt: the optimizer's part, on rank 0 */
    int64_t layers;       /* of the model */
    double *layer_params; /* (layers) */
    double params;
    int world;
    int oversubscribed;
    size_t runs_planned, runs_done; /* planned: grows with a search's ends */
    double executed_s;              /* of those that were not there already */
    size_t executed;
    const char *command; /* as typed, for the page; NULL: from the options */
    const char *failed;  /* first case that failed, for the exit code */
} sweep;

/* sweep_lists.c: lists of an option's text. Strings are malloc'd in one block
 * with the array: free it. Errors: CONFIG, with the nearest name; NOMEM. */
tac_status sweep_list_words(tac_context *ctx, const char *option,
                            const char *text, char ***out, size_t *n);
/* Words that are one of `known` ("a|b|c"). */
tac_status sweep_list_names(tac_context *ctx, const char *option,
                            const char *text, const char *known, char ***out,
                            size_t *n);
/* Codecs, whose own options follow after commas: "int8,noef,fp16" are two. */
tac_status sweep_list_codecs(tac_context *ctx, const char *option,
                             const char *text, char ***out, size_t *n);
/* Positive numbers, ascending, each once. */
tac_status sweep_list_numbers(tac_context *ctx, const char *option,
                              const char *text, double **out, size_t *n);

/* sweep_setup.c: those of "eth-1g,wan-100m", or "all", in the order in which
 * they are known; out has SWEEP_NETWORKS entries. */
tac_status sweep_networks(tac_context *ctx, const char *text,
                          const tac_sim_network_entry **out, size_t *count);

/* sweep_options.c: the table; what --quick changes; what no row can check. */
extern const tac_option sweep_table[];
tac_status sweep_options_resolve(tac_context *ctx, tac_options *t,
                                 sweep_options *o);

/* sweep_plan.c: cases, learning rates and steps from options. Chooses
 * o->batch. */
tac_status sweep_plan(sweep *s, sweep_options *o);
/* sweep_layers.c: s->layers, layer_params, params, from the model. */
tac_status sweep_layers(sweep *s, const tac_dataset *set);
/* sweep_estimate.c: for --dry-run: what all of it would take and send, from two
 * short runs. */
tac_status sweep_estimate(sweep *s);

/* sweep_args.c: what ddp_train is told. */
typedef struct sweep_args {
    const char *argv[96];
    size_t n;
    char text[24][40]; /* of numbers */
    size_t texts;
    char sync[16], compress[64]; /* of the case, which need not live on */
    char *extra;                 /* owned */
} sweep_args;
tac_status sweep_args_make(const sweep *s, const sweep_case *k, double lr,
                           int64_t seed, sweep_args *out);
/* Adds "--key value"; value NULL: a switch. */
void sweep_args_add(sweep_args *a, const char *key, const char *value);
void sweep_args_add_int(sweep_args *a, const char *key, int64_t value);
void sweep_args_free(sweep_args *a);

/* sweep_measure.c: compute alone (--sync none with --attempt-times), then
 * communication alone (--skip-compute) of each way to synchronise: its seconds
 * for one. wall_predicted_s of a row = sum over intervals of the slowest rank's
 * sum of attempt times, plus syncs times that. */
tac_status sweep_measure_compute(sweep *s);
tac_status sweep_measure_sync(sweep *s);
double sweep_predict(const sweep *s, const sweep_row *row);
/* sweep_attempts.c: the file of --attempt-times into s->attempt_s. */
tac_status sweep_read_attempts(sweep *s, const char *path);
/* sweep_row.c: from a run's result, which it takes over. */
void sweep_row_make(const sweep *s, size_t of, double lr, int64_t seed,
                    run_result *result, sweep_row *out);
void sweep_row_free(sweep_row *row);
/* sweep_run.c: search and seeds; calls sweep_print_row for each. */
tac_status sweep_run(sweep *s);
/* A run, counted and timed for the progress line. */
tac_status sweep_do(sweep *s, const char *name, const char *what,
                    const sweep_args *args, run_result *out);
/* sweep_model.c: modelled_s of each row from tac_sim_run. */
tac_status sweep_model(sweep *s);
/* sweep_pareto.c: is the row's case on the front of (bytes, error), of means
 * over seeds? out has n_cases entries. */
void sweep_pareto(const sweep *s, int *out);
/* sweep_print.c: the table while it goes; sweep_table.c: means at the end. */
void sweep_print_begin(const sweep *s);
void sweep_print_row(const sweep *s, const sweep_row *row);
void sweep_print_measured(const sweep *s); /* compute and sync alone */
void sweep_print_progress(const sweep *s, const char *what);
/* What may have changed under the progress line. */
void sweep_print_clear(const sweep *s);
void sweep_print_end(const sweep *s);
/* sweep_finding.c: what it amounts to, in words, into `f`: a sentence a line.
 */
void sweep_finding(const sweep *s, FILE *f);
/* sweep_check.c: does every row have the same samples, and as many bytes as
 * were predicted? Says so loudly. Errors: MISMATCH. */
tac_status sweep_check(sweep *s);
/* sweep_files.c */
tac_status sweep_write_csv(const sweep *s, const char *path);
tac_status sweep_write_json(const sweep *s, const char *path);
/* sweep_page*.c: one self-contained HTML file. */
tac_status sweep_write_page(const sweep *s, const char *path);
/* sweep_svg.c: accuracy against H, and bytes against error, as a picture. */
tac_status sweep_write_svg(const sweep *s, const char *path);

#endif
