/* Words that training arguments know. */
#ifndef TAC_DDP_TRAINING_ARGS_NAMES_H
#define TAC_DDP_TRAINING_ARGS_NAMES_H

#include "tacit/training_args.h"

typedef struct tac__word {
    const char *word;  /* NULL ends the list */
    const char *value; /* what it is called in the option table */
} tac__word;

/* The place of `text` in the list. Errors: CONFIG, naming the nearest word and
 * all. */
tac_status tac__word_find(tac_context *ctx, const char *argument,
                          const char *text, const tac__word *words, int *out);

/* Arguments on their way into an option table. */
typedef struct tac__args_reader {
    tac_context *ctx;
    const tac_training_args *a;
    tac_options *o;
} tac__args_reader;

/* Sets an option; a message names the argument. */
tac_status tac__args_set(const tac__args_reader *r, const char *key,
                         const char *value, const char *argument);
tac_status tac__args_set_int(const tac__args_reader *r, const char *key,
                             int64_t value, const char *argument);
tac_status tac__args_set_f64(const tac__args_reader *r, const char *key,
                             double value, const char *argument);
/* NULL value of a word: there is nothing to set. */
tac_status tac__args_set_word(const tac__args_reader *r, const char *key,
                              const char *text, const tac__word *words,
                              const char *argument);

/* training_args_when.c: */
tac_status tac__args_logging(const tac__args_reader *r);
tac_status tac__args_evaluation(const tac__args_reader *r);
tac_status tac__args_saving(const tac__args_reader *r);

#endif
