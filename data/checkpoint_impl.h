/* checkpoint_impl.h: what the files of the checkpoint folder share. */
#ifndef TAC_DATA_CHECKPOINT_IMPL_H
#define TAC_DATA_CHECKPOINT_IMPL_H

#include "tacit/checkpoint.h"

/* "step-00000500"; more digits if it needs them. */
enum { TAC__STEP_NAME_BYTES = 32 };
void tac__step_name(uint64_t step, char out[TAC__STEP_NAME_BYTES]);
/* 1 and the step, if `name` is one of these. */
int tac__step_parse(const char *name, uint64_t *step);

/* Steps of the folder's checkpoints, valid or not, highest first; malloc'd. */
uint64_t *tac__checkpoint_steps(const char *root, size_t *count);
/* 1 and the step that the file `pointer` ("latest", "best") names. */
int tac__checkpoint_pointer(const char *root, const char *pointer,
                            uint64_t *step);
/* Replaces such a file, by rename after fsync. Errors: IO, NOMEM. */
tac_status tac__checkpoint_point(tac_context *ctx, const char *root,
                                 const char *pointer, uint64_t step);
/* Begins the names of what a crash may leave: the next begin removes it. */
#define TAC__TEMPORARY ".tmp-"

/* Publishing is a list of steps, each of which leaves a valid folder behind.
 * For tests: takes only the first n of them, as a crash would. */
int tac__checkpoint_publish_steps(void);
tac_status tac__checkpoint_publish_some(tac_context *ctx, const char *root,
                                        uint64_t step, int n);

#endif
