/* comm_kills.c: ranks that are processes, and one of them is killed in the
 * middle of an allreduce, is stopped, calls something else, or leaves; shared
 * memory that is too small. comm_broken.h says what each survivor must see.
 * (mpi/comm_kills.c: the same under mpirun.) */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "comm_broken.h"
#include "comm_fork.h"
#include "comm_impl.h"

static board *the_board;
static int has_ucx;

static tac_comm_config broken_config(const char *transport)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.transport = transport;
    config.timeout_ms = BROKEN_TIMEOUT_MS;
    config.check = 1;
    return config;
}

/* The last rank leaves without a word; processes that end are no deaths as
 * long as nobody needs them. */
static void leaves_early(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(told_barrier(c));
    CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) == tac_comm_size(c) - 1) _Exit(0);
    told_sleep_ms(400);
    CHECK_OK(tac_comm_error(c, NULL, 0));
}

static int fits(const tac_comm *c, const tac__alg *alg)
{
    const tac_req like = {.comm = (tac_comm *)(uintptr_t)c,
                          .coll = alg->coll,
                          .count = BROKEN_COUNT,
                          .esize = 4,
                          .bytes_logical = (size_t)BROKEN_COUNT * 4};
    return alg->applicable(c, &like);
}

/* By name, each algorithm: killed while in it. */
static void killed_in(tac_comm *c, void *arg)
{
    const tac__alg *alg = arg;
    static float x[BROKEN_COUNT];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_status s = TAC_OK;
    double took = 0;
    pthread_t other;
    opt.algorithm = alg->name;
    CHECK_OK(told_barrier(c));
    if (!fits(c, alg)) {
        if (tac_comm_rank(c) == BROKEN_VICTIM) raise(SIGKILL);
        return;
    }
    if (tac_comm_rank(c) == BROKEN_VICTIM)
        CHECK(pthread_create(&other, NULL, broken_die_soon, NULL) == 0);
    for (int i = 0; i < 100000 && s == TAC_OK; i++) {
        tac_req *req = NULL;
        const double from = tac_clock_s();
        s = tac_allreduce(c, NULL, x, BROKEN_COUNT, TAC_F32, TAC_SUM, &opt,
                          &req);
        if (s == TAC_OK) s = tac_wait(req, 0);
        took = tac_clock_s() - from;
    }
    broken_report(c, s, TAC_ERR_PEER, took, BROKEN_TIMEOUT_MS * 1e-3 + 1);
    told_error_has(c, "died");
    told_error_has(c, "rank 1 ");
}

static void each_algorithm(const tac_comm_config *config)
{
    const fork_end killed = {BROKEN_VICTIM, SIGKILL};
    for (size_t a = 0; tac__algs[a]; a++) {
        const tac__alg *alg = tac__algs[a];
        if (alg->coll != TAC_COLL_ALLREDUCE) continue;
        with_processes(4, config, killed_in, (void *)(uintptr_t)alg, the_board,
                       &killed);
        printf("killed in %s: %ld failed so far\n", alg->name,
               tac_check_failed());
    }
}

static void over(const char *transport)
{
    tac_comm_config config = broken_config(transport);
    const fork_end killed = {BROKEN_VICTIM, SIGKILL};
    if (!can_fork_over(transport, the_board)) return;
    with_processes(8, &config, broken_killed, NULL, the_board, &killed);
    with_processes(4, &config, broken_stopped, NULL, the_board, NULL);
    with_processes(4, &config, broken_aborted, NULL, the_board, NULL);
    for (int how = 0; how < BROKEN_CALLS; how++)
        with_processes(3, &config, broken_disagreed, &how, the_board, NULL);
    with_processes(3, &config, leaves_early, NULL, the_board, NULL);
    config.progress = TAC_PROGRESS_THREAD;
    with_processes(3, &config, broken_killed, NULL, the_board, &killed);
    printf("%s: %ld failed so far\n", transport, tac_check_failed());
}

