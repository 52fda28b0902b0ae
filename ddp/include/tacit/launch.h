/* tacit/launch.h: one function on every rank, however ranks come to be.
 *
 *     static tac_status body(tac_context *ctx, tac_comm *comm, void *arg);
 *
 *     int main(int argc, char **argv)
 *     {
 *         tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;
 *
 *         tac_launch_argv(&argc, argv, &c);
 *         return tac_launch(&c, body, NULL);
 *     }
 *
 * Started by mpirun or srun, the process is one rank of a job: MPI is
 * initialized, used for the bootstrap, and finalized. Started without a
 * launcher, ranks are threads of the process ("--ranks N"). Each rank has a
 * context and a communicator of its own. The library is tacit::launch; where
 * tacit was built with MPI it links MPI, else a launcher is refused with a
 * message.
 *
 * Failures. A body returns the status of its failure, after tac_fail has said
 * what it was. Errors of ranks are held back until all have told each other how
 * they fared, so that what all ranks meet (no such file) is printed once. A
 * rank that fails alone aborts the communicator with its message: the others,
 * whose operations then fail with ABORTED, leave at once, and the message that
 * is printed is that of the rank that was to blame. Warnings are printed as
 * they come. A process that was started as one of several, but finds itself
 * alone in MPI's world (srun without --mpi=pmix, the wrong mpirun), refuses to
 * train N times the same, unless told --allow-singleton. INTERRUPTED, which
 * ranks agree on, stops nobody and is not told.
 *
 * Exit codes, as of all programs of tacit: 0 success; 2 usage, configuration or
 * data (ARG, CONFIG, DATA, IO, MISMATCH, UNSUPPORTED); 3 DIVERGED; 75
 * INTERRUPTED (stopped by a signal after a checkpoint); 124 TIMEOUT; 1 any
 * other failure. */
#ifndef TACIT_LAUNCH_H
#define TACIT_LAUNCH_H

#include "tacit/comm.h"

TAC_BEGIN_DECLS

/* What every rank does. `ctx` and `comm` are the rank's own, and outlive the
 * call; `arg` is tac_launch's: ranks that are threads share it, so what it
 * points to must not be written without care. */
typedef tac_status tac_rank_fn(tac_context *ctx, tac_comm *comm, void *arg);

/* Start from TAC_LAUNCH_CONFIG_INIT. Equal on all ranks; strings are borrowed
 * for the call of tac_launch. */
typedef struct tac_launch_config {
    size_t struct_size;
    const char *program;  /* in messages; NULL: the program's file name */
    int ranks;            /* threads, if there is no launcher; 0: one */
    int threads;          /* compute threads a rank; 0: its share of the CPUs */
    int quiet;            /* 1: no warnings */
    size_t trace_events;  /* as in tac_context_config */
    tac_comm_config comm; /* transport, emulated network, timeouts, ... */
    /* The exit code of a failure, instead of those above; called once a
     * process, after the last rank has left. NULL: those above. */
    int (*exit_code)(void *arg, tac_status failure);

    /* How reading this rank's command line went: tac_launch_argv fills these
     * in, and so may a program that reads its own. Ranks compare them before
     * anything else happens. */
    tac_status refused; /* a failure: no rank runs, and ... */
    char message[512];  /* ... the lowest such rank prints this */
    void (*print)(const struct tac_launch_config *c); /* not NULL: instead of
                            running, rank 0 calls this (--help), and the exit
                            code is 0 */
    const void *print_arg;                            /* for it */

    /* Of tac_launch_argv. */
    const char *usage;  /* what the program does, for --help; NULL: nothing */
    int more_arguments; /* 1: the program has arguments of its own, which stay
                           in argv; 0: others than the four are mistakes */
    char transport[16]; /* room for --transport */

    int allow_singleton; /* 1: a job of its own for each task, if that is all
                            that the launcher has made */
} tac_launch_config;

#define TAC_LAUNCH_CONFIG_INIT                                             \
    {                                                                      \
        sizeof(tac_launch_config), NULL, 0, 0, 0, 0, TAC_COMM_CONFIG_INIT, \
            NULL, TAC_OK, "", NULL, NULL, NULL, 0, "", 0                   \
    }

/* Reads --ranks N, --threads N, --transport NAME, --allow-singleton and --help,
 * and takes them out of argv (argv[0] stays; *argc is what is left). What is
 * wrong is kept in *c for tac_launch to tell. TACIT_RANKS, TACIT_THREADS and
 * TACIT_TRANSPORT are read, too; the command line wins. `c` must stay where it
 * is. */
TAC_API void tac_launch_argv(int *argc, char **argv, tac_launch_config *c);

/* Runs `body` on every rank and returns the process's exit code, the same on
 * all ranks. Once a process, from its main thread. */
TAC_API int tac_launch(const tac_launch_config *c, tac_rank_fn *body,
                       void *arg);

/* tac_launch for a program that has no command line and needs nothing but its
 * ranks: TACIT_RANKS, TACIT_THREADS and TACIT_TRANSPORT are all that is read.
 * The context is tac_comm_context(comm). */
typedef tac_status tac_comm_fn(tac_comm *comm);
TAC_API int tac_launch_env(tac_comm_fn *body);

/* The exit code that belongs to a status. */
TAC_API int tac_launch_exit_code(tac_status s);

/* Before tac_launch: 1 if a launcher started this process as one of several, or
 * claims to have; and this process's place among these, 0 without. */
TAC_API int tac_launch_is_launched(void);
TAC_API int tac_launch_rank(void);

TAC_END_DECLS

#endif
