// np: 2 3 4 8
/* comm_algorithms.c: every algorithm by name over processes: through MPI's
 * messages and through shared memory, with and without virtual hosts. */
#include "comm_algorithms.h"
#include "tacit/comm_mpi.h"

static tac_comm *create(tac_context *ctx, const char *transport,
                        const char *emulate, size_t message)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.emulate = emulate;
    config.message_bytes = message;
    config.staging_bytes = message ? 65536 : 0;
    config.check = message != 0;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    return c;
}

static void run(tac_context *ctx, const char *transport, const char *emulate,
                size_t message)
{
    env e;
    tac_comm *c = create(ctx, transport, emulate, message);
    if (!c) return;
    const int p = tac_comm_size(c);
    const unsigned thin = TESTS_SLOW ? 60 : p > 4 ? 40 : p > 2 ? 13 : 7;
    if (env_open(&e, c)) {
        alg_all(&e, thin);
        alg_averages(&e);
        alg_rounding(&e);
        alg_order(&e);
        if (p < 8) alg_wires(&e);
        if (p < 8) alg_feedback(&e);
        env_close(&e);
    }
    if (tac_comm_rank(c) == 0)
        printf("%s, %s: %ld failed so far\n", transport,
               emulate ? emulate : "no network", tac_check_failed());
    tac_comm_destroy(c);
}

int main(int argc, char **argv)
{
    int level, rank, size;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cc.rank = rank;
    cc.world = cc.local_ranks = size;
    cc.threads = 1;
    CHECK_OK(tac_context_create(&cc, &ctx));
    run(ctx, "mpi", NULL, 0);
    run(ctx, "mpi", NULL, 4096);
    run(ctx, "mpi", "hosts=2", 0);
    run(ctx, "shm", "hosts=2", 4096);
    tac_context_destroy(ctx);
    int failed = tac_check_failed() > 0, any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) tac_check_summary();
    MPI_Finalize();
    return any;
}
