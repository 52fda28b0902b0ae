/* tacit/accelerator.h: the second level of interface: your own loop, without
 * scaler, autocast, reducer or sampler in sight. The names are those of Hugging
 * Face's Accelerate; docs/accelerator.md has the table and the differences.
 *
 *     tac_accelerator_create(ctx, comm, &config, &a);
 *     tac_accelerator_prepare(a, &parts);
 *     for (epoch = 0; epoch < tac_accelerator_epochs(a); epoch++) {
 *         tac_accelerator_start_epoch(a, epoch);
 *         while (tac_accelerator_next(a, &batch) >= 0 && batch) {
 *             tac_accelerator_accumulate(a);         optional
 *             tac_accelerator_forward(a);
 *             tac_accelerator_backward(a);
 *             tac_accelerator_clip_grad_norm(a, 1);  optional
 *             tac_accelerator_step(a);
 *             tac_accelerator_zero_grad(a);
 *         }
 *     }
 *
 * Underneath is a tac_replica (replica.h), as under the trainer: the same
 * model, data, seed and settings end with the same bits.
 *
 * Calls are collective unless told otherwise: all ranks make the same ones in
 * the same order. A call out of order is a STATE error that names the call that
 * is missing. Thread-safety: one thread at a time an accelerator. */
#ifndef TACIT_ACCELERATOR_H
#define TACIT_ACCELERATOR_H

#include <stdio.h>

#include "tacit/checkpoint.h"
#include "tacit/dataset.h"
#include "tacit/replica.h"
#include "tacit/train_config.h"

TAC_BEGIN_DECLS

typedef struct tac_accelerator tac_accelerator;

/* Start from {.struct_size = sizeof(tac_accelerator_config)}; what is 0 or NULL
 * is as in `base`. Strings are borrowed for the accelerator's life. */
typedef struct tac_accelerator_config {
    size_t struct_size;
    const char *mixed_precision; /* "no", "fp16", "bf16" */
    int64_t gradient_accumulation_steps;
    int gradient_checkpointing;
    const char *project_dir;      /* for log; NULL: no file */
    FILE *out;                    /* rank 0 logs there as well; NULL: nowhere */
    const tac_train_config *base; /* all that has no name here; NULL: defaults
                                     of ddp_train's table. Borrowed for create
                                     alone, its strings for life */
} tac_accelerator_config;

/* Local: no communication. Errors: ARG, CONFIG, NOMEM. */
TAC_API tac_status tac_accelerator_create(tac_context *ctx, tac_comm *comm,
                                          const tac_accelerator_config *config,
                                          tac_accelerator **out);
TAC_API void tac_accelerator_destroy(tac_accelerator *a); /* NULL is legal */

/* Model, optimizer, scheduler and data, to be made one run of. What is 0 or
 * NULL is as in `base`. */
typedef struct tac_prepare_config {
    size_t struct_size;
    const tac_model_source *model; /* NULL: base's */
    tac_dataset *train_dataset;    /* retained */
    tac_dataset *eval_dataset;     /* may be NULL; retained */
    int64_t batch_size;            /* a rank and micro-step */
    int64_t eval_batch_size;
    const char *optimizer; /* "adamw", "adafactor", "adamw8bit", "sgd" */
    double learning_rate;
    double weight_decay;      /* with `optimizer`: as given, 0 is none */
    const char *lr_scheduler; /* "linear", "cosine", "constant" */
    int64_t num_warmup_steps;
    double num_train_epochs;
    int64_t max_train_steps; /* optimizer steps, instead of epochs */
    uint64_t seed;
} tac_prepare_config;

/* Compares settings and numbers of samples of all ranks, builds everything on
 * every rank, and makes all ranks equal. Errors, on all ranks: CONFIG (a value
 * that ddp_train's table of options would not take; more memory than the host
 * has, with what would fit), those of model and data, MISMATCH. */
TAC_API tac_status tac_accelerator_prepare(tac_accelerator *a,
                                           const tac_prepare_config *parts);

/* ---- training -------------------------------------------------------------
 */

/* Epochs in all; and the first one to run: 0, or where load_state left off. */
TAC_API uint64_t tac_accelerator_epochs(const tac_accelerator *a);
TAC_API uint64_t tac_accelerator_epoch(const tac_accelerator *a);
/* From the start of `epoch`; after load_state, and for the epoch of that state,
 * from where it was saved. */
TAC_API tac_status tac_accelerator_start_epoch(tac_accelerator *a,
                                               uint64_t epoch);
/* The next batch of this rank, borrowed until the next call; *out NULL: the
 * epoch is over, or all steps are made. */
TAC_API tac_status tac_accelerator_next(tac_accelerator *a,
                                        const tac_batch **out);
/* This batch is one of a group of gradient_accumulation_steps: only the last of
 * the group, or of the epoch, synchronizes and steps. The step is that of one
 * batch of all samples of the group, also where groups or batches are smaller.
 * Before forward. Without it each batch is a group of its own. */
TAC_API tac_status tac_accelerator_accumulate(tac_accelerator *a);
/* This batch's gradients stay on this rank; step, clip and zero_grad do
 * nothing. Before forward, which it covers as well as backward. Gradients are
 * added up, each batch's a mean over its own samples, as in PyTorch. */
TAC_API tac_status tac_accelerator_no_sync(tac_accelerator *a);
/* 1: this batch is the last of its group. */
TAC_API int tac_accelerator_sync_gradients(const tac_accelerator *a);

