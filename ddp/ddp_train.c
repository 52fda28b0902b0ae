/* ddp_train: data-parallel training from the command line. Reads the options,
 * finds out how it was started, and runs one rank an MPI process, or one rank
 * a thread. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/options_ini.h"
#include "train.h"
#include "world.h"

static const char summary[] =
    "Trains a model on all ranks at once, averaging gradients while they are "
    "still being computed. Without options: the CNN on Fashion-MNIST, about a "
    "minute on two cores.";

static const char epilogue[] =
    "Examples:\n"
    "  ddp_train                        one rank, all cores\n"
    "  ddp_train --ranks 8              8 ranks as threads, no launcher\n"
    "  mpirun -np 8 ddp_train           8 ranks as processes\n"
    "  ddp_train --model mlp:500,500 --optimizer sgd --lr 0.1 --epochs 5\n"
    "\n"
    "More ranks than cores under Open MPI need, in the environment,\n"
    "OMPI_MCA_rmaps_base_oversubscribe=1; root needs\n"
    "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1.\n"
    "\n"
    "Exit codes: 0 ok, 1 run-time failure, 2 usage, configuration or data,\n"
    "3 diverged, 75 stopped by a signal after saving (go on with --resume\n"
    "auto), 124 stalled.\n";

/* The one thing that a handler may touch. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
    stop_requested = number;
}

/* A second signal of the kind ends the program as usual. */
static void catch_signals(void)
{
    struct sigaction a;

    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR1, &a,
              NULL); /* of batch systems, and passed on by mpirun */
}

static tac_status read_options(tac_context *ctx, tac_options *o, int argc,
                               char **argv, tac_options_action *action)
{
    static const char *const others[] = {"TACIT_ISA", "TACIT_SKIP_SETUP", NULL};
    const char *config = tac_options_peek_argv(argc, argv, "config");

    TAC_TRY(tac_options_read_argv(o, argc, argv, action));
    TAC_TRY(tac_options_read_env(o, others));
    if (!config) config = getenv("TACIT_CONFIG");
    if (config && *config) TAC_TRY(tac_options_read_ini(ctx, o, config));
    return TAC_OK;
}

static void print(const tac_options *o, tac_options_action action)
{
    if (action == TAC_ACTION_HELP)
        tac_options_print_help(o, stdout);
    else if (action == TAC_ACTION_VERSION)
        printf("ddp_train (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(o, stdout);
}

static int run_world(const tac__world *w)
{
#ifdef TAC_HAVE_MPI
    if (w->launch.launched || w->launch.step_tasks > 1)
        return tac__world_mpi(w);
#else
    if (w->launch.size > 1 || w->launch.step_tasks > 1) {
        if (w->launch.rank == 0)
            fprintf(stderr,
                    "ddp_train: started by %s as one of %d, but built without "
                    "MPI: install libopenmpi-dev and build again, or use "
                    "--ranks N without a launcher\n",
                    w->launch.launcher, w->launch.size);
        return 2;
    }
#endif
    return tac__world_threads(w);
}

int main(int argc, char **argv)
{
    tac__capture capture = {.armed = 1};
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_train_config config;
    const tac_options_config oc = {"ddp_train", summary, epilogue,
                                   tac_train_config_options(), &config};
    tac_context *ctx = NULL;
    tac_options *options = NULL;
    tac__world world = {.launch = tac__launch_detect(),
                        .config = &config,
                        .stop = &stop_requested,
                        .catch_signals = catch_signals,
                        .print = print,
                        .parse_error = capture.text,
                        .main = tac__train};
    int code;

    /* A file that may not grow is then an error of writing, with a message,
     * as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
    cc.log = tac__capture_log;
    cc.log_arg = &capture;
    cc.level = world.launch.rank == 0 ? TAC_LOG_WARN : TAC_LOG_ERROR;
    if (tac_context_create(&cc, &ctx) < 0 ||
        tac_options_create(ctx, &oc, &options) < 0) {
        fprintf(stderr, "ddp_train: %s\n", capture.text);
        return 1;
    }
    world.options = options;
    world.parsed = read_options(ctx, options, argc, argv, &world.action);
    code = run_world(&world);
    tac_options_destroy(options);
    tac_context_destroy(ctx);
    return code;
}
