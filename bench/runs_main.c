/* What programs that are made of runs have in common around them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs_main.h"
#include "tacit/options_ini.h"

tac_status runs_read_options(tac_context *ctx, tac_options *o, int argc,
                             char **argv, tac_options_action *action)
{
    static const char *const others[] = {"TACIT_ISA", "TACIT_LOG",
                                         "TACIT_SKIP_SETUP", NULL};
    const char *config = tac_options_peek_argv(argc, argv, "config");

    TAC_TRY(tac_options_read_argv(o, argc, argv, action));
    TAC_TRY(tac_options_read_env(o, others));
    if (!config) config = getenv("TACIT_CONFIG");
    if (config && *config) return tac_options_read_ini(ctx, o, config);
    return TAC_OK;
}

int runs_act(const char *program, const tac_options *o,
             tac_options_action action)
{
    if (action == TAC_ACTION_RUN) return 0;
    if (action == TAC_ACTION_HELP)
        tac_options_print_help(o, stdout);
    else if (action == TAC_ACTION_VERSION)
        printf("%s (tacit) %s\n", program, TAC_VERSION_STRING);
    else
        tac_options_print_config(o, stdout);
    return 1;
}

int runs_exit_code(tac_status s)
{
    switch (s) {
    case TAC_ERR_ARG:
    case TAC_ERR_CONFIG:
    case TAC_ERR_DATA:
    case TAC_ERR_UNSUPPORTED: return 2;
    case TAC_ERR_INTERRUPTED: return 75;
    default: return s >= 0 ? 0 : 1;
    }
}

/* A second signal ends the program at once. */
void runs_catch_signals(void (*handler)(int))
{
    struct sigaction a;

    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}
