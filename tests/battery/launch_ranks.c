/* launch_ranks.c: tac_launch over threads: every rank runs, with its own
 * communicator; one message and one exit code for all, whoever failed and
 * however; a rank that fails alone stops the others at once. What a launch
 * prints is read from a child process's stderr. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tac_check.h"
#include "tacit/clock.h"
#include "tacit/launch.h"

enum { RANKS = 4, TEXT = 4096 };

/* ---- a launch and what it says --------------------------------------------
 */

typedef struct said {
    int code, lines;
    double seconds;
    char err[TEXT], out[TEXT];
} said;

static void drain(int fd, char text[TEXT])
{
    size_t n = 0;
    ssize_t got;

    while (n < TEXT - 1 && (got = read(fd, text + n, TEXT - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
}

/* Runs main's few lines in a child. */
static said launched(const char *const *args, int more, tac_rank_fn *body,
                     void *arg)
{
    int err[2], out[2], status = 0;
    said s = {0};
    const double from = tac_clock_s();

    fflush(NULL);
    if (!CHECK(pipe(err) == 0 && pipe(out) == 0)) return s;
    const pid_t child = fork();
    if (child == 0) {
        tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;
        char *argv[16];
        int argc = 0, code;

        dup2(err[1], 2);
        dup2(out[1], 1);
        close(err[0]);
        close(out[0]);
        argv[argc++] = strdup("prog");
        for (; *args; args++) argv[argc++] = strdup(*args);
        argv[argc] = NULL;
        c.program = "prog";
        c.more_arguments = more;
        c.comm.timeout_ms = 20000;
        tac_launch_argv(&argc, argv, &c);
        code = tac_launch(&c, body, arg);
        if (more) printf("left %d %s\n", argc, argc > 1 ? argv[1] : "");
        fflush(stdout);
        _exit(code);
    }
    close(err[1]);
    close(out[1]);
    drain(err[0], s.err);
    drain(out[0], s.out);
    waitpid(child, &status, 0);
    s.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s.seconds = tac_clock_s() - from;
    for (const char *p = s.err; *p; p++) s.lines += *p == '\n';
    return s;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- bodies ---------------------------------------------------------------
 */

static tac_status adds(tac_context *ctx, tac_comm *comm, void *arg)
{
    int64_t sum = tac_comm_rank(comm) + 1;
    tac_req *req = NULL;

    (void)arg;
    TAC_TRY(tac_allreduce(comm, &sum, &sum, 1, TAC_I64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (tac_comm_rank(comm) == 0)
        printf("%d ranks, sum %lld, %d\n", tac_comm_size(comm), (long long)sum,
               tac_context_threads(ctx));
    return TAC_OK;
}

/* All ranks meet the same. */
static tac_status no_file(tac_context *ctx, tac_comm *comm, void *arg)
{
    (void)comm, (void)arg;
    return tac_fail(ctx, TAC_ERR_IO, "there is no such file; make one");
}

/* Rank 2 alone; the others wait for it. */
static tac_status fails_alone(tac_context *ctx, tac_comm *comm, void *arg)
{
    if (tac_comm_rank(comm) == 2)
        return tac_fail(ctx, TAC_ERR_DIVERGED, "rank two has had enough");
    return adds(ctx, comm, arg);
}

static tac_status says_nothing(tac_context *ctx, tac_comm *comm, void *arg)
{
    (void)ctx, (void)comm;
    return *(const tac_status *)arg;
}

/* The last rank fails when the others have long gone. */
static tac_status fails_late(tac_context *ctx, tac_comm *comm, void *arg)
{
    TAC_TRY(adds(ctx, comm, arg));
    if (tac_comm_rank(comm) < RANKS - 1) return TAC_OK;
    usleep(100000);
    return tac_fail(ctx, TAC_ERR_NOMEM, "late");
}

/* ---- tests ----------------------------------------------------------------
 */

static void test_runs(void)
{
    said s = launched(ARGS("--ranks", "4", "--threads=2"), 0, adds, NULL);

    CHECK_EQ(s.code, 0);
    CHECK_MSG(!strcmp(s.out, "4 ranks, sum 10, 2\n"), "\"%s\"", s.out);
    CHECK_MSG(!s.err[0], "\"%s\"", s.err);
    s = launched(ARGS("--threads", "1"), 0, adds, NULL);
    CHECK_EQ(s.code, 0);
    CHECK_MSG(!strcmp(s.out, "1 ranks, sum 1, 1\n"), "\"%s\"", s.out);
}

static void test_failures(void)
{
    said s = launched(ARGS("--ranks", "4"), 0, no_file, NULL);

    CHECK_EQ(s.code, 2);
    CHECK_MSG(s.lines == 1 && strstr(s.err, "no such file"), "\"%s\"", s.err);
    s = launched(ARGS("--ranks", "4"), 0, fails_alone, NULL);
    CHECK_EQ(s.code, 3);
    CHECK_MSG(s.lines == 1 && strstr(s.err, "rank two has had enough"),
              "\"%s\"", s.err);
    CHECK(s.seconds < 5);
    s = launched(ARGS("--ranks", "4"), 0, fails_late, NULL);
    CHECK_EQ(s.code, 1);
    CHECK_MSG(s.lines == 1 && strstr(s.err, "late"), "\"%s\"", s.err);
}

static void test_codes(void)
{
    static const struct {
        tac_status s;
        int code;
    } want[] = {{TAC_OK, 0},           {TAC_ERR_CONFIG, 2},
                {TAC_ERR_DATA, 2},     {TAC_ERR_INTERNAL, 1},
                {TAC_ERR_DIVERGED, 3}, {TAC_ERR_INTERRUPTED, 75},
                {TAC_ERR_TIMEOUT, 124}};

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        tac_status status = want[i].s;
        const said s = launched(ARGS("--ranks", "2"), 0, says_nothing, &status);

        CHECK_EQ(s.code, want[i].code);
        CHECK_EQ(tac_launch_exit_code(status), want[i].code);
        CHECK_MSG(s.lines == (status < 0 && status != TAC_ERR_INTERRUPTED),
                  "%s: \"%s\"", tac_status_name(status), s.err);
    }
}

static void test_arguments(void)
{
    said s = launched(ARGS("--ranks", "many"), 0, adds, NULL);

    CHECK_EQ(s.code, 2);
    CHECK_MSG(s.lines == 1 && strstr(s.err, "many"), "\"%s\"", s.err);
    s = launched(ARGS("--rank", "2"), 0, adds, NULL);
    CHECK_EQ(s.code, 2);
    CHECK_MSG(s.lines == 1 && strstr(s.err, "ranks"), "\"%s\"", s.err);
    s = launched(ARGS("more", "--ranks", "2", "--own"), 1, adds, NULL);
    CHECK_EQ(s.code, 0);
    CHECK_MSG(strstr(s.out, "2 ranks") && strstr(s.out, "left 3 more"),
              "\"%s\"", s.out);
    s = launched(ARGS("--help"), 0, adds, NULL);
    CHECK_EQ(s.code, 0);
    CHECK_MSG(strstr(s.out, "--transport") && !strstr(s.out, "sum"), "\"%s\"",
              s.out);
}

/* Without MPI to ask, a launcher's claim is refused, not trained N times. */
static void test_alone(void)
{
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    CHECK(tac_launch_is_launched());
    CHECK_EQ(tac_launch_rank(), 0);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    CHECK(!tac_launch_is_launched());
}

int main(void)
{
    /* This test may itself run under a launcher or in a job. */
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    unsetenv("SLURM_PROCID");
    test_runs();
    test_failures();
    test_codes();
    test_arguments();
    test_alone();
    return tac_check_summary();
}
