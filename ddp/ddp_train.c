/* ddp_train: data-parallel training from the command line. Reads the options,
 * finds out how it was started, and runs one rank an MPI process, or one rank
 * a thread. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/options_ini.h"
#include "train.h"

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
    sigaction(SIGUSR1, &a, NULL); /* a batch system's word that time is up */
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

typedef struct asked {
    const tac_options *options;
    tac_options_action action;
} asked;

static void print(const tac_launch_config *c)
{
    const asked *a = c->print_arg;

    if (a->action == TAC_ACTION_HELP)
        tac_options_print_help(a->options, stdout);
    else if (a->action == TAC_ACTION_VERSION)
        printf("ddp_train (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(a->options, stdout);
}

/* The context holds messages back: which rank tells them is for all to agree
 * on. */
static int run(tac_context *ctx, tac_options *o, const tac_train_config *config,
               int argc, char **argv)
{
    asked a = {.options = o};
    tac__train_program program = TAC__TRAIN_PROGRAM_INIT;
    const tac_status read = read_options(ctx, o, argc, argv, &a.action);
    tac_launch_config lc = tac__train_launch(config);

    lc.refused = read;
    if (read < 0) tac_context_error(ctx, lc.message, sizeof lc.message);
    if (a.action != TAC_ACTION_RUN) lc.print = print;
    lc.print_arg = &a;
    program.options = o;
    program.config = config;
    program.stop = &stop_requested;
    program.catch_signals = catch_signals;
    return tac_launch(&lc, tac__train, &program);
}

/* Warnings are for one rank to print, errors are told later. */
static void log_warning(void *arg, tac_log_level level, const char *line)
{
    const int *speaks = arg;

    if (level != TAC_LOG_ERROR && *speaks) fprintf(stderr, "%s\n", line);
}

int main(int argc, char **argv)
{
    int speaks = tac_launch_rank() == 0;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_train_config config;
    const tac_options_config oc = {"ddp_train", summary, epilogue,
                                   tac_train_config_options(), &config};
    tac_context *ctx = NULL;
    tac_options *options = NULL;
    int code = 1;

    /* A file that may not grow is then an error of writing, with a message,
     * as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
    cc.log = log_warning;
    cc.log_arg = &speaks;
    cc.level = TAC_LOG_WARN;
    if (tac_context_create(&cc, &ctx) < 0 ||
        tac_options_create(ctx, &oc, &options) < 0)
        fprintf(stderr, "ddp_train: no memory for the options\n");
    else
        code = run(ctx, options, &config, argc, argv);
    tac_options_destroy(options);
    tac_context_destroy(ctx);
    return tac_options_end("ddp_train", code);
}
