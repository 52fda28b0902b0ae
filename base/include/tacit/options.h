/* tacit/options.h: one table row an option; everything else follows from it.
 *
 * From the table come the command line (GNU long options, `--key value` and
 * `--key=value`), TACIT_<KEY> environment variables, INI keys, --help,
 * --print-config (value and source) and the header of every log. Precedence:
 * command line > environment > file > default. Unknown keys are errors that
 * name the nearest key. This file knows no INI syntax: a reader calls
 * tac_options_set for each key (libinih is linked above comm/).
 *
 * Values are stored into a plain struct of the program at `offset`:
 *   BOOL int (0/1); INT int64_t; F64 double; SIZE uint64_t bytes, suffixes
 *   K M G (2^10...); STR const char * owned by the options object; ENUM const
 *   char *, one of `choices` ("a|b|c").
 * A key is written with '-': "sync-every"; env TACIT_SYNC_EVERY; INI accepts
 * '-' and '_'. A BOOL option given alone is true; `--no-KEY` is false.
 *
 * One thread at a time an object. */
#ifndef TACIT_OPTIONS_H
#define TACIT_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "tacit/context.h"
#include "tacit/json.h"

TAC_BEGIN_DECLS

typedef enum tac_option_type {
    TAC_OPT_BOOL,
    TAC_OPT_INT,
    TAC_OPT_F64,
    TAC_OPT_SIZE,
    TAC_OPT_STR,
    TAC_OPT_ENUM
} tac_option_type;

typedef struct tac_option {
    const char *key; /* NULL ends a table */
    tac_option_type type;
    const char *def;     /* default as text; NULL: unset (STR and ENUM are NULL,
                            others stay as the program set them before) */
    const char *unit;    /* "ranks", "MiB", ... or NULL; shown in --help */
    const char *help;    /* one sentence */
    size_t offset;       /* into the program's struct */
    double min, max;     /* closed range for INT, F64, SIZE; min == max == 0:
                            any finite value; max = INFINITY: no upper limit */
    const char *choices; /* ENUM: "a|b|c"; STR: the value's form in --help; F64:
                            "auto": this word is accepted, too, and stored as
                            NAN, for defaults that depend on other options */
    const char *group;   /* heading in --help; NULL: as the row before */
} tac_option;

typedef enum tac_option_source {
    TAC_SOURCE_DEFAULT,
    TAC_SOURCE_FILE,
    TAC_SOURCE_ENV,
    TAC_SOURCE_CLI
} tac_option_source;

typedef struct tac_options tac_options;

typedef struct tac_options_config {
    const char *program;     /* "ddp_train" */
    const char *summary;     /* one paragraph for --help */
    const char *epilogue;    /* examples, exit codes; may be NULL */
    const tac_option *table; /* borrowed for the object's life */
    void *target;            /* the program's struct, borrowed */
} tac_options_config;

/* Creates the object and writes all defaults into target. Errors: NOMEM;
 * CONFIG if a default does not parse (a programmer's error, named). */
TAC_API tac_status tac_options_create(tac_context *ctx,
                                      const tac_options_config *config,
                                      tac_options **out);
TAC_API void tac_options_destroy(tac_options *o); /* NULL is legal */

/* Sets one key from text. `where` names the origin in messages ("line 3 of
 * run.ini"); may be NULL. A value of lower precedence than the present one is
 * checked but not stored. Errors: CONFIG with a message that names the key,
 * the value, what is accepted, or the nearest key. */
TAC_API tac_status tac_options_set(tac_options *o, const char *key,
                                   const char *value, tac_option_source source,
                                   const char *where);

/* Reads TACIT_* variables that are in the table. Unknown TACIT_* variables are
 * warned about unless listed in `ignore` (full names, "TACIT_ISA";
 * NULL-terminated, may be NULL). Errors: CONFIG. */
TAC_API tac_status tac_options_read_env(tac_options *o,
                                        const char *const *ignore);

/* What the command line asked for besides options. */
typedef enum tac_options_action {
    TAC_ACTION_RUN = 0,
    TAC_ACTION_HELP,
    TAC_ACTION_VERSION,
    TAC_ACTION_PRINT_CONFIG
} tac_options_action;

/* Parses argv; --help, --version and --print-config become *action (the caller
 * prints, on rank 0 only). --help and --version win over everything else on the
 * line, mistakes included. Arguments that are no options are an error. A value
 * may not begin with "--" unless given as --key=value. Errors: CONFIG. */
TAC_API tac_status tac_options_read_argv(tac_options *o, int argc, char **argv,
                                         tac_options_action *action);

/* Value of `--config` style keys needed before the rest is read: returns the
 * text given for `key` in argv, or NULL. */
TAC_API const char *tac_options_peek_argv(int argc, char **argv,
                                          const char *key);

TAC_API void tac_options_print_help(const tac_options *o, FILE *f);
/* "key = value   ; source" lines under "# group" headings: a valid INI file
 * (options that are unset are comments). */
TAC_API void tac_options_print_config(const tac_options *o, FILE *f);
/* The same as an object of key: text into a writer. */
TAC_API void tac_options_to_json(const tac_options *o, tac_json *j,
                                 const char *key);
TAC_API tac_option_source tac_options_source(const tac_options *o,
                                             const char *key);
/* Text of the present value (as --print-config shows it); "" if unset. Owned
 * by the object. NULL for an unknown key. */
TAC_API const char *tac_options_value(const tac_options *o, const char *key);
/* A size as SIZE options take it: 4096, 64K, 25MiB, 1.5G, by powers of 1024;
 * with a fraction the product must be whole. 1: *out is set; 0: no size; -1:
 * too large. */
TAC_API int tac_options_parse_size(const char *text, uint64_t *out);

/* For the end of main: has everything that was printed arrived? If not (a full
 * disk) and `code` is 0, says so on stderr and returns 1, else `code`. */
TAC_API int tac_options_end(const char *program, int code);

TAC_END_DECLS

#endif
