/* experiment.h: the parts of localsgd_experiments.
 *
 *   localsgd_experiments.c     main: names, options, signals, exit code
 *   experiment_options.c       the option table
 *   experiment_table.c         the experiments, and what they claim
 *   experiment_names.c         names on the command line
 *   experiment_report.c        what an experiment found, as one JSON object
 *   experiment_print.c         that object as text or Markdown
 *   experiment_fit.c           means, spreads, least squares
 *   experiment_logistic*.c     a problem whose answer is known exactly
 *   experiment_trained.c       runs of ddp_train: search and seeds
 *   experiment_variant.c       their options; their rows in a report
 *   experiment_e*.c            one experiment each (E2: two halves)
 *
 * An experiment states a claim, measures, and judges the claim by conditions on
 * what it measured. That a claim does not hold is a result. */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include <jansson.h>
#include <signal.h>

#include "runs.h"
#include "tacit/options.h"

typedef struct exp_options {
    int64_t seeds, steps, ranks, threads, timeout_s;
    const char *data, *data_dir, *model;
    const char *out, *json, *print, *program, *launch, *config;
    int quick, markdown, strict, quiet;
} exp_options;

extern const tac_option exp_option_table[];

typedef struct exp_bench {
    tac_context *ctx;
    const exp_options *o;
    runs runs; /* program is NULL until an experiment needs it */
    char *program;
    const volatile sig_atomic_t *stop;
} exp_bench;

/* A line about what goes on, to stderr unless --quiet. */
void exp_say(const exp_bench *b, const char *format, ...) TAC_PRINTF(2, 3);

/* ---- what was found ------------------------------------------------------ */

typedef struct experiment experiment;

typedef struct exp_report {
    json_t *json; /* experiment, claim, pass, ran, tables, conditions, holds */
    json_t *rows, *row, *columns; /* of the table at hand; borrowed */
    size_t column;
} exp_report;

tac_status exp_report_begin(exp_report *r, const exp_bench *b,
                            const experiment *e);
void exp_report_end(exp_report *r, double seconds);
void exp_report_free(exp_report *r);

/* Seeds that were measured, for the JSON. */
void exp_report_seeds(exp_report *r, int64_t seeds);
/* What was run, in full sentences; one call a paragraph. */
void exp_ran(exp_report *r, const char *format, ...) TAC_PRINTF(2, 3);
void exp_table(exp_report *r, const char *format, ...) TAC_PRINTF(2, 3);
/* key: in JSON; format: of printf for one double, NULL: text. */
void exp_column(exp_report *r, const char *key, const char *head,
                const char *format);
void exp_row(exp_report *r);
/* Cells of the row, in the order of the columns; NaN: none, "-". */
void exp_number(exp_report *r, double value);
void exp_text(exp_report *r, const char *text);
/* One of the conditions that the claim is judged by, with the numbers. */
void exp_condition(exp_report *r, int holds, const char *format, ...)
    TAC_PRINTF(3, 4);
/* Did all conditions hold? */
int exp_holds(const exp_report *r);

void exp_print_text(const exp_report *r, FILE *f);
void exp_print_markdown(const exp_report *r, FILE *f);
/* One line each, of several; `all` is an array of reports. */
void exp_print_verdicts(const json_t *all, int markdown, FILE *f);

/* ---- numbers ------------------------------------------------------------- */

double exp_mean(const double *x, size_t n);
/* Of a sample: n - 1; 0 for fewer than two. */
double exp_deviation(const double *x, size_t n);

typedef struct exp_line {
    double a, b, r2; /* y = a + b x; r2 is NaN where y is constant */
} exp_line;
/* Least squares through n points, at least two of them with different x. */
exp_line exp_fit(const double *x, const double *y, size_t n);

/* ---- runs of ddp_train --------------------------------------------------- */

enum { EXP_SEEDS = 32, EXP_RATES = 12 };

/* One thing to compare: options of ddp_train with a learning rate of their
 * own. */
