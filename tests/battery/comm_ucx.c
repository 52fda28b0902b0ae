/* comm_ucx.c: the ucx transport with ranks that are processes without MPI, and
 * with ranks that are threads: the suite; ranks that are killed, stopped, that
 * give up or leave; nothing left open. */
#include <dirent.h>
#include <sched.h>

#include "comm_algorithms.h"
#include "comm_fork.h"
#include "comm_sendrecv_suite.h"
#include "comm_ucx_skip.h"

/* Generous, because other tests may have the cores. */
#define SLACK_S (TESTS_SLOW ? 10.0 : 5.0)

static board *the_board;
static int apart; /* every rank has a host of its own */

static void whole(tac_comm *comm, void *arg)
{
    const int brief = tac_comm_size(comm) > 3;
    (void)arg;
    CHECK_EQ_STR(tac_comm_transport_name(comm), "ucx");
    the_board->result[tac_comm_rank(comm)] =
        brief ? suite_run_brief(comm, 30)
              : suite_run(comm, TESTS_SLOW ? 30 : 100);
}

static void bits_only(tac_comm *comm, void *arg)
{
    const uint64_t bits = suite_run_bits(comm);
    if (arg && tac_comm_rank(comm) == 0) *(uint64_t *)arg = bits;
    if (!arg) the_board->result[tac_comm_rank(comm)] = bits;
}

/* Every algorithm by name, on one host and on virtual ones. */
static void algorithms(tac_comm *comm, void *arg)
{
    env e;
    (void)arg;
    if (!env_open(&e, comm)) return;
    alg_all(&e, TESTS_SLOW ? 40 : 9);
    alg_averages(&e);
    alg_rounding(&e);
    alg_order(&e);
    alg_wires(&e);
    env_close(&e);
}

/* ---- between two ranks ------------------------------------------------------
 */

static void mail_all(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_run(c);
}

static void mail_late(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_times_out(c);
}

static void mail_aborted(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_aborts(c);
}

static void mail_other_count(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_disagrees(c, 0);
}

static void mail_other_dtype(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_disagrees(c, 1);
}

static int contains(const tac_comm *c, const char *what)
{
    char text[1024];
    tac_comm_error(c, text, sizeof text);
    return CHECK_MSG(strstr(text, what) != NULL, "\"%s\" contains \"%s\"", text,
                     what);
}

static tac_status sum_one(tac_comm *c)
{
    static _Thread_local float x[1000]; /* every rank has a share of it */
    tac_req *req = NULL;
    return finish(tac_allreduce(c, NULL, x, 1000, TAC_F32, TAC_SUM, NULL, &req),
                  &req);
}

/* ---- ranks that fail -------------------------------------------------------
 */

enum { BIG_N = 4 << 20 };

/* Allreduces of 16 MiB until one fails. */
static tac_status sum_until_failure(tac_comm *c)
{
    float *x = calloc(BIG_N, sizeof *x);
    tac_status s = TAC_OK;
    for (int i = 0; i < 1000 && s == TAC_OK && CHECK(x != NULL); i++) {
        tac_req *req = NULL;
        s = finish(
            tac_allreduce(c, NULL, x, BIG_N, TAC_F32, TAC_SUM, NULL, &req),
            &req);
    }
    free(x);
    return s;
}

static void *kill_soon(void *arg)
{
    (void)arg;
    tac_clock_sleep_ns(200000000u);
    raise(SIGKILL);
    return NULL;
}

/* Rank 1 dies in mid-allreduce. */
static void loses_rank_1(tac_comm *c, void *arg)
{
    const double timeout = tac_comm_config_of(c)->timeout_ms * 1e-3;
    pthread_t killer;
    (void)arg;
    if (tac_comm_rank(c) == 1)
        CHECK(pthread_create(&killer, NULL, kill_soon, NULL) == 0);
    const double from = tac_clock_s();
    const tac_status s = sum_until_failure(c);
    CHECK_MSG(s == TAC_ERR_PEER || s == TAC_ERR_TIMEOUT, "%s",
              tac_status_name(s));
    CHECK(tac_clock_s() - from < timeout + 1 + SLACK_S);
    if (apart) CHECK_STATUS(s, TAC_ERR_PEER); /* the connection told */
    contains(c, "rank 1");
    CHECK_STATUS(sum_one(c), s); /* at once, and the same */
}

/* A stopped process needs another to end it: when the others have reported. */
static void stop_until_reported(int size)
{
    const pid_t me = getpid();
    if (fork() == 0) {
        for (int i = 0, n = 0; i < 3000 && n < size - 1; i++) {
            tac_clock_sleep_ns(10000000u);
            n = 0;
            for (int r = 0; r < size; r++) n += the_board->result[r] == 1;
        }
        kill(me, SIGKILL);
        _exit(0);
    }
    raise(SIGSTOP);
}

