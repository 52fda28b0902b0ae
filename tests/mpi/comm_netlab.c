// np: 2
/* comm_netlab.c: ten allreduces of 1 MB by messages of MPI. tests/cli/netlab.sh
 * runs it over two network namespaces and compares what it prints with what
 * their interfaces counted; plainly, it checks the sums. */
#include <stdlib.h>

#include "tac_check.h"
#include "tacit/clock.h"
#include "tacit/comm.h"
#include "tacit/comm_mpi.h"

enum { COUNT = 250000, CALLS = 10 };

static void sum_once(tac_comm *c, const float *x, float *y)
{
    tac_req *req = NULL;
    const int n = tac_comm_size(c);
    for (int i = 0; i < COUNT; i++) y[i] = -1.0f;
    CHECK_OK(tac_allreduce(c, x, y, COUNT, TAC_F32, TAC_SUM, NULL, &req));
    CHECK_OK(tac_wait(req, 60000));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += y[i] != (float)(i % 1000 * n + n * (n - 1) / 2);
    CHECK_EQ(wrong, 0);
}

static void run(tac_comm *c)
{
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    tac_comm_stats stats;
    if (!CHECK(x && y)) return;
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 1000 + tac_comm_rank(c));
    const uint64_t start = tac_clock_ns();
    for (int k = 0; k < CALLS; k++) sum_once(c, x, y);
    tac_comm_stats_get(c, &stats);
    if (tac_comm_rank(c) == 0)
        printf("hosts %d transport %s seconds %.3f between %llu\n",
               tac_comm_hosts(c), tac_comm_transport_name(c),
               1e-9 * (double)(tac_clock_ns() - start),
               (unsigned long long)stats.total.bytes_between_hosts);
    free(x);
    free(y);
}

int main(int argc, char **argv)
{
    int level = 0;
    tac_context *ctx = NULL;
    tac_comm *c = NULL;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    config.transport = "mpi";
    config.timeout_ms = 60000;
    if (CHECK_OK(tac_context_create(NULL, &ctx)) &&
        CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c)))
        run(c);
    tac_comm_destroy(c);
    tac_context_destroy(ctx);
    MPI_Finalize();
    return tac_check_summary();
}
