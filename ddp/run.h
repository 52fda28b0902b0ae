/* One run of ddp_train on one rank: what train.c builds, epochs.c drives and
 * report.c tells. */
#ifndef TAC_DDP_RUN_H
#define TAC_DDP_RUN_H

#include "progress.h"
#include "tacit/replica.h"
#include "tacit/summary.h"
#include "world.h"

/* One of the three parts of the data, as this rank walks through it. */
typedef struct tac__part {
    tac_sampler *sampler;
    tac_loader *loader;
} tac__part;

typedef struct tac__run {
    tac__rank *rank;
    const tac_train_config *config;
    tac_data data;
    int owns_data;
    tac__part train, val, test;
    tac_replica *replica;
    uint64_t epoch_steps, total_steps, step;
    uint64_t epoch; /* that is under way */
    int stopped;    /* all ranks agreed to stop early */
    int64_t samples;
    double begin_s, train_s; /* start of training; seconds in steps */
    double logged_s;         /* start of the present logging interval */
    int64_t logged_samples;
    double logged_exposed_s;
    tac_metrics epoch_sum;  /* of the present epoch, over all ranks */
    tac_metrics interval;   /* since the last line of metrics.jsonl, likewise */
    uint64_t next_exchange; /* step after which ranks look at each other */
    double exchanged_s;     /* time of the last exchange */
    uint64_t exchanged_step;
    tac_metrics last_eval;
    FILE *metrics; /* metrics.jsonl on rank 0; NULL: none */
    tac_json *line;
    tac__progress progress;
    tac_summary summary;
} tac__run;

/* epochs.c: all training steps and evaluations. */
tac_status tac__run_epochs(tac__run *run);
/* Loss and accuracy over all ranks, each sample counted once. */
tac_status tac__run_evaluate(tac__run *run, tac__part *part, tac_metrics *out);

/* report.c: what rank 0 tells; no-ops elsewhere. */
void tac__report_banner(tac__run *run);
void tac__report_plan(tac__run *run);
/* At the end of a logging interval; m holds sums over all ranks. */
void tac__report_interval(tac__run *run, const tac_metrics *m);
void tac__report_eval(tac__run *run, const tac_metrics *m);
void tac__report_result(tac__run *run);
void tac__report_files(tac__run *run);

/* run_dir.c: rank 0's files. */
tac_status tac__run_dir_open(tac__run *run);
tac_status tac__run_dir_finish(tac__run *run);
void tac__run_dir_close(tac__run *run);

/* finish.c: collective: totals over ranks into the summary; the trace. */
tac_status tac__run_summarize(tac__run *run);
tac_status tac__run_write_trace(tac__run *run);

#endif
