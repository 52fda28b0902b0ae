/* efficiency: the engines of efficiency (memory, communication, computation)
 * and the optimizers as one measured table.
 *
 *   options -> plan (samples, steps, rows) -> run (a learning rate, then seeds,
 *   rows interleaved) -> figures of rows -> model (networks) -> JSON; table,
 *   CSV, picture and page are made from what the JSON holds
 */
#ifndef TAC_BENCH_EFFICIENCY_H
#define TAC_BENCH_EFFICIENCY_H

#include <stdio.h>

#include "runs.h"
#include "sweep_page.h"
#include "tacit/options.h"

typedef struct eff_options {
    /* What is trained. */
    const char *model, *data, *data_dir;
    int64_t batch; /* of a rank and optimizer step */
    int64_t steps; /* optimizer steps of the baseline */
    double epochs; /* instead of steps; 0: not given */
    /* The techniques' strengths. */
    int64_t accumulate, sync_every;
    const char *mixed, *compress;
    const char *lrs;
    int64_t seeds;
    const char *extra;
    /* How. */
    int64_t ranks, threads;
    const char *emulate, *launch, *program;
    int64_t timeout_s;
    /* What is told. */
    const char *networks, *out, *html, *svg, *csv, *json, *print;
    int quick, fresh, dry_run, quiet, markdown;
    const char *config;
} eff_options;

enum {
    EFF_SEEDS = 100,
    EFF_LRS = 8,
    EFF_KINDS = 13,
    EFF_ROWS = 24,
    EFF_SEARCH = 3
};

typedef enum eff_part {
    EFF_BASELINE,
    EFF_ALONE,
    EFF_ADDED,
    EFF_OTHER
} eff_part;

/* Kinds of memory that the table shows, each a sum of ddp_train's. */
typedef enum eff_memory {
    EFF_PARAMETERS,
    EFF_GRADIENTS,
    EFF_OPTIMIZER,
    EFF_ACTIVATIONS,
    EFF_COMMUNICATION,
    EFF_AVERAGING, /* what local SGD holds beside it */
    EFF_OTHER_MEMORY,
    EFF_MEMORY
} eff_memory;

/* A technique, or several together, and what was measured. Bytes are of a
 * rank, but a sample's, which are of all ranks; missing numbers are NaN. */
typedef struct eff_row {
    char key[40];   /* "bf16", "added-local" */
    char label[64]; /* "+ local SGD, H=16" */
    eff_part part;
    /* What ddp_train is told. */
    int64_t batch, accumulate; /* batch: of a micro-step */
    int recompute;
    char sync[16];
    int64_t every;
    char precision[8], optimizer[16], compress[64];
    int64_t steps;
    double lr;
    int searches; /* 0: the rate is that of the row before with the same
                     optimizer and way to synchronise */
    size_t lr_of; /* that row */
    /* Measured. */
    double kind[EFF_KINDS], kind_predicted[EFF_KINDS];
    double memory[EFF_MEMORY], memory_total;
    int64_t samples, syncs;
    double bytes, bytes_predicted; /* in all */
    double bytes_step, bytes_sample;
    double seconds, seconds_low, seconds_high; /* a sample; median, ends */
    double compute_s;                          /* a micro-step, median */
    double modelled[SWEEP_NETWORKS];           /* a sample */
    size_t n, missing; /* seeds that trained to the end; that diverged */
    double test[EFF_SEEDS], eval[EFF_SEEDS], time[EFF_SEEDS],
        computing[EFF_SEEDS]; /* by seed; NaN */
    int made[EFF_SEEDS];      /* by seed: there was a run */
    double test_mean, test_error, eval_mean;
    double gain, gain_error; /* of test accuracy over the baseline's */
} eff_row;

typedef struct eff {
    const eff_options *o;
    tac_context *ctx;
    runs runs;
    eff_row rows[EFF_ROWS];
    size_t n_rows;
    double lrs[EFF_LRS]; /* given */
    size_t n_lrs;        /* tried by a search */
    int lrs_given;
    int64_t epoch_steps, step_count; /* of the baseline */
    size_t train_count, val_count, test_count;
    double params;
    int world, oversubscribed, tested;
    const tac_sim_network_entry *networks[SWEEP_NETWORKS];
    char network_names[SWEEP_NETWORKS][24], network_links[SWEEP_NETWORKS][48];
    size_t n_networks;
    int64_t seeds_done;
    char *command, *launch, *program;
    char model[128], data[128], how[128]; /* for pictures */
    size_t runs_done, runs_planned, executed;
    double executed_s;
} eff;

/* efficiency_options.c */
extern const tac_option eff_table[];
tac_status eff_options_resolve(tac_context *ctx, tac_options *t,
                               eff_options *o);
/* efficiency_rows.c: every technique. */
tac_status eff_rows(eff *e);
/* efficiency_plan.c: samples and steps, rates, networks. */
tac_status eff_plan(eff *e);
/* efficiency_run.c: all runs; INTERRUPTED: what is there stays. */
tac_status eff_run(eff *e);
/* efficiency_args.c: the row as ddp_train and the model are told it. Text of
 * `extra` is owned by the caller's buffer. */
typedef struct eff_told {
    sweep_options o;
    sweep_case k;
    sweep s;
    char extra[1024];
} eff_told;
tac_status eff_tell(const eff *e, const eff_row *row, eff_told *out);
/* efficiency_row.c: a run's result into its row; then means, and changes
 * against the baseline. */
void eff_row_take(eff *e, eff_row *row, int64_t seed, const run_result *r);
void eff_rows_finish(eff *e);
const char *eff_memory_name(eff_memory m);  /* "local_sgd" */
const char *eff_memory_title(eff_memory m); /* "local SGD" */
const char *eff_kind_name(size_t kind);
/* Median of those that are finite; sorts v. NaN: none. */
double eff_median(double *v, size_t n);
/* efficiency_model.c: seconds a sample on networks. */
tac_status eff_model(eff *e);
/* efficiency_check.c: the same samples in every row, bytes as predicted.
 * Errors: MISMATCH. */
tac_status eff_check(const eff *e);
/* efficiency_json.c, efficiency_read.c, efficiency_csv.c */
tac_status eff_write_json(const eff *e, const char *path);
tac_status eff_read_json(eff *e, const char *path);
tac_status eff_write_csv(const eff *e, const char *path);
/* efficiency_print.c */
void eff_print_begin(const eff *e);
void eff_print_progress(const eff *e, const char *what);
void eff_print_clear(const eff *e);
void eff_print_table(const eff *e);
/* efficiency_markdown.c: for docs/efficiency.md. */
void eff_print_markdown(const eff *e, FILE *f);
/* efficiency_finding.c: what it amounts to, a sentence a line. */
void eff_finding(const eff *e, FILE *f);
const eff_row *eff_find(const eff *e, const char *key); /* NULL: none */
/* efficiency_picture.c: an <svg> element; `file`: with its own colours. */
void eff_picture(const eff *e, FILE *f, int file);
tac_status eff_write_svg(const eff *e, const char *path);
/* efficiency_page.c */
tac_status eff_write_page(const eff *e, const char *path);

#endif