typedef struct exp_variant {
    char label[48]; /* in tables; also in the names of run folders */
    char args[160]; /* split at blanks; what differs from the others */
    double number;  /* the experiment's own: H, probability, ... */
    double lr;      /* chosen; NAN: not yet */
    int lr_at_edge; /* -1, 1: the best was the smallest, largest tried */
    size_t n;       /* seeds done */
    double loss[EXP_SEEDS], accuracy[EXP_SEEDS]; /* validation */
    double seconds[EXP_SEEDS];                   /* of training */
    double bytes; /* exchanged in training, a rank; the same for all seeds */
    double syncs;
} exp_variant;

typedef struct exp_trained {
    exp_bench *b;
    const char *name;   /* the experiment's */
    const char *common; /* options of all variants, split at blanks */
    int64_t steps;
    int64_t ranks;        /* 0: --ranks */
    int64_t search_seeds; /* 0: 1 */
    const double *lrs;    /* that are searched, ascending */
    size_t n_lrs;
} exp_trained;

/* Seeds that count are 1, 2, ...; the search for the learning rate, on the
 * validation loss, has seeds of its own. A run that diverges has an infinite
 * loss. Errors: of runs_do. */
tac_status exp_search(const exp_trained *t, exp_variant *v);
tac_status exp_measure(const exp_trained *t, exp_variant *v);
tac_status exp_search_and_measure(const exp_trained *t, exp_variant *v,
                                  size_t n);
int64_t exp_seeds(const exp_bench *b); /* --seeds, or 3; quick: 1 */
/* --steps, or the experiment's. */
int64_t exp_steps(const exp_bench *b, int64_t full, int64_t quick);
int64_t exp_search_seeds(const exp_trained *t);
int64_t exp_ranks(const exp_trained *t); /* its own, or --ranks */
exp_variant exp_variant_make(double number, const char *label,
                             const char *format, ...) TAC_PRINTF(3, 4);
double exp_loss(const exp_variant *v); /* means over seeds */
double exp_accuracy(const exp_variant *v);
/* Columns and a row: loss, accuracy and their spread, bytes, learning rate. */
void exp_variant_columns(exp_report *r, const char *head);
void exp_variant_row(exp_report *r, const exp_variant *v);
void exp_variant_table(exp_report *r, const exp_variant *v, size_t n,
                       const char *head, const char *caption);
/* A paragraph: model, data, batch convention, search, seeds. */
void exp_ran_trained(exp_report *r, const exp_trained *t);

/* ---- the experiments ----------------------------------------------------- */

struct experiment {
    const char *name; /* "E1"; NULL ends the table */
    const char *title;
    const char *claim, *source;
    const char *pass; /* what must be true of what is measured */
    tac_status (*run)(exp_bench *b, exp_report *r);
};

extern const experiment exp_experiments[];

enum { EXP_NAMES = 32 };

/* What the command line asks for. */
typedef struct exp_wanted {
    const experiment *list[EXP_NAMES];
    size_t n;
} exp_wanted;

/* Takes the names, "all" among them, out of argv; what is left is options.
 * Errors: CONFIG for a name that there is not. */
tac_status exp_take_names(tac_context *ctx, int *argc, char **argv,
                          exp_wanted *out);
int exp_is_wanted(const exp_wanted *w, const experiment *e);
const experiment *exp_find(const char *name); /* in any case; NULL: none */

tac_status exp_e1(exp_bench *b, exp_report *r);
tac_status exp_e2(exp_bench *b, exp_report *r);
tac_status exp_e3(exp_bench *b, exp_report *r);
tac_status exp_e5(exp_bench *b, exp_report *r);
tac_status exp_e6(exp_bench *b, exp_report *r);
tac_status exp_e7(exp_bench *b, exp_report *r);
tac_status exp_e8(exp_bench *b, exp_report *r);
tac_status exp_e9(exp_bench *b, exp_report *r);
tac_status exp_e10(exp_bench *b, exp_report *r);

#endif