/* Rank 1 stops; the others can't know more than that it does not answer. */
static void stops(tac_comm *c, void *arg)
{
    const double timeout = tac_comm_config_of(c)->timeout_ms * 1e-3;
    (void)arg;
    CHECK_OK(sum_one(c));
    if (tac_comm_rank(c) == 1) stop_until_reported(tac_comm_size(c));
    const double from = tac_clock_s();
    CHECK_STATUS(sum_until_failure(c), TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < timeout + 1 + SLACK_S);
    contains(c, "timed out");
    contains(c, "1");
    the_board->result[tac_comm_rank(c)] = 1;
}

static void *abort_soon(void *comm)
{
    tac_clock_sleep_ns(50000000u);
    tac_comm_abort(comm, "enough is enough");
    return NULL;
}

/* Another thread of rank 1 aborts while all but rank 0 wait. */
static void aborts(tac_comm *c, void *arg)
{
    pthread_t other;
    const int rank = tac_comm_rank(c);
    (void)arg;
    CHECK_OK(sum_one(c));
    if (rank == 1) CHECK(pthread_create(&other, NULL, abort_soon, c) == 0);
    if (rank == 0) tac_clock_sleep_ns(200000000u);
    CHECK_STATUS(sum_one(c), TAC_ERR_ABORTED);
    CHECK_STATUS(sum_one(c), TAC_ERR_ABORTED);
    contains(c, "rank 1 aborted: enough is enough");
    if (rank == 1) pthread_join(other, NULL);
}

/* Rank 1 destroys its communicator: those who wait for it are told. */
static void leaves(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(sum_one(c));
    if (tac_comm_rank(c) == 1) return;
    const double from = tac_clock_s();
    CHECK_STATUS(sum_one(c), TAC_ERR_PEER);
    CHECK(tac_clock_s() - from < 2 + SLACK_S);
    contains(c, "rank 1");
}

/* Rank 1 destroys it with a request unfinished: the others hear of that. */
static void leaves_early(tac_comm *c, void *arg)
{
    static float x[100000];
    static tac_req *req; /* nobody releases rank 1's */
    (void)arg;
    CHECK_OK(sum_one(c));
    if (tac_comm_rank(c) == 0) {
        tac_clock_sleep_ns(300000000u);
    } else if (tac_comm_rank(c) == 1) {
        CHECK_OK(
            tac_allreduce(c, NULL, x, 100000, TAC_F32, TAC_SUM, NULL, &req));
        return;
    }
    CHECK_STATUS(
        finish(tac_allreduce(c, NULL, x, 100000, TAC_F32, TAC_SUM, NULL, &req),
               &req),
        TAC_ERR_ABORTED);
    contains(c, "rank 1 destroyed the communicator");
}

/* Another count on rank 1: an error on all, one way or another. */
static void disagrees(tac_comm *c, void *arg)
{
    float x[64] = {0};
    tac_req *req = NULL;
    (void)arg;
    CHECK_OK(tac_allreduce(c, NULL, x, tac_comm_rank(c) == 1 ? 9 : 8, TAC_F32,
                           TAC_SUM, NULL, &req));
    CHECK_STATUS(tac_wait(req, 0), TAC_ERR_MISMATCH);
    contains(c, "rank");
}

/* ---- ranks on hosts of their own --------------------------------------------
 * Processes whose host names differ are taken for hosts, and then nobody
 * watches a peer's process: the connection has to tell. */

static void move_away(void)
{
    char name[32];
    if (!apart || unshare(CLONE_NEWUTS) != 0) return;
    snprintf(name, sizeof name, "host-%d", (int)getpid());
    if (sethostname(name, strlen(name)) != 0) _exit(1);
}

static int can_move_away(void)
{
    int st = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) _exit(unshare(CLONE_NEWUTS) == 0 ? 0 : 1);
    return waitpid(pid, &st, 0) == pid && st == 0;
}

/* Without MPI, what connects hosts is ucx. */
static void finds_ucx(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_EQ_STR(tac_comm_transport_name(c), "ucx");
    CHECK_EQ(tac_comm_hosts(c), tac_comm_size(c));
    CHECK_OK(sum_one(c));
    the_board->result[tac_comm_rank(c)] = suite_run_bits(c);
}

/* ---- nothing left open -----------------------------------------------------
 */

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (!d) return 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Many children, one after the other, and two at a time: the same number of
 * open files in the end. The first one opens UCX's own. */
static void makes_many(tac_comm *c, void *arg)
{
    int before = 0;
    (void)arg;
    for (int i = 0; i < (TESTS_SLOW ? 6 : 20); i++) {
        tac_comm *child[2] = {NULL, NULL};
        const int rank = tac_comm_rank(c);
        if (i == 2) before = open_files();
        if (!CHECK_OK(tac_comm_split(c, 0, -rank, &child[0]))) break;
        if (!CHECK_OK(tac_comm_split(c, rank % 2, rank, &child[1]))) break;
        CHECK_EQ_STR(tac_comm_transport_name(child[0]), "ucx");
        CHECK_OK(sum_one(child[0]));
        CHECK_OK(sum_one(child[1]));
        tac_comm_destroy(child[0]);
        CHECK_OK(sum_one(child[1]));
        tac_comm_destroy(child[1]);
    }
    CHECK_EQ(open_files(), before);
}

