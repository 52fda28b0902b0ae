// np: 2 4
/* comm_sendrecv.c: tac_send and tac_recv between processes started by mpirun,
 * as messages of MPI and in shared memory. */
#include <mpi.h>

#include "comm_sendrecv_suite.h"
#include "comm_threads.h"
#include "tacit/comm_mpi.h"

static tac_comm *create(tac_context *ctx, const char *transport, size_t message)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.message_bytes = message;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    if (c) CHECK_EQ_STR(tac_comm_transport_name(c), transport);
    return c;
}

static void whole(tac_context *ctx, const char *transport, size_t message)
{
    tac_comm *c = create(ctx, transport, message);
    if (c) p2p_run(c);
    tac_comm_destroy(c);
}

/* An emulated network over MPI's messages. */
static void emulated(tac_context *ctx)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = "mpi";
    config.emulate = "hosts=2,rate=10gbit,delay=20us";
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    if (!c) return;
    CHECK_EQ_STR(tac_comm_transport_name(c), "emulated");
    CHECK(strstr(tac_comm_transport_why(c), "over mpi") != NULL);
    CHECK_EQ(tac_comm_hosts(c), 2);
    p2p_run(c);
    p2p_times_out(c);
    tac_comm_destroy(c);
}

static void failures(tac_context *ctx)
{
    for (int how = 0; how < 4; how++) {
        tac_comm *c = create(ctx, "mpi", 0);
        if (!c) continue;
        if (how < 2)
            p2p_disagrees(c, how);
        else if (how == 2)
            p2p_times_out(c);
        else
            p2p_aborts(c);
        tac_comm_destroy(c);
    }
}

int main(int argc, char **argv)
{
    int level, rank, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    tac_context *ctx = rank_context(rank, size);
    whole(ctx, "mpi", 0);
    whole(ctx, "mpi", 4096);
    whole(ctx, "shm", 0);
    emulated(ctx);
    failures(ctx);
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
