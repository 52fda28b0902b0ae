// np: 2 4
/* comm_collectives.c: the suite over processes started by mpirun, on the mpi
 * transport and in shared memory: the same bits as thread ranks. */
#include <signal.h>
#include <sys/resource.h>

#include "comm_suite.h"
#include "comm_threads.h"
#include "tacit/comm_mpi.h"

static tac_comm *create(tac_context *ctx, const char *transport, size_t staging,
                        size_t message, int check)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = transport;
    config.staging_bytes = staging;
    config.message_bytes = message;
    config.check = check;
    CHECK_OK(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c));
    if (c && strcmp(transport, "auto") != 0)
        CHECK_EQ_STR(tac_comm_transport_name(c), transport);
    return c;
}

static uint64_t whole(tac_context *ctx, const char *transport)
{
    tac_comm *c = create(ctx, transport, 0, 0, 0);
    const uint64_t bits = c ? suite_run(c, 100) : 0;
    if (c && tac_comm_rank(c) == 0)
        printf("%s: %ld failed so far\n", transport, tac_check_failed());
    tac_comm_destroy(c);
    return bits;
}

static uint64_t bits_only(tac_context *ctx, const char *transport,
                          size_t staging, size_t message)
{
    tac_comm *c = create(ctx, transport, staging, message, 1);
    const uint64_t bits = c ? suite_run_bits(c) : 0;
    tac_comm_destroy(c);
    return bits;
}

static void thread_bits(tac_comm *comm, void *arg)
{
    const uint64_t bits = suite_run_bits(comm);
    if (tac_comm_rank(comm) == 0) *(uint64_t *)arg = bits;
}

static int contains(const tac_comm *c, const char *what)
{
    char text[512];
    tac_comm_error(c, text, sizeof text);
    return CHECK_MSG(strstr(text, what) != NULL, "\"%s\" contains \"%s\"", text,
                     what);
}

/* Only the last rank calls; the error reaches the others. */
static void times_out(tac_context *ctx)
{
    tac_comm *c = create(ctx, "mpi", 0, 0, 0);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float x = 1;
    const int p = tac_comm_size(c);
    opt.algorithm = "direct"; /* waits for all */
    if (tac_comm_rank(c) == p - 1) {
        CHECK_OK(tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, &opt, &req));
        CHECK_STATUS(tac_wait(req, 10), TAC_ERR_TIMEOUT);
        contains(c, "waited for: 0");
    } else {
        for (int i = 0; i < 1000 && !tac_comm_error(c, NULL, 0); i++) {
            tac_clock_sleep_ns(5000000u);
            (void)tac_comm_progress(c);
        }
        CHECK_STATUS(tac_barrier(c, NULL, &req), TAC_ERR_TIMEOUT);
    }
    contains(c, "timed out");
    tac_comm_destroy(c);
}

/* With check, a mismatch is an error on all ranks. */
static void disagrees(tac_context *ctx)
{
    tac_comm *c = create(ctx, "mpi", 0, 0, 1);
    tac_req *req = NULL;
    float x[9] = {0};
    const size_t n = tac_comm_rank(c) == 1 ? 9 : 8;
    CHECK_OK(tac_allreduce(c, NULL, x, n, TAC_F32, TAC_SUM, NULL, &req));
    CHECK_STATUS(tac_wait(req, 0), TAC_ERR_MISMATCH);
    contains(c, "ranks disagree");
    tac_comm_destroy(c);
}

static void aborts(tac_context *ctx)
{
    tac_comm *c = create(ctx, "mpi", 0, 0, 0);
    tac_req *req = NULL;
    if (tac_comm_rank(c) == 0)
        tac_comm_abort(c, "no more");
    else
        CHECK_STATUS(finish(tac_barrier(c, NULL, &req), &req), TAC_ERR_ABORTED);
    contains(c, "rank 0 aborted: no more");
    tac_comm_destroy(c);
}

static void refuses(tac_context *ctx)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = "mpi";
    config.progress = TAC_PROGRESS_THREAD; /* MPI is only SERIALIZED */
    CHECK_STATUS(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c),
                 TAC_ERR_UNSUPPORTED);
    config.transport = "thread";
    CHECK_STATUS(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c),
                 TAC_ERR_UNSUPPORTED);
    CHECK(c == NULL);
}

typedef struct log_lines {
    int warnings;
    char line[512];
} log_lines;

static void keep_warning(void *arg, tac_log_level level, const char *line)
{
    log_lines *l = arg;
    if (level != TAC_LOG_WARN) return;
    l->warnings++;
    snprintf(l->line, sizeof l->line, "%s", line);
}

/* Where shared memory can't be had (here: no file may be larger than 64 KiB),
 * "auto" takes mpi, with one warning that names the size, and "shm" is an error
 * on all ranks. */
static void falls_back(int rank, int size)
{
    struct rlimit old, small = {65536, 65536};
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = NULL;
    log_lines l = {0};
    cc.rank = rank;
    cc.world = size;
    cc.log = keep_warning;
    cc.log_arg = &l;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_OK(tac_context_create(&cc, &ctx));
    tac_comm *c = create(ctx, "auto", 0, 0, 0);
    if (c) CHECK_EQ_STR(tac_comm_transport_name(c), "mpi");
    CHECK_EQ(l.warnings, rank == 0);
    if (rank == 0)
        CHECK_MSG(strstr(l.line, "bytes") && strstr(l.line, "mpi"), "\"%s\"",
                  l.line);
    tac_comm_destroy(c);
    c = NULL;
    config.transport = "shm";
    CHECK_STATUS(tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &config, &c),
                 TAC_ERR_NOMEM);
    CHECK(c == NULL);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    tac_context_destroy(ctx);
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
    CHECK_EQ_U64(whole(ctx, "shm"), want);
    CHECK_EQ_U64(whole(ctx, "mpi"), want);
    CHECK_EQ_U64(bits_only(ctx, "mpi", 4096, 0), want);
    CHECK_EQ_U64(bits_only(ctx, "mpi", 0, 4096), want);
    CHECK_EQ_U64(bits_only(ctx, "auto", 1 << 16, 0), want);
    times_out(ctx);
    disagrees(ctx);
    aborts(ctx);
    refuses(ctx);
    falls_back(rank, size);
    tac_context_destroy(ctx);
    const int rc = tac_check_summary();
    MPI_Finalize();
    return rc;
}
