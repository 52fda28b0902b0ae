/* One run of a trainer on one rank: what train.c builds, epochs.c drives and
 * report.c tells. */
#ifndef TAC_DDP_RUN_H
#define TAC_DDP_RUN_H

#include "memory.h"
#include "progress.h"
#include "tacit/checkpoint.h"
#include "tacit/replica.h"
#include "tacit/summary.h"
#include "tacit/trainer.h"
#include "rank.h"

/* One of the three parts of the data, as this rank walks through it. */
typedef struct tac__part {
    tac_sampler *sampler;
    tac_loader *loader;
} tac__part;

/* What was spent over the life of a run, which several processes may share. */
typedef struct tac__totals {
    uint64_t bytes_logical, bytes_wire, bytes_between_hosts; /* of this rank */
    uint64_t bytes_sync_logical, bytes_sync_wire;
    double cpu_s;
} tac__totals;

typedef struct tac__run {
    tac__rank *rank;
    const tac_train_config *config;
    struct tac_trainer *trainer;   /* whose run it is */
    const tac_model_source *model; /* NULL: the configuration's */
    FILE *out;                     /* NULL: nothing is printed */
    int trains;                    /* 0: opened to evaluate alone */
    tac_data data;
    tac__part train, val, test;
    tac_replica *replica;
    uint64_t epoch_steps, total_steps, step;
    uint64_t epoch; /* that is under way */
    int stopped;    /* all ranks agreed to stop early */
    int64_t samples;
    double dropped_samples;  /* of this rank, since ranks last told each other:
                                counted in `samples`, but not trained */
    double begin_s, train_s; /* start of training; seconds in steps */
    double logged_s;         /* start of the present logging interval */
    int64_t logged_samples;
    double logged_exposed_s;
    tac_metrics epoch_sum;  /* of the present epoch, over all ranks */
    tac_metrics interval;   /* since the last line of metrics.jsonl, likewise */
    tac_metrics logged;     /* of that line */
    uint64_t next_exchange; /* step after which ranks look at each other */
    double exchanged_s;     /* time of the last exchange */
    uint64_t exchanged_step;
    tac_metrics last_eval;
    tac_metrics own_eval; /* of the replicas before their last average */
    uint64_t sync_wire;   /* bytes_sync_wire of all ranks, when they last told
                             each other */
    double nonfinite;     /* losses that no mean contains, over the run */
    int folder;    /* the run folder, locked, on rank 0, plus 1; 0: none */
    FILE *metrics; /* metrics.jsonl on rank 0; NULL: none */
    tac_json *line;
    tac__progress progress;
    tac_summary summary;
    tac_memory_row memory_rows[TAC__MEMORY_KINDS];
    tac_memory_summary memory;        /* of them */
    int saving;                       /* --save-every is on */
    uint64_t evaluated_step;          /* that last_eval is of; 0: none */
    const tac_checkpoint_metric *own; /* of compute_metrics, then */
    size_t n_own;
    int own_metrics; /* the trainer has compute_metrics */
    tac_metric own_values[TAC_TRAINER_METRICS];
    double best_metric;        /* so far; NaN: none */
    int improved;              /* the evaluation of this step was the best */
    tac_trainer_control asked; /* by callbacks, of all ranks */
    int halted;                /* a callback ended training */
    char *save_root;           /* folder of checkpoints; NULL: not saving */
    uint64_t saved_step; /* of the last checkpoint, or that resumed from */
    char *resumed_from;  /* a checkpoint; NULL: from the start */
    uint64_t resumed_attempts, resumed_applied; /* of that checkpoint */
    int resumed_world;                          /* ranks that saved it */
    int regrouped;      /* there were other numbers of ranks in its life */
    int resuming;       /* loaded, and no step made since */
    tac__totals before; /* of the processes before this one */
    double before_s;    /* their time in training */
    int has_report;     /* report.html was written */
    int verified;       /* all replicas were found to be equal in the end */
    struct tac__attempt_times *attempt_times; /* NULL: not asked for */
    int reached; /* --target-accuracy: training is over */
    int agreed;  /* the failure under way is known to all ranks */
} tac__run;

/* train.c: stages, each agreed on by all ranks. Data is there. */
/* Builds everything; `trains`: with files, and what --resume says. */
tac_status tac__run_open(tac__run *run, int trains);
/* Trains, tests, tells. Errors: INTERRUPTED after a signal. */
tac_status tac__run_train(tac__run *run);
void tac__run_close(tac__run *run); /* all but the data */
tac_status tac__run_agree(tac__run *run, tac_status mine);
/* A sampler and a loader over `set`, in its order. */
tac_status tac__part_open(tac__run *run, tac_dataset *set, tac__part *part);
void tac__part_close(tac__part *part);

