/* Saving a run and going on with it: docs/checkpoints.md. */
#ifndef TAC_DDP_SAVE_H
#define TAC_DDP_SAVE_H

#include "run.h"
#include "tacit/checkpoint.h"

/* Exit code of a run that a signal ended after its state was saved (EX_TEMPFAIL
 * of sysexits.h: try again). */
enum { TAC__EXIT_RESUMABLE = 75 };

/* The files of a checkpoint: weights; what ranks have in common; what a rank
 * has for itself. */
typedef enum tac__file {
    TAC__FILE_MODEL,
    TAC__FILE_STATE,
    TAC__FILE_RANK
} tac__file;
enum { TAC__FILE_NAME = 32 };
/* "model.safetensors", "rank-00003.safetensors". */
void tac__saved_name(tac__file file, int rank, char out[TAC__FILE_NAME]);

/* ---- save.c ---------------------------------------------------------------
 */

/* Collective, in set-up, once the run folder is there: where to save. */
tac_status tac__save_open(tac__run *run);
/* Is a checkpoint due after the present step? */
int tac__save_due(const tac__run *run);
/* Collective: a checkpoint of the present step. Losses must have been exchanged
 * for it. On failure all ranks return the same status, it has been told, and
 * what was saved before is still there. */
tac_status tac__save(tac__run *run);

/* Collective: all ranks get the verdict, as tac__agree_verdict. */
tac_status tac__save_agree(tac__run *run, tac_status mine);

/* ---- save_best.c ----------------------------------------------------------
 */

/* Is --best-metric one that there will be? */
tac_status tac__best_check(const tac__run *run);
/* What was evaluated at the present step, into what is written. */
void tac__best_tell(const tac__run *run, tac_checkpoint_info *info);
/* On rank 0, after publishing: `best`, and old checkpoints go. */
tac_status tac__best_publish(const tac__run *run);
/* Collective, after training, with --load-best: the best checkpoint's
 * parameters, and last_eval is of them. */
tac_status tac__best_load(tac__run *run);
/* Collective, after tac__resume_load: what is to be beaten from here on. */
tac_status tac__best_resume(tac__run *run);

/* ---- resume.c -------------------------------------------------------------
 */

/* Collective: what --resume means, into run->resumed_from (NULL: start anew);
 * does the checkpoint fit this run? Told and agreed on. */
tac_status tac__resume_find(tac__run *run);
/* Reads everything; local. After tac_replica_connect. */
tac_status tac__resume_load(tac__run *run);

/* A file of the checkpoint that is resumed from. */
struct tac_safetensors;
tac_status tac__resume_open(const tac__run *run, const char *name,
                            struct tac_safetensors **out);

/* ---- resume_world.c -------------------------------------------------------
 */

/* May as many ranks as there are now go on with what others have saved? */
tac_status tac__resume_world(const tac__run *run);
/* In local modes: does this rank's file have what all others have, too? */
tac_status tac__resume_equal(const tac__run *run,
                             const struct tac_safetensors *f);
/* The rank whose file this rank goes on from. */
int tac__resume_rank(const tac__run *run);
/* What ranks that are no more have sent is added to those that are left. */
tac_status tac__resume_totals(tac__run *run, tac__totals *totals);

/* ---- save_config.c --------------------------------------------------------
 */

/* Settings that a run can't change on its way, as metadata of a file; and are
 * those of the file this run's? */
struct tac_safetensors_writer;
tac_status tac__save_config(const tac__run *run,
                            struct tac_safetensors_writer *w);
tac_status tac__resume_config(const tac__run *run,
                              const struct tac_safetensors *f);
/* Were there other numbers of ranks before that file was saved? */
int tac__saved_was_regrouped(const struct tac_safetensors *f);
/* Has a step as many samples as before? */
tac_status tac__resume_batch(const tac__run *run,
                             const struct tac_safetensors *f);
/* Has the data that was opened as many samples, and has what options leave open
 * come to the same? */
tac_status tac__resume_data(const tac__run *run,
                            const struct tac_safetensors *f);

/* ---- resume_check.c -------------------------------------------------------
 */

/* Collective: a number that no other checkpoint has, the same on all ranks. */
tac_status tac__save_id(const tac__run *run, uint64_t *out);
/* Writes into a file's metadata of which checkpoint it is, when it was saved,
 * and of which rank it is (-1: of all). */
tac_status tac__save_mark(struct tac_safetensors_writer *w, uint64_t id,
                          uint64_t attempts, int rank);
/* Is the file `name` of this checkpoint, and of this rank? The first one that
 * is asked about says which checkpoint that is, into *id, 0 at first. */
tac_status tac__resume_mark(const tac__run *run,
                            const struct tac_safetensors *f, const char *name,
                            int rank, uint64_t *id);
/* Do the counters of that file agree with the checkpoint's attempts? */
tac_status tac__resume_counters(const tac__run *run,
                                const struct tac_safetensors *f,
                                tac__file file);

/* ---- save_state.c ---------------------------------------------------------
 */

/* For saving it is filled by tac__saved_take; after loading:
 * tac__saved_give. */
typedef struct tac__saved {
    tac__run *run;
    tac__file file;
    uint64_t id;        /* of the checkpoint; 0: unknown */
    tac__totals totals; /* of all processes of this run so far */
    double wall_s;
    float *mean; /* what the model's file shows; NULL: the parameters */
    float *room; /* malloc'd, for it; NULL: none */
} tac__saved;

/* Has each rank parameters, an optimizer and a scaler of its own? */
int tac__saved_is_apart(const tac__run *run);
/* A tac_state_walk_fn: what is in saved->file. */
tac_status tac__saved_walk(void *saved, const tac_state_visitor *v);
/* A tac_state_walk_fn of a tac__totals. */
tac_status tac__saved_walk_totals(void *totals, const tac_state_visitor *v);
tac__saved tac__saved_take(tac__run *run);
tac_status tac__saved_give(const tac__saved *saved);

/* ---- save_model.c ---------------------------------------------------------
 */

/* Local: a copy of the parameters, where a mean needs it. */
tac_status tac__save_mean_open(tac__saved *saved);
/* Collective: into saved->mean, on rank 0 at least; what local modes have under
 * way is complete afterwards. */
tac_status tac__save_mean(tac__saved *saved);
/* Shows it as if it were the parameters. */
tac_status tac__save_mean_walk(const tac__saved *saved,
                               const tac_state_visitor *v);

/* ---- resume_metrics.c -----------------------------------------------------
 */

/* Drops the lines of steps after `attempts`, and what is no line of JSON.
 * Errors: IO, NOMEM. */
tac_status tac__resume_metrics(tac_context *ctx, const char *path,
                               uint64_t attempts);

#endif
