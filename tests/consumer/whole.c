/* A program that links the whole of an installed tacit. */
#include <stdio.h>

#include <tacit/tacit.h>

static tac_status body(tac_comm *comm)
{
    printf("ok %d rank\n", tac_comm_size(comm));
    return TAC_OK;
}

int main(void)
{
    return tac_launch_env(body);
}
