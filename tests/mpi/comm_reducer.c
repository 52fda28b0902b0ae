// np: 2 4
/* comm_reducer.c: the reducer's suite over processes, on the mpi transport and
 * in shared memory. */
#include "comm_reducer_suite.h"
#include "tacit/comm_mpi.h"

static void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void over(tac_context *ctx, const char *transport, int deterministic)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *comm = NULL;
    config.transport = transport;
    config.deterministic = deterministic;
    config.timeout_ms = TIMEOUT_MS;
    if (!CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &comm)))
        return;
    CHECK_EQ_STR(tac_comm_transport_name(comm), transport);
    suite_run(comm, 100, 20);
    if (!tac_comm_rank(comm))
        printf("%s: %ld failed so far\n", transport, tac_check_failed());
    tac_comm_destroy(comm);
}

int main(int argc, char **argv)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &cc.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cc.world);
    cc.threads = 1;
    cc.log = drop_line; /* failures are wanted here */
    if (CHECK_OK(tac_context_create(&cc, &ctx))) {
        over(ctx, "shm", 0);
        over(ctx, "mpi", 0);
        over(ctx, "mpi", 1);
    }
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
