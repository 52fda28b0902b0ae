/* A program that links the whole of an installed tacit. */
#include <stdio.h>

#include <tacit/launch.h>
#include <tacit/train_config.h>

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    (void)ctx;
    *(int *)arg = tac_comm_size(comm);
    return TAC_OK;
}

int main(void)
{
    int size = 0;
    const int rc = tac_launch_env(body, &size);
    printf("ok %d rank\n", size);
    return rc;
}
