// np: 4
/* comm_family.c: comm_family.h over processes started by mpirun. */
#include <mpi.h>

#include "comm_family.h"
#include "tacit/comm_mpi.h"

static void over(const char *transport, rank_fn *fn, tac_context *ctx)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.timeout_ms = 60000;
    const tac_status s = tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c);
    if (!c) {
        CHECK_EQ(s, TAC_ERR_UNSUPPORTED);
        return;
    }
    fn(c, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    tac_comm_destroy(c);
}

int main(int argc, char **argv)
{
    static const char *const transports[] = {"mpi", "shm", "ucx"};
    int level, rank, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    tac_context *ctx = rank_context(rank, size);
    for (int i = 0; i < 3; i++) {
        over(transports[i], family_lives, ctx);
        over(transports[i], family_aborts, ctx);
        if (rank == 0)
            printf("%s: %ld failed so far\n", transports[i],
                   tac_check_failed());
    }
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
