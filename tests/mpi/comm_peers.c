// np: 2
/* comm_peers.c: the rows of comm_rows.h and "no element is wrong"
 * (comm_wrong.h) over processes started by mpirun: mpi, shm and, where it is,
 * ucx. battery/comm_peers.c has the list of rows. */
#include <mpi.h>

#include "comm_wrong.h"
#include "comm_rows.h"
#include "comm_rows_reducer.h"
#include "comm_threads.h"
#include "comm_told.h"
#include "tacit/comm_mpi.h"

static tac_context *ctx;
static int rank;

/* NULL: there is no such transport here. */
static tac_comm *create(const char *transport, int timeout_ms)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.timeout_ms = timeout_ms;
    const tac_status s = tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c);
    CHECK(s == TAC_OK || s == TAC_ERR_UNSUPPORTED);
    return c;
}

static void healthy_rows(tac_comm *c)
{
    row_1_exact_sums(c);
    row_4_same_as_alone(c);
    row_5_hooks(c);
    row_9_mismatch(c);
    row_12_dtypes(c);
    row_12_async(c);
    row_14_fill(c);
    row_15_small_tensor(c);
}

/* Rows 2 and 14: one good allreduce, then only rank 0 calls. */
static void times_out(tac_comm *c)
{
    CHECK_OK(told_sum(c, 0));
    if (rank == 1) told_sleep_ms(300); /* late is no failure */
    CHECK_OK(told_sum(c, 2000));
    if (rank != 0) {
        CHECK_STATUS(told_wait_for_error(c), TAC_ERR_TIMEOUT);
        return;
    }
    const double from = tac_clock_s();
    CHECK_STATUS(told_sum(c, 10), TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < 1);
    told_error_has(c, "timed out");
    told_error_has(c, "waited for: 1;");
}

/* Row 10: rank 1 calls when rank 0 has given up: both get the timeout. */
static void creation_times_out(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    char text[512];
    config.timeout_ms = 500;
    if (rank == 1) told_sleep_ms(900);
    const double from = tac_clock_s();
    CHECK_STATUS(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c),
                 TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < 2.5);
    tac_context_error(ctx, text, sizeof text);
    told_has(text, "timed out");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void over(const char *transport)
{
    tac_comm *c = create(transport, 0);
    if (!c) {
        if (rank == 0) printf("skipped: no transport %s here\n", transport);
        return;
    }
    healthy_rows(c);
    if (strcmp(transport, "shm") != 0) wrong_run(c, NULL); /* a battery's */
    times_out(c);
    tac_comm_destroy(c);
    if (rank == 0)
        printf("%s: %ld failed so far\n", transport, tac_check_failed());
}

int main(int argc, char **argv)
{
    int level, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ctx = rank_context(rank, size);
    over("mpi");
    over("shm");
    over("ucx");
    creation_times_out();
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