/* Outputs and loss, in the region of autocast; of a batch of tac_accelerator_
 * eval_next without gradients. */
TAC_API tac_status tac_accelerator_forward(tac_accelerator *a);
/* Loss over the group's samples, times the scale, backwards; and gradients are
 * averaged over ranks if sync_gradients. */
TAC_API tac_status tac_accelerator_backward(tac_accelerator *a);
/* Of unscaled gradients; nothing off the synchronizing batch. */
TAC_API tac_status tac_accelerator_clip_grad_norm(tac_accelerator *a,
                                                  double max_norm);
/* The optimizer's step, the scale's update and one step of the learning rate,
 * unless gradients had inf or NaN; nothing off the synchronizing batch. Errors:
 * DIVERGED after base's max_skips skipped in a row. */
TAC_API tac_status tac_accelerator_step(tac_accelerator *a);
TAC_API int
tac_accelerator_optimizer_step_was_skipped(const tac_accelerator *a);
/* The next backward overwrites gradients. Nothing off the synchronizing batch.
 */
TAC_API tac_status tac_accelerator_zero_grad(tac_accelerator *a);

/* Applied optimizer steps; the rate of the last of them. Local. */
TAC_API uint64_t tac_accelerator_steps(const tac_accelerator *a);
TAC_API double tac_accelerator_lr(const tac_accelerator *a);
/* Mean loss and accuracy over all ranks' samples since the last call. */
TAC_API tac_status tac_accelerator_take_metrics(tac_accelerator *a,
                                                tac_metrics *out);
TAC_API tac_status tac_accelerator_params_hash(tac_accelerator *a,
                                               uint64_t *out);
/* For those who want to look: NULL before prepare. */
TAC_API tac_replica *tac_accelerator_replica(tac_accelerator *a);

/* ---- local SGD ------------------------------------------------------------
 */

/* From now on gradients are not averaged; parameters are, in every `every`-th
 * call of localsgd_step, by localsgd/. Between groups. Other settings are
 * base's. Errors: STATE, CONFIG. */
TAC_API tac_status tac_accelerator_localsgd_begin(tac_accelerator *a,
                                                  int64_t every);
/* After each step. Nothing off the synchronizing batch. */
TAC_API tac_status tac_accelerator_localsgd_step(tac_accelerator *a);
/* Averages what is not yet; optimizer and scaler of all ranks become those of
 * rank 0, so that averaging gradients keeps ranks equal. */
TAC_API tac_status tac_accelerator_localsgd_end(tac_accelerator *a);

/* ---- evaluation -----------------------------------------------------------
 */

TAC_API tac_status tac_accelerator_eval_start(tac_accelerator *a);
/* As next, of eval_dataset in its order. */
TAC_API tac_status tac_accelerator_eval_next(tac_accelerator *a,
                                             const tac_batch **out);
/* The logits of the last forward as f32 (count,classes) into `out`. Local. */
TAC_API tac_status tac_accelerator_logits(tac_accelerator *a, float *out);
/* Rows of `row_bytes` of this batch's samples, of all ranks, each sample of the
 * dataset once and in its order: samples that only fill up the last batch are
 * left out. *out is the accelerator's, until its next call; *n rows. */
TAC_API tac_status tac_accelerator_gather_for_metrics(tac_accelerator *a,
                                                      const void *rows,
                                                      size_t row_bytes,
                                                      const void **out,
                                                      size_t *n);
/* `bytes` of each rank, in rank order; the same number on all ranks. */
TAC_API tac_status tac_accelerator_gather(tac_accelerator *a, const void *data,
                                          size_t bytes, const void **out);
/* Sums (or means) over ranks, in place. */
TAC_API tac_status tac_accelerator_reduce(tac_accelerator *a, double *values,
                                          size_t n, int mean);
/* The whole eval_dataset: loss and accuracy, each sample counted once. */
TAC_API tac_status tac_accelerator_evaluate(tac_accelerator *a,
                                            tac_metrics *out);

/* ---- state ----------------------------------------------------------------
 */

/* A checkpoint <dir>/step-N of everything that the next step depends on, and
 * <dir>/latest (checkpoint.h); after zero_grad, outside of local SGD. Errors,
 * on all ranks: STATE, IO. */
TAC_API tac_status tac_accelerator_save_state(tac_accelerator *a,
                                              const char *dir);
/* The latest under `dir`, or the checkpoint `dir`: training goes on to the same
 * bits. After prepare, with the same model, settings and number of samples; a
 * checkpoint of another number of ranks or another accumulation is refused.
 * Errors: DATA, MISMATCH. */
TAC_API tac_status tac_accelerator_load_state(tac_accelerator *a,
                                              const char *dir);

/* ---- for the program ------------------------------------------------------
 */

TAC_API int tac_accelerator_is_main_process(const tac_accelerator *a);
TAC_API tac_status tac_accelerator_wait_for_everyone(tac_accelerator *a);
/* Rank 0 alone does something: a line of <project_dir>/metrics.jsonl,
 * {"step": .., "name": ..}, and one for people to config.out. Not collective.
 * Errors: IO. */
TAC_API tac_status tac_accelerator_log(tac_accelerator *a,
                                       const tac_checkpoint_metric *values,
                                       size_t n);

TAC_END_DECLS

#endif
