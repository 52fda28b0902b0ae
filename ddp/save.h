/* Saving a run and going on with it: docs/checkpoints.md. */
#ifndef TAC_DDP_SAVE_H
#define TAC_DDP_SAVE_H

#include "run.h"
#include "tacit/checkpoint.h"

/* Exit code of a run that a signal ended after its state was saved (EX_TEMPFAIL
 * of sysexits.h: try again). */
enum { TAC__EXIT_RESUMABLE = 75 };

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

/* ---- resume.c -------------------------------------------------------------
 */

/* Collective: what --resume means, into run->resumed_from (NULL: start anew);
 * does the checkpoint fit this run? Told and agreed on. */
tac_status tac__resume_find(tac__run *run);
/* Reads everything; local. After tac_replica_connect. */
tac_status tac__resume_load(tac__run *run);

/* ---- save_config.c --------------------------------------------------------
 */

/* Settings that a run can't change on its way, as metadata of a file; and are
 * those of the file this run's? */
struct tac_safetensors_writer;
struct tac_safetensors;
tac_status tac__save_config(const tac__run *run,
                            struct tac_safetensors_writer *w);
tac_status tac__resume_config(const tac__run *run,
                              const struct tac_safetensors *f);
/* Has the data that was opened as many samples? */
tac_status tac__resume_data(const tac__run *run,
                            const struct tac_safetensors *f);

/* ---- resume_check.c -------------------------------------------------------
 */

/* Writes into a file's metadata when it was saved, and of which rank it is (-1:
 * of all). */
tac_status tac__save_mark(struct tac_safetensors_writer *w, uint64_t attempts,
                          int rank);
/* Is the file `name` of this checkpoint, and of this rank? */
tac_status tac__resume_mark(const tac__run *run,
                            const struct tac_safetensors *f, const char *name,
                            int rank);
/* Do the counters of the state agree with the checkpoint's attempts? */
tac_status tac__resume_counters(const tac__run *run,
                                const struct tac_safetensors *f);

/* ---- save_state.c ---------------------------------------------------------
 */

/* What ranks have in common, and what is one rank's own. For saving: `saved` is
 * filled by tac__saved_take; after loading: tac__saved_give. */
typedef struct tac__saved {
    tac__run *run;
    tac__totals totals; /* of all processes of this run so far */
    double wall_s;
} tac__saved;

tac_status tac__saved_walk_shared(void *saved, const tac_state_visitor *v);
tac_status tac__saved_walk_rank(void *saved, const tac_state_visitor *v);
tac__saved tac__saved_take(tac__run *run);
tac_status tac__saved_give(const tac__saved *saved);

/* ---- resume_metrics.c -----------------------------------------------------
 */

/* Drops the lines of steps after `attempts`, and what is no line of JSON.
 * Errors: IO, NOMEM. */
tac_status tac__resume_metrics(tac_context *ctx, const char *path,
                               uint64_t attempts);

#endif