/* epochs.c: all training steps and evaluations. */
tac_status tac__run_epochs(tac__run *run);
/* attempt.c: the micro-steps of one attempt; *computed: it was not dropped;
 * *done: there was none, as the epoch is over. */
tac_status tac__run_attempt(tac__run *run, tac_micro *micro, int *computed,
                            int *done);
/* meet.c: sums over ranks of what happened since the last call; and does any
 * rank want to stop? A loss that is not finite ends the run unless the scaler
 * skipped its step; then it is for the scaler to say when enough were skipped.
 */
tac_status tac__run_meet(tac__run *run);
/* validate.c: */
/* Loss and accuracy over all ranks, each sample counted once. */
tac_status tac__run_evaluate(tac__run *run, tac__part *part, tac_metrics *out);
/* Of the validation samples, which is told and kept as the last one. */
tac_status tac__run_validate(tac__run *run);
/* What each rank's own model is worth, before the last average. */
tac_status tac__run_evaluate_own(tac__run *run);

/* trainer_callbacks.c: */
enum {
    TAC__TRAIN_BEGIN,
    TAC__EPOCH_BEGIN,
    TAC__STEP_BEGIN,
    TAC__STEP_END,
    TAC__EPOCH_END,
    TAC__LOG,
    TAC__EVALUATE,
    TAC__SAVE,
    TAC__TRAIN_END
};
void tac__callbacks_tell(tac__run *run, int event);
/* Collective, if any rank has callbacks: what all ranks' want is what this one
 * wants, too. */
tac_status tac__callbacks_agree(tac__run *run);

/* trainer_predict.c: */
/* Logits and labels of the whole part in the order of its dataset, on all
 * ranks; malloc'd. Sums over this rank into *m. */
tac_status tac__run_predict_all(tac__run *run, tac__part *part, tac_metrics *m,
                                float **logits, int32_t **labels);
/* Evaluates with compute_metrics, if there is one: into run->own_values. */
tac_status tac__run_measure(tac__run *run, tac__part *part, tac_metrics *m);
/* A value of compute_metrics; `otherwise`: there is none of this name. */
double tac__run_own(const tac__run *run, const char *name, double otherwise);

/* target.c: after an evaluation: is it as good as --target-accuracy wants? */
void tac__target_check(tac__run *run);

/* Does this rank print? */
int tac__report_speaks(const tac__run *run);
/* report_plan.c: before training. No-ops but on rank 0, as what follows. */
void tac__report_banner(tac__run *run);
/* local_warn.c: of intervals that the run is too short for. */
void tac__local_warn(const tac__run *run);
void tac__report_plan(tac__run *run);
/* report.c: */
/* At the end of a logging interval; m holds sums over all ranks. */
void tac__report_interval(tac__run *run, const tac_metrics *m);
void tac__report_eval(tac__run *run, const tac_metrics *m);
/* A checkpoint was saved, which took so long. */
void tac__report_saved(tac__run *run, double seconds);
/* The parameters are those of the best checkpoint now. */
void tac__report_best(tac__run *run, const char *checkpoint);
void tac__report_result(tac__run *run);
void tac__report_files(tac__run *run);

/* metrics.c: lines of metrics.jsonl, if there is one. */
void tac__metrics_interval(tac__run *run, const tac_metrics *m,
                           const tac__progress_sample *s);
void tac__metrics_eval(tac__run *run, double loss, double accuracy);
void tac__metrics_memory(tac__run *run);
/* The last line of a run that failed: why. */
void tac__metrics_failed(tac__run *run, tac_status s);
/* Writes what is in run->line. */
void tac__metrics_write(tac__run *run);

/* run_dir.c: rank 0's files. */
/* preflight.c: enough samples for the ranks, and to evaluate with? The data is
 * open, nothing else is. Then: for batch and accumulation? */
tac_status tac__preflight_samples(const tac__run *run);
tac_status tac__preflight_batch(const tac__run *run);
tac_status tac__run_dir_open(tac__run *run);
tac_status tac__run_dir_finish(tac__run *run);
void tac__run_dir_close(tac__run *run);

/* predict.c: what so many attempts will have made replicas exchange. Not
 * collective; of local modes the leaders know. */
typedef struct tac__prediction {
    int known;      /* 0: it depends on losses or times */
    uint64_t wire;  /* bytes_sync_wire of all ranks */
    uint64_t syncs; /* the last average included */
} tac__prediction;
tac_status tac__run_predict(const tac__run *run, uint64_t attempts,
                            tac__prediction *out);

/* finish.c: collective: totals over ranks into the summary; the trace. */
tac_status tac__run_summarize(tac__run *run);
tac_status tac__run_write_trace(tac__run *run);
/* How often replicas were averaged so far. */
uint64_t tac__run_syncs(const tac__run *run);
/* This rank's, of all processes of the run so far. */
tac__totals tac__run_totals(const tac__run *run);

#endif
