/* tacit/trainer.h: the third level of interface: give arguments, a model, data
 * and a function that measures, and call train.
 *
 *     tac_training_args args = TAC_TRAINING_ARGS_INIT;
 *     tac_trainer_config config = {.struct_size = sizeof config, .args = &args,
 *                                  .train_dataset = train,
 *                                  .eval_dataset = eval,
 *                                  .compute_metrics = accuracy};
 *
 *     args.output_dir = "run";
 *     args.eval_strategy = "epoch";
 *     args.fp16 = 1;
 *     tac_trainer_create(ctx, comm, &config, &trainer);
 *     tac_trainer_train(trainer, NULL, &output);
 *
 * ddp_train is a client of this object. Underneath are the replica (replica.h)
 * and the loop that the other levels have, too: the same model, data, seed and
 * settings end with the same bits on all of them.
 *
 * Every call is collective: all ranks of the communicator make it, with the
 * same arguments, and all return the same verdict. Of a context that tac_launch
 * made a failure is told once, by one rank; with one of your own each rank logs
 * what it met. A rank that fails alone in training aborts the communicator, so
 * that nobody waits for it.
 *
 * Thread-safety: one thread at a time a trainer. */
#ifndef TACIT_TRAINER_H
#define TACIT_TRAINER_H

#include <signal.h>
#include <stdio.h>

#include "tacit/checkpoint.h"
#include "tacit/comm.h"
#include "tacit/dataset.h"
#include "tacit/replica.h"
#include "tacit/summary.h"
#include "tacit/train_config.h"
#include "tacit/training_args.h"

TAC_BEGIN_DECLS

typedef struct tac_trainer tac_trainer;

/* A value with its name: "f1", which logs show as "eval_f1". */
typedef tac_checkpoint_metric tac_metric;
enum { TAC_TRAINER_METRICS = 13 }; /* at most, of compute_metrics */

/* All samples of an evaluation, each once, in the order of the dataset. */
typedef struct tac_eval_prediction {
    const float *logits;   /* (n,classes) */
    const int32_t *labels; /* (n) */
    size_t n, classes;
} tac_eval_prediction;

/* Measures: fills in up to TAC_TRAINER_METRICS values and their number. Called
 * on rank 0, whose values all ranks get. "loss" is the trainer's own name;
 * "accuracy" takes the place of its own. A failure, after tac_fail, ends the
 * evaluation on all ranks. */
typedef tac_status tac_compute_metrics_fn(void *arg, tac_context *ctx,
                                          const tac_eval_prediction *p,
                                          tac_metric *out, size_t *n);

/* ---- callbacks ------------------------------------------------------------
 */

/* Where the run is. Losses are of all ranks; NaN: not known yet. */
typedef struct tac_trainer_state {
    uint64_t global_step; /* applied optimizer steps */
    uint64_t attempts;    /* skipped ones included: the place in the data */
    uint64_t max_steps;   /* attempts in all */
    double epoch;         /* passes over the data so far, with a fraction */
    double loss;          /* of the last logged interval */
    double learning_rate; /* of the last applied step */
    double eval_loss, eval_accuracy;
    const tac_metric *metrics; /* of compute_metrics, borrowed */
    size_t n_metrics;
    double best_metric; /* of metric_for_best_model */
    int rank, world, is_world_process_zero;
} tac_trainer_state;

/* What a callback wants. Flags of all ranks are combined after each step and
 * each evaluation: what one wants, all do at the same step. They are cleared
 * when that is done. */
typedef struct tac_trainer_control {
    int should_stop;     /* training ends after this step */
    int should_evaluate; /* after this step, whatever the strategy */
    int should_save;     /* needs an output folder and a save_strategy */
    int should_log;
} tac_trainer_control;

typedef void tac_trainer_event(void *arg, tac_trainer *t,
                               const tac_trainer_state *state,
                               tac_trainer_control *control);

/* Any of the functions may be NULL. The order of a step is step_begin,
 * step_end, epoch_end if it is an epoch's last (or the run's), then log,
 * evaluate, save as they are due. Called on every rank, by the thread that
 * trains. A trainer whose ranks have none but train_begin and train_end
 * communicates no more than one without callbacks; else 16 bytes a step. */
