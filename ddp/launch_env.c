/* launch_env.c: launching with what the environment says, for programs that
 * have no command line. */
#include "tacit/launch.h"

int tac_launch_env(tac_rank_fn *body, void *arg)
{
    tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;
    char *argv[] = {NULL, NULL};
    int argc = 1;
    char none[] = "";
    argv[0] = none;
    tac_launch_argv(&argc, argv, &c);
    return tac_launch(&c, body, arg);
}