/* UCX would catch SIGSEGV and SIGHUP; the loader puts that right. */
static void catches_no_signal(tac_comm *c, void *arg)
{
    static const int signals[] = {SIGHUP, SIGILL, SIGBUS, SIGFPE, SIGSEGV};
    (void)arg, (void)c;
    for (size_t i = 0; i < 5 && !TESTS_SLOW; i++) {
        struct sigaction now;
        CHECK(sigaction(signals[i], NULL, &now) == 0);
        CHECK_MSG(now.sa_handler == SIG_DFL, "signal %d is caught", signals[i]);
    }
}

/* With nothing to do a waiting rank sleeps: no more than a third of the time
 * that it waits is spent on the processor. */
static void waits_asleep(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(sum_one(c));
    if (tac_comm_rank(c) == 0) {
        tac_clock_sleep_ns(600000000u);
        CHECK_OK(sum_one(c));
        return;
    }
    const double cpu = tac_clock_process_cpu_s(), from = tac_clock_s();
    CHECK_OK(sum_one(c));
    const double share =
        (tac_clock_process_cpu_s() - cpu) / (tac_clock_s() - from);
    CHECK_MSG(share < 0.33, "%.2f of a core while waiting", share);
}

/* ---- without the plug-in ---------------------------------------------------
 */

static void missing(void)
{
    tac_context *ctx = rank_context(0, 1);
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_comm *c = NULL;
    config.transport = "ucx"; /* one rank needs none */
    CHECK_OK(tac_comm_create_self(ctx, &config, &c));
    if (c) CHECK_EQ_STR(tac_comm_transport_name(c), "self");
    tac_comm_destroy(c);
    tac_context_destroy(ctx);
}

static void run(int size, const tac_comm_config *config, rank_fn *fn,
                const fork_end *end)
{
    const double from = tac_clock_s();
    const long failed = tac_check_failed();
    with_processes(size, config, fn, NULL, the_board, end);
    printf("%d ranks: %.1f s, %ld failed\n", size, tac_clock_s() - from,
           tac_check_failed() - failed);
}

static void on_hosts(uint64_t bits)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    const fork_end killed = {1, SIGKILL};
    if (!can_move_away()) {
        printf("skipped: ranks on hosts of their own (unshare needs root)\n");
        return;
    }
    apart = 1;
    setenv("UCX_TLS", "tcp", 1); /* hosts share no memory */
    run(3, &config, finds_ucx, NULL);
    for (int r = 0; r < 3; r++) CHECK_EQ_U64(the_board->result[r], bits);
    run(3, &config, leaves, NULL);
    config.transport = "ucx";
    config.timeout_ms = 60000;
    run(3, &config, loses_rank_1, &killed);
    config.timeout_ms = 1500;
    run(3, &config, stops, &killed);
    unsetenv("UCX_TLS");
    apart = 0;
}

int main(void)
{
    static const int sizes[] = {2, 3, 8};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    const fork_end killed = {1, SIGKILL};
    uint64_t bits = 0;
    /* UCX's hooks in the C library call ThreadSanitizer on threads that it has
     * already forgotten. */
    if (TESTS_SLOW) setenv("UCX_MEM_EVENTS", "n", 0);
    if (!ucx_is_there(1)) return TAC_CHECK_SKIP_CODE;
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    pthread_atfork(NULL, NULL, move_away);
    config.transport = "ucx";
    for (int i = 0; i < 3; i++) {
        run(sizes[i], &config, whole, NULL);
        with_threads(sizes[i], NULL, bits_only, &bits);
        for (int r = 0; r < sizes[i]; r++)
            CHECK_EQ_U64(the_board->result[r], bits);
    }
    run(4, &config, algorithms, NULL);
    config.emulate = "hosts=2";
    run(4, &config, algorithms, NULL);
    config.emulate = NULL;
    run(3, &config, mail_all, NULL);
    run(3, &config, mail_late, NULL);
    run(3, &config, mail_aborted, NULL);
    run(3, &config, mail_other_count, NULL);
    run(2, &config, mail_other_dtype, NULL);
    run(3, &config, aborts, NULL);
    run(3, &config, leaves, NULL);
    run(3, &config, leaves_early, NULL);
    run(3, &config, makes_many, NULL);
    run(2, &config, catches_no_signal, NULL);
    run(2, &config, waits_asleep, NULL);
    config.timeout_ms = 4000;
    run(4, &config, loses_rank_1, &killed);
    config.timeout_ms = 1500;
    run(3, &config, stops, &killed);
    config.timeout_ms = 20000;
    config.check = 1;
    run(3, &config, disagrees, NULL);
    config.check = 0;
    config.progress = TAC_PROGRESS_THREAD;
    run(3, &config, bits_only, NULL);
    config.progress = TAC_PROGRESS_CALLER;
    uint64_t over_ucx = 0;
    with_threads(3, NULL, bits_only, &bits);
    if (!TESTS_SLOW) with_threads(3, &config, bits_only, &over_ucx);
    if (!TESTS_SLOW) CHECK_EQ_U64(over_ucx, bits);
    on_hosts(bits);
    missing();
    return tac_check_summary();
}
