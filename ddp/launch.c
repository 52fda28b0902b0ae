/* Threads or an MPI job? */
#include "launch_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A caller built with an older header hands a shorter structure. */
static int read_config(tac_launch_config *to, const tac_launch_config *from)
{
    if (!from) return 0;
    if (from->struct_size < sizeof(size_t)) return -1;
    memcpy(to, from,
           from->struct_size < sizeof *to ? from->struct_size : sizeof *to);
    return 0;
}

int tac_launch_is_launched(void)
{
    const tac__launch l = tac__launch_detect();

    return l.launched || l.step_tasks > 1;
}

int tac_launch_rank(void)
{
    return tac__launch_detect().rank;
}

#ifdef TAC_HAVE_MPI
static int run(const tac__world *w)
{
    return w->launch.launched || w->launch.step_tasks > 1
               ? tac__launch_mpi(w)
               : tac__launch_threads(w);
}
#else
static int run(const tac__world *w)
{
    const tac__launch *l = &w->launch;

    if (l->size <= 1 && l->step_tasks <= 1) return tac__launch_threads(w);
    if (l->rank == 0)
        fprintf(stderr,
                "%s: started by %s as one of %d, but built without MPI: "
                "install libopenmpi-dev and build again, or use --ranks N "
                "without a launcher\n",
                w->program, l->launcher,
                l->size > l->step_tasks ? l->size : l->step_tasks);
    return 2;
}
#endif

int tac_launch(const tac_launch_config *c, tac_rank_fn *body, void *arg)
{
    tac_launch_config config = TAC_LAUNCH_CONFIG_INIT;
    const tac__world w = {
        .config = &config,
        .program = c && c->program ? c->program : program_invocation_short_name,
        .launch = tac__launch_detect(),
        .body = body,
        .arg = arg};

    if (read_config(&config, c) == 0 && body) return run(&w);
    fprintf(stderr,
            "%s: tac_launch needs a body, and a configuration that starts from "
            "TAC_LAUNCH_CONFIG_INIT\n",
            w.program);
    return 2;
}
