// np: 2 4
/* comm_codecs.c: 16-bit wires and codecs over processes started by mpirun, on
 * the mpi transport and in shared memory: with `deterministic` the same bits as
 * thread ranks. */
#include "comm_codec_suite.h"
#include "comm_threads.h"
#include "tacit/comm_mpi.h"

static tac_comm *create(tac_context *ctx, const char *transport, size_t staging,
                        int check, int deterministic)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.staging_bytes = staging;
    config.check = check;
    config.deterministic = deterministic;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    return c;
}

static void whole(tac_context *ctx, const char *transport)
{
    tac_comm *c = create(ctx, transport, 0, 1, 0);
    if (c) suite_codecs(c);
    tac_comm_destroy(c);
}

static uint64_t bits(tac_context *ctx, const char *transport, size_t staging)
{
    tac_comm *c = create(ctx, transport, staging, 0, 1);
    const uint64_t h = c ? suite_codec_bits(c) : 0;
    tac_comm_destroy(c);
    return h;
}

static void thread_bits(tac_comm *comm, void *arg)
{
    const uint64_t h = suite_codec_bits(comm);
    if (tac_comm_rank(comm) == 0) *(uint64_t *)arg = h;
}

int main(int argc, char **argv)
{
    int level, rank, size;
    uint64_t want = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    tac_context *ctx = rank_context(rank, size);
    with_threads(size, NULL, thread_bits, &want);
    whole(ctx, "mpi");
    CHECK_EQ_U64(bits(ctx, "mpi", 0), want);
    CHECK_EQ_U64(bits(ctx, "shm", 0), want);
    CHECK_EQ_U64(bits(ctx, "mpi", 16384), want);
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
