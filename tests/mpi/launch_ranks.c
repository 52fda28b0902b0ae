// np: 2 4
/* launch_ranks.c: tac_launch as a rank of an MPI job: every process is a rank
 * of one world, and a launch that succeeds returns 0 on all of them. */
#include <stdio.h>

#include "tacit/launch.h"

static tac_status adds(tac_context *ctx, tac_comm *comm, void *arg)
{
    const int n = tac_comm_size(comm);
    int64_t sum = tac_comm_rank(comm) + 1;
    tac_req *req = NULL;

    TAC_TRY(tac_allreduce(comm, &sum, &sum, 1, TAC_I64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (n < 2 || sum != n * (n + 1) / 2)
        return tac_fail(ctx, TAC_ERR_INTERNAL, "%d ranks, sum %lld", n,
                        (long long)sum);
    *(int *)arg = n;
    return TAC_OK;
}

int main(int argc, char **argv)
{
    tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;
    int ranks = 0, code;

    tac_launch_argv(&argc, argv, &c);
    code = tac_launch(&c, adds, &ranks);
    if (code == 0 && ranks > 1) return 0;
    printf("exit code %d, %d ranks\n", code, ranks);
    return 1;
}
