/* Words that training arguments know. */
#ifndef TAC_DDP_TRAINING_ARGS_NAMES_H
#define TAC_DDP_TRAINING_ARGS_NAMES_H

#include "tacit/context.h"

typedef struct tac__word {
    const char *word;  /* NULL ends the list */
    const char *value; /* what it is called in the option table */
} tac__word;

/* The place of `text` in the list. Errors: CONFIG, naming the nearest word and
 * all. */
tac_status tac__word_find(tac_context *ctx, const char *argument,
                          const char *text, const tac__word *words, int *out);

#endif
