/* The parts of runs.h. */
#ifndef TAC_BENCH_RUNS_IMPL_H
#define TAC_BENCH_RUNS_IMPL_H

#include <sys/types.h>

#include "runs.h"

/* How a child ended. */
typedef struct runs_end {
    int code;        /* exit code, -1: none */
    int signal;      /* that ended it; 0: none */
    int interrupted; /* we ended it, since somebody stopped us */
    int timed_out;   /* we ended it, since it took too long */
} runs_end;

/* Runs argv (NULL-terminated) and waits for its end; its output goes to the
 * file `log`. Errors: IO, NOMEM: it could not be started. */
tac_status runs_child(const runs *r, char *const *argv, const char *log,
                      runs_end *out);

/* runs_env.c: the environment of children, malloc'd in one block; NULL: no
 * memory. */
char **runs_env_make(void);
/* Undoes the binding of a launcher to some of the cores, which children would
 * inherit. */
void runs_env_unbind(void);

/* runs_read.c: what DIR holds. A file that is not there leaves its part
 * empty. Errors: DATA, NOMEM. */
tac_status runs_read(tac_context *ctx, const char *dir, run_result *out);

/* Is DIR/summary.json the object that a run writes whole? Not after a power
 * cut, perhaps. */
int runs_intact(const char *dir);

/* A path or other text, malloc'd; NULL: no memory. */
char *runs_format(const char *format, ...) TAC_PRINTF(1, 2);

#endif
