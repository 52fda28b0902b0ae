/* tacit/checkpoint.h: a folder of files that appears whole or not at all.
 *
 *   <root>/step-00000500/           a checkpoint
 *       checkpoint.json             step, world size, format, what a reader
 *                                   wants to know first
 *       model.safetensors           weights
 *       state.safetensors           what all ranks have in common
 *       rank-00000.safetensors ...  what each rank has for itself
 *   <root>/latest                   text: "step-00000500"
 *   <root>/best                     likewise, if any was evaluated
 *
 * Publishing: files are written into "<root>/.tmp-step-00000500" and fsynced,
 * the folder is fsynced, renamed, its parent fsynced, and `latest` is replaced
 * last by the same way. A crash at any moment leaves the checkpoint before it
 * valid; a folder left over from a crash is removed by the next begin.
 *
 * The calls are local; with several ranks, rank 0 calls begin, then all ranks
 * write files into the folder of tac_checkpoint_tmp_path, then, when all have
 * succeeded, rank 0 calls publish. Thread-safety: one thread at a time. */
#ifndef TACIT_CHECKPOINT_H
#define TACIT_CHECKPOINT_H

#include <stdint.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

/* Removes what crashed runs have left in <root>, if there is such a folder: no
 * checkpoint that can be found. For one process at a time. Errors: IO. */
TAC_API tac_status tac_checkpoint_tidy(tac_context *ctx, const char *root);

/* Makes <root> (mkdir -p) and an empty temporary folder for `step`; removes
 * those of crashed runs. Errors: IO, with the path and the remedy. */
TAC_API tac_status tac_checkpoint_begin(tac_context *ctx, const char *root,
                                        uint64_t step);
/* "<root>/.tmp-step-00000500/<file>"; malloc'd, the caller frees. NULL: no
 * memory. file NULL: the folder. */
TAC_API char *tac_checkpoint_tmp_path(const char *root, uint64_t step,
                                      const char *file);
/* Fsyncs and renames the folder, then replaces `latest`. A checkpoint of the
 * same step is replaced. Files are to be fsynced by those who wrote them.
 * Errors: IO. */
TAC_API tac_status tac_checkpoint_publish(tac_context *ctx, const char *root,
                                          uint64_t step);
/* Removes the temporary folder. */
TAC_API void tac_checkpoint_discard(const char *root, uint64_t step);

/* Resolves what a user gave: a checkpoint folder, a folder with `latest`, or a
 * run folder with checkpoints/latest. *out is the checkpoint's path, malloc'd.
 * If `latest` names what is not there or is unreadable (checkpoint.json, or the
 * header of a safetensors file) or lacks files, the highest valid step is
 * taken, with a warning. Errors: DATA, "Can't find a valid checkpoint at PATH"
 * if PATH does not exist, "No valid checkpoint found in output directory PATH"
 * if there is none in it. */
TAC_API tac_status tac_checkpoint_find(tac_context *ctx, const char *path,
                                       char **out);
/* 1 if the folder of checkpoints has any, valid or not, or can't be read. */
TAC_API int tac_checkpoint_exists(const char *root);
/* "<checkpoint>/<file>", malloc'd. */
TAC_API char *tac_checkpoint_path(const char *checkpoint, const char *file);

/* What an evaluation of this very step came to. */
typedef struct tac_checkpoint_metric {
    char name[48]; /* "loss", "accuracy" */
    double value;
} tac_checkpoint_metric;
enum { TAC_CHECKPOINT_METRICS = 16 };

/* checkpoint.json, rank 0 writes it, all read it. */
typedef struct tac_checkpoint_info {
    int format;              /* 1 */
    uint64_t step, attempts; /* applied steps; steps tried */
    int world;
    char program[64]; /* "tacit 0.1.0" */
    int files;        /* .safetensors files in the folder; 0: it isn't told */
    size_t n_metrics; /* 0: it was not evaluated */
    tac_checkpoint_metric metrics[TAC_CHECKPOINT_METRICS];
} tac_checkpoint_info;
TAC_API tac_status tac_checkpoint_write_info(tac_context *ctx, const char *path,
                                             const tac_checkpoint_info *info);
/* Errors: IO; DATA, naming the file and the key. */
TAC_API tac_status tac_checkpoint_read_info(tac_context *ctx, const char *path,
                                            tac_checkpoint_info *out);
/* The value of a metric; NaN: there is none such. */
TAC_API double tac_checkpoint_metric_of(const tac_checkpoint_info *info,
                                        const char *metric);

/* ---- the best, and old ones ----------------------------------------------
 * Rank 0 alone, after publish. Both go by what is in the folder, so that a kill
 * at any moment does no harm. */

/* 1 for "loss" and names that end so; else more is better. */
TAC_API int tac_checkpoint_is_lower_better(const char *metric);
/* The checkpoint whose evaluation was best by this metric, malloc'd; of equals
 * that of the lowest step. *out NULL: none was evaluated. Errors: NOMEM. */
TAC_API tac_status tac_checkpoint_find_best(tac_context *ctx, const char *root,
                                            const char *metric, char **out);
/* Lets <root>/best name it, atomically; leaves it as it is if there is none.
 * Errors: IO, NOMEM. */
TAC_API tac_status tac_checkpoint_mark_best(tac_context *ctx, const char *root,
                                            const char *metric);
/* Removes the oldest until `keep` are left (0: all are kept), never those that
 * `latest` and `best` name: with keep 1 there may be two. Steps beyond the
 * latest, left by a run that was resumed from before them, count as the
 * oldest. What can't be removed stays, with a warning. Errors: NOMEM. */
TAC_API tac_status tac_checkpoint_rotate(tac_context *ctx, const char *root,
                                         size_t keep);

TAC_END_DECLS

#endif
