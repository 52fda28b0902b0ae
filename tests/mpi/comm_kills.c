// np: 4
/* comm_kills.c: what must happen when a rank breaks (comm_broken.h), with ranks
 * started by mpirun, on shm, mpi and, where it is, ucx.
 *
 * Without arguments: what leaves all ranks alive in the end. "kill TRANSPORT":
 * rank 1 is killed in mid-allreduce and each survivor prints a line; to be
 * started with mpirun --enable-recovery (cli/kills.sh does). */
#include <mpi.h>

#include "comm_broken.h"
#include "comm_threads.h"
#include "tacit/comm_mpi.h"

static tac_context *ctx;
static int rank;

static tac_comm *create(const char *transport, int check)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.timeout_ms = BROKEN_TIMEOUT_MS;
    config.check = check;
    if (tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c) < 0) return NULL;
    return c;
}

static void run(const char *transport, int check, rank_fn *fn, void *arg)
{
    tac_comm *c = create(transport, check);
    if (!CHECK(c != NULL)) return;
    fn(c, arg);
    const double from = tac_clock_s();
    tac_comm_destroy(c);
    CHECK(tac_clock_s() - from < 1);
    MPI_Barrier(MPI_COMM_WORLD); /* also for the one that was stopped */
}

/* Other calls, without the check: an error in bounded time, whatever it says.
 */
static void differs_unchecked(tac_comm *c, void *arg)
{
    float x[64] = {0}, y[64] = {0};
    tac_req *req = NULL;
    (void)arg;
    const tac_status s = broken_submit(c, BROKEN_ORDER, x, y, &req);
    const double from = tac_clock_s();
    CHECK((s < 0 ? s : tac_wait(req, 0)) < 0 ||
          tac_comm_rank(c) == BROKEN_VICTIM);
    CHECK(tac_clock_s() - from < BROKEN_TIMEOUT_MS * 1e-3 + 1);
    CHECK(told_wait_for_error(c) < 0);
}

static void over(const char *transport)
{
    tac_comm *c = create(transport, 0);
    if (!c) {
        if (rank == 0) printf("skipped: no transport %s here\n", transport);
        return;
    }
    tac_comm_destroy(c);
    run(transport, 0, broken_aborted, NULL);
    run(transport, 0, broken_stopped, NULL);
    for (int how = 0; how < BROKEN_CALLS; how++)
        run(transport, 1, broken_disagreed, &how);
    if (strcmp(transport, "shm") != 0) /* which always checks */
        run(transport, 0, differs_unchecked, NULL);
    if (rank == 0)
        printf("%s: %ld failed so far\n", transport, tac_check_failed());
}

/* Prints what the script looks for; no MPI_Finalize, which would wait. */
static int die(const char *transport)
{
    char text[1024];
    double took = 0;
    tac_comm *c = create(transport, 0);
    if (!c) {
        if (rank == 0) printf("no transport %s here\n", transport);
        MPI_Finalize();
        return TAC_CHECK_SKIP_CODE;
    }
    broken_killed(c, NULL);
    const tac_status s = tac_comm_error(c, text, sizeof text);
    const double from = tac_clock_s();
    tac_comm_destroy(c);
    took = tac_clock_s() - from;
    printf("survivor %d: %s, destroyed in %s, %ld failed: %s\n", rank,
           tac_status_name(s), took < 1 ? "time" : "too long",
           tac_check_failed(), text);
    fflush(stdout);
    /* mpirun goes when the first has failed: not before all have told. */
    told_sleep_ms(700);
    _Exit(0);
}

int main(int argc, char **argv)
{
    int level, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ctx = rank_context(rank, size);
    if (argc > 2 && strcmp(argv[1], "kill") == 0) return die(argv[2]);
    over("shm");
    over("mpi");
    over("ucx");
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
