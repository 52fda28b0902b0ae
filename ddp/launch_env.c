/* launch_env.c: launching with what the environment says, for programs that
 * have no command line. */
#include "tacit/launch.h"

static tac_status call(tac_context *ctx, tac_comm *comm, void *arg)
{
    tac_comm_fn *const *body = arg;

    (void)ctx;
    return (*body)(comm);
}

int tac_launch_env(tac_comm_fn *body)
{
    tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;
    char none[] = "", *argv[] = {none, NULL};
    int argc = 1;

    tac_launch_argv(&argc, argv, &c);
    return tac_launch(&c, call, &body);
}
