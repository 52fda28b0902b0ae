// np: 2 4 8
/* comm_ucx.c: the suite over UCX, with ranks started by mpirun: the same bits
 * as thread ranks; MPI works beside it. */
#include "comm_suite.h"
#include "comm_threads.h"
#include "comm_ucx_skip.h"
#include "tacit/comm_mpi.h"

static tac_comm *create(tac_context *ctx, size_t staging, size_t message,
                        int check)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = "ucx";
    config.staging_bytes = staging;
    config.message_bytes = message;
    config.check = check;
    config.timeout_ms = 60000;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    if (c) CHECK_EQ_STR(tac_comm_transport_name(c), "ucx");
    return c;
}

/* More ranks than cores: some of it. */
static uint64_t whole(tac_context *ctx, int size)
{
    tac_comm *c = create(ctx, 0, 0, 0);
    if (!c) return 0;
    CHECK_MSG(strstr(tac_comm_transport_why(c), "through ") != NULL, "\"%s\"",
              tac_comm_transport_why(c));
    const uint64_t bits =
        size > 4 ? suite_run_brief(c, 50) : suite_run(c, TESTS_SLOW ? 30 : 100);
    if (tac_comm_rank(c) == 0)
        printf("%s: %ld failed so far\n", tac_comm_transport_why(c),
               tac_check_failed());
    tac_comm_destroy(c);
    return bits;
}

static uint64_t bits_only(tac_context *ctx, size_t staging, size_t message)
{
    tac_comm *c = create(ctx, staging, message, 1);
    const uint64_t bits = c ? suite_run_bits(c) : 0;
    tac_comm_destroy(c);
    return bits;
}

static void thread_bits(tac_comm *comm, void *arg)
{
    const uint64_t bits = suite_run_bits(comm);
    if (tac_comm_rank(comm) == 0) *(uint64_t *)arg = bits;
}

/* Open MPI may itself be on UCX: both in turn, and at the same time. */
static void beside_mpi(tac_context *ctx)
{
    enum { N = 50000 };
    static double x[N], y[N];
    tac_comm *c = create(ctx, 0, 0, 0);
    if (!c) return;
    const int p = tac_comm_size(c);
    for (int round = 0; round < 10; round++) {
        tac_req *req = NULL;
        MPI_Request mpi;
        int bad = 0;
        for (int i = 0; i < N; i++) x[i] = y[i] = i % 7 + tac_comm_rank(c);
        CHECK_OK(tac_allreduce(c, NULL, x, N, TAC_F64, TAC_SUM, NULL, &req));
        MPI_Iallreduce(MPI_IN_PLACE, y, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       &mpi);
        CHECK_OK(tac_wait(req, 0));
        MPI_Wait(&mpi, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            const double want = i % 7 * p + p * (p - 1) / 2;
            bad += x[i] != want || y[i] != want;
        }
        CHECK_EQ(bad, 0);
    }
    tac_comm_destroy(c);
}

int main(int argc, char **argv)
{
    int level, rank, size;
    uint64_t want = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!ucx_is_there(rank == 0)) {
        MPI_Finalize();
        return TAC_CHECK_SKIP_CODE;
    }
    tac_context *ctx = rank_context(rank, size);
    with_threads(size, NULL, thread_bits, &want);
    CHECK_EQ_U64(whole(ctx, size), want);
    if (size <= 4) {
        CHECK_EQ_U64(bits_only(ctx, 4096, 0), want);
        CHECK_EQ_U64(bits_only(ctx, 0, 4096), want);
    }
    beside_mpi(ctx);
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