typedef struct tac_trainer_callback {
    void *arg;
    tac_trainer_event *on_train_begin;
    tac_trainer_event *on_epoch_begin;
    tac_trainer_event *on_step_begin;
    tac_trainer_event *on_step_end;
    tac_trainer_event *on_epoch_end;
    tac_trainer_event *on_log;
    tac_trainer_event *on_evaluate;
    tac_trainer_event *on_save;
    tac_trainer_event *on_train_end;
} tac_trainer_callback;

/* ---- the trainer ----------------------------------------------------------
 */

/* Start from {.struct_size = sizeof(tac_trainer_config)}. What it points to is
 * borrowed for the trainer's life, datasets are retained. */
typedef struct tac_trainer_config {
    size_t struct_size;
    const tac_training_args *args; /* one of the two */
    const tac_train_config *config;
    const struct tac_model_source
        *model; /* NULL: the configuration's "model" */
    /* NULL train_dataset: all three are those of the configuration's "data",
     * loaded once a process. Else NULL eval_dataset: nothing is evaluated;
     * test_dataset is evaluated once, after training. */
    tac_dataset *train_dataset, *eval_dataset, *test_dataset;
    tac_compute_metrics_fn *compute_metrics; /* NULL: loss and accuracy alone */
    void *metrics_arg;
    const tac_trainer_callback *callbacks; /* (n_callbacks), in this order */
    size_t n_callbacks;
    /* Looked at between steps: not 0 on any rank: the run ends soon, on all at
     * the same step, with a checkpoint if it saves any. A program's signal
     * handler sets it. NULL: none. */
    const volatile sig_atomic_t *stop;
    FILE *out; /* rank 0 writes about the run; NULL: nothing is printed */
} tac_trainer_config;

/* Checks and compares the configuration of all ranks and loads data. Errors:
 * ARG, CONFIG, MISMATCH, those of data and model, NOMEM. */
TAC_API tac_status tac_trainer_create(tac_context *ctx, tac_comm *comm,
                                      const tac_trainer_config *config,
                                      tac_trainer **out);
TAC_API void tac_trainer_destroy(tac_trainer *t); /* NULL is legal */

/* What training came to. Strings and metrics of `summary` are the trainer's. */
typedef struct tac_train_output {
    uint64_t global_step, attempts;
    double training_loss; /* of the last epoch */
    double eval_loss, eval_accuracy;
    const tac_metric *metrics; /* of the last evaluation, the trainer's */
    size_t n_metrics;
    double best_metric;
    uint64_t params_hash;
    int interrupted; /* `stop` was set */
    int resumable;   /* and there is a checkpoint of that step */
    tac_summary summary;
} tac_train_output;

/* Trains. `resume`: "auto" (the run folder's latest checkpoint, or from the
 * start if there is none) or a checkpoint's folder; NULL:
 * resume_from_checkpoint, or from the start. Once; once more with `resume`.
 * *out (may be NULL) is filled in also when the run was interrupted. Errors:
 * those of create; DIVERGED; INTERRUPTED (the run was stopped and did what was
 * due; see out->resumable); STATE. */
TAC_API tac_status tac_trainer_train(tac_trainer *t, const char *resume,
                                     tac_train_output *out);

typedef struct tac_eval_output {
    double loss, accuracy;
    size_t samples;            /* each counted once */
    const tac_metric *metrics; /* the trainer's, until its next call */
    size_t n_metrics;
} tac_eval_output;

/* Loss, accuracy and metrics of `set` (NULL: eval_dataset), of the parameters
 * as they are, before training the initial ones; in local modes of the average.
 * Errors: ARG for another shape; STATE without a dataset. */
TAC_API tac_status tac_trainer_evaluate(tac_trainer *t, tac_dataset *set,
                                        tac_eval_output *out);

/* As evaluate, with the logits, on every rank: *p holds arrays of the
 * trainer's, valid until its next call. */
TAC_API tac_status tac_trainer_predict(tac_trainer *t, tac_dataset *set,
                                       tac_eval_prediction *p,
                                       tac_eval_output *out);

/* Rank 0 writes <dir>/model.safetensors (the folder is made), with the names
 * and shapes of tacit/model.h. */
TAC_API tac_status tac_trainer_save_model(tac_trainer *t, const char *dir);

/* The replica, for those who want to look at it; NULL before training or
 * evaluation. */
TAC_API tac_replica *tac_trainer_replica(tac_trainer *t);

TAC_END_DECLS

#endif
