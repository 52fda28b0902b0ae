/* options_impl.h: the options object inside. Private to base/. */
#ifndef TAC_OPTIONS_IMPL_H
#define TAC_OPTIONS_IMPL_H

#include <stdint.h>

#include "tacit/options.h"

struct tac_options {
    tac_context *ctx; /* for messages; may be NULL */
    tac_options_config config;
    size_t count;               /* rows of the table */
    tac_option_source *sources; /* [count] */
    char **values;              /* [count] text, owned; NULL: unset */
};

/* A value as parsed, before it is stored. */
typedef union tac__option_value {
    int flag;
    int64_t i64;
    double f64;
    uint64_t size;
} tac__option_value;

enum { TAC__WHY_BYTES = 512 };

/* Parses and checks `text` as a value of `row`. On failure writes to `why` what
 * is wrong and what is accepted, and returns 0. */
int tac__option_parse(const tac_option *row, const char *text,
                      tac__option_value *out, char why[TAC__WHY_BYTES]);
/* "1 to 4096", "at least 1"; "" if any value will do. */
void tac__option_range(const tac_option *row, char *out, size_t bytes);
/* The choices with ", " between them. */
void tac__option_choices(const tac_option *row, char *out, size_t bytes);
/* 1 and the value for true/false/yes/no/on/off/1/0, else 0. */
int tac__option_parse_bool(const char *text, int *out);

/* Index of the row with `key` ('_' counts as '-'), or -1. */
int tac__options_find(const tac_options *o, const char *key);
/* The nearest key of the table, or NULL if none is near. */
const char *tac__options_suggest(const tac_options *o, const char *key);
/* Insertions, deletions, replacements and swaps of neighbours from a to b. */
size_t tac__edit_distance(const char *a, const char *b);

#endif