/* ---- memory ---------------------------------------------------------------
 */

/* memfd_create fails with EPERM from now on; 0 if that can't be arranged. */
static int forbid_memfd(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog prog = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* A small /dev/shm of our own; 0 if that is not allowed. */
static int shrink_dev_shm(const char *size)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, size) == 0;
}

/* What ranks of this process see. */
static void create_in_small_shm(int rank, const char *transport,
                                size_t staging_bytes)
{
    fork_rank f = {.board = the_board, .rank = rank, .size = 3};
    const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel, &f};
    tac_comm_config config = broken_config(transport);
    tac_context *ctx = rank_context(rank, 3);
    tac_comm *c = NULL;
    char text[512];
    config.staging_bytes = staging_bytes;
    const tac_status s = tac_comm_create_oob(ctx, rank, 3, &oob, &config, &c);
    if (staging_bytes < 100000) {
        /* It fits: /dev/shm is enough, and left clean. */
        if (CHECK_OK(s)) CHECK_OK(told_sum(c, 0));
    } else {
        CHECK_STATUS(s, TAC_ERR_NOMEM);
        tac_context_error(ctx, text, sizeof text);
        told_has(text, "/dev/shm is too small: each of 3 ranks needs ");
        told_has(text, "bytes");
        CHECK(c == NULL);
    }
    tac_comm_destroy(c);
    tac_context_destroy(ctx);
}

static void ranks_in_small_shm(const char *transport, size_t staging_bytes)
{
    pid_t pid[3];
    memset(the_board, 0, sizeof *the_board);
    for (int r = 0; r < 3; r++) {
        pid[r] = fork();
        if (pid[r] != 0) continue;
        tac_check_count.failed = 0;
        create_in_small_shm(r, transport, staging_bytes);
        exit(tac_check_failed() > 0);
    }
    for (int r = 0; r < 3; r++) {
        int st = 0;
        CHECK(waitpid(pid[r], &st, 0) == pid[r]);
        CHECK_MSG(st == 0, "rank %d ended with 0x%x", r, st);
    }
}

static void shm_in_small_shm(void)
{
    if (!shrink_dev_shm("size=8m") || !forbid_memfd())
        _Exit(TAC_CHECK_SKIP_CODE);
    ranks_in_small_shm("shm", (size_t)4 << 20);
    ranks_in_small_shm("shm", 4096);
}

static void sums(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(told_sum(c, 0));
}

/* UCX has other memory, and anonymous memory needs none of it. */
static void others_in_small_shm(void)
{
    static const char *const names[] = {"shm", "ucx"};
    if (!shrink_dev_shm("size=64k")) _Exit(TAC_CHECK_SKIP_CODE);
    for (int i = 0; i < 2; i++) {
        const tac_comm_config config = broken_config(names[i]);
        if (i == 1 && !has_ucx) continue;
        with_processes(3, &config, sums, NULL, the_board, NULL);
    }
}

/* In a child, because what is taken away stays so. */
static void small_dev_shm(void (*fn)(void))
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        tac_check_count.failed = 0;
        fn();
        exit(tac_check_failed() > 0);
    }
    int st = 0;
    CHECK(waitpid(pid, &st, 0) == pid);
    if (WIFEXITED(st) && WEXITSTATUS(st) == TAC_CHECK_SKIP_CODE)
        printf("skipped: no namespace for a small /dev/shm here\n");
    else
        CHECK_MSG(st == 0, "small /dev/shm: ended with 0x%x", st);
}

int main(void)
{
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    const tac_comm_config config = broken_config("shm");
    over("shm");
    over("ucx");
    each_algorithm(&config);
    has_ucx = can_fork_over("ucx", the_board);
    small_dev_shm(shm_in_small_shm);
    small_dev_shm(others_in_small_shm);
    return tac_check_summary();
}
