/* Many runs of ddp_train, each a process of its own, one after the other: what
 * localsgd_sweep and localsgd_experiments are made of.
 *
 * A run lives in a folder of its own, ROOT/runs/NAME, which ddp_train fills
 * (summary.json, metrics.jsonl, config.ini). A run whose folder has a summary
 * that was made by the same arguments is not run again: what was interrupted
 * goes on where it was. A run of its own process can crash, hang or be killed
 * without taking the sweep along, and gives back all of its memory. */
#ifndef TAC_BENCH_RUNS_H
#define TAC_BENCH_RUNS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"

typedef struct runs {
    tac_context *ctx;
    const char *root;    /* folder; made if need be */
    const char *program; /* ddp_train */
    const char *launch;  /* command in front of it, split at blanks: "mpirun -np
                            8"; NULL: thread ranks */
    int64_t ranks;       /* thread ranks, without launch */
    int64_t timeout_s;   /* of one run; 0: none */
    const volatile sig_atomic_t *stop; /* set by a signal: the child is told,
                                          and the call returns INTERRUPTED */
} runs;

/* One evaluation on the validation images, or one logging interval. */
typedef struct run_point {
    int64_t step;
    double train_s; /* since the first step, evaluations not counted */
    double loss, accuracy;
    double bytes; /* bytes_sync_wire so far, all ranks */
} run_point;

typedef struct run_result {
    char *name;
    int reused;             /* it was there already */
    struct json_t *summary; /* the whole of summary.json (jansson, owned) */
    run_point *evals;       /* averaged model in local modes */
    size_t n_evals;
    run_point *train; /* training loss and accuracy of logging intervals */
    size_t n_train;
} run_result;

/* Does, or finds, the run. args: options of ddp_train, NULL-terminated, without
 * those that runs_do adds itself (--run-dir, --ranks, --quiet). Its
 * output goes to the folder's log.txt; if it fails, the message holds its last
 * lines. Errors: what ddp_train's exit code means (CONFIG for 2, DIVERGED for
 * 3, TIMEOUT, else IO), INTERRUPTED, NOMEM. DIVERGED: *out is filled as far as
 * it goes, losses are NaN. */
tac_status runs_do(const runs *r, const char *name, const char *const *args,
                   run_result *out);
void run_result_free(run_result *result);
/* A number of the summary; NaN: not there or null. */
double run_number(const run_result *result, const char *key);

/* ddp_train beside this program (../ddp_train), or in PATH; malloc'd. Errors:
 * IO with the places that were looked at. */
tac_status runs_find_program(tac_context *ctx, char **out);
/* That, or `given` if it is not NULL, which must be a program that can be run:
 * a path, or a name in PATH. malloc'd. Errors: CONFIG, IO. */
tac_status runs_choose_program(tac_context *ctx, const char *given, char **out);
/* `launch` with the number of ranks in place of the first {}, if there is one;
 * malloc'd, NULL: no memory. */
char *runs_launch(const char *launch, int64_t ranks);

/* Makes the folder and locks it: two programs in one would take each other's
 * runs away. The lock goes with *fd, and with the process, however that ends.
 * Errors: CONFIG. */
tac_status runs_lock(tac_context *ctx, const char *root, int *fd);
/* Makes all runs in the folder count as never made. */
void runs_forget(const char *root);
/* A file that can't be written is better found out before. Errors: CONFIG. */
tac_status runs_try_file(tac_context *ctx, const char *path);
/* What was typed, to be typed again; malloc'd, NULL: no memory. */
char *runs_command_line(int argc, char **argv);

#endif
