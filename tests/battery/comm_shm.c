/* comm_shm.c: the suite with ranks that are processes, in shared memory; the
 * same bits as thread ranks; a rank that is killed; nothing left behind. */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "comm_suite.h"
#include "comm_fork.h"

static board *the_board;

static void whole(tac_comm *comm, void *arg)
{
    const int brief = tac_comm_size(comm) > 4;
    (void)arg;
    the_board->result[tac_comm_rank(comm)] =
        brief ? suite_run_brief(comm, TESTS_SLOW ? 30 : 100)
              : suite_run(comm, TESTS_SLOW ? 50 : 200);
    CHECK_EQ_STR(tac_comm_transport_name(comm), "shm");
    CHECK_EQ(tac_comm_hosts(comm), 1);
}

static void bits_only(tac_comm *comm, void *arg)
{
    const uint64_t bits = suite_run_bits(comm);
    if (arg && tac_comm_rank(comm) == 0) *(uint64_t *)arg = bits;
    if (!arg) the_board->result[tac_comm_rank(comm)] = bits;
}

/* Files of ours in /dev/shm. */
static int left_behind(void)
{
    int n = 0;
    DIR *d = opendir("/dev/shm");
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "tacit-", 6) == 0;
    closedir(d);
    return n;
}

/* ---- a rank that is killed
 * ---------------------------------------------------- */

/* Rank 1 dies while the others wait for it: each says so within 2 s. */
static void loses_rank_1(tac_comm *c, void *arg)
{
    enum { N = 100000 };
    static float x[N];
    char text[512];
    tac_req *req = NULL;
    (void)arg;
    CHECK_OK(finish(tac_allreduce(c, NULL, x, N, TAC_F32, TAC_SUM, NULL, &req),
                    &req));
    if (tac_comm_rank(c) == 1) {
        tac_clock_sleep_ns(100000000u);
        raise(SIGKILL);
    }
    const double from = tac_clock_s();
    CHECK_STATUS(
        finish(tac_allreduce(c, NULL, x, N, TAC_F32, TAC_SUM, NULL, &req),
               &req),
        TAC_ERR_PEER);
    CHECK(tac_clock_s() - from < 2.1);
    tac_comm_error(c, text, sizeof text);
    CHECK_MSG(strstr(text, "rank 1 ") && strstr(text, "died"), "\"%s\"", text);
    CHECK_STATUS(tac_barrier(c, NULL, &req), TAC_ERR_PEER);
}

/* ---- the fallback where anonymous memory is refused
 * ---------------------------- */

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

static void has_names_no_more(tac_comm *comm, void *arg)
{
    (void)arg;
    CHECK(comm->domain->regions.kind == TAC__REGION_POSIX);
    CHECK_EQ(left_behind(), 0);
    the_board->result[tac_comm_rank(comm)] = suite_run_bits(comm);
    CHECK_EQ(left_behind(), 0);
}

/* In a child, because what is forbidden stays so. */
static void without_memfd(const tac_comm_config *config, uint64_t bits)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        tac_check_count.failed = 0;
        if (!forbid_memfd()) exit(TAC_CHECK_SKIP_CODE);
        with_processes(4, config, has_names_no_more, NULL, the_board, NULL);
        for (int r = 0; r < 4; r++) CHECK_EQ_U64(the_board->result[r], bits);
        exit(tac_check_failed() > 0);
    }
    int st = 0;
    CHECK(waitpid(pid, &st, 0) == pid);
    if (WIFEXITED(st) && WEXITSTATUS(st) == TAC_CHECK_SKIP_CODE)
        printf("skipped: seccomp filters are not allowed here\n");
    else
        CHECK_MSG(WIFEXITED(st) && WEXITSTATUS(st) == 0, "ended with 0x%x", st);
}

int main(void)
{
    static const int sizes[] = {2, 3, 4, 8};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    const fork_end killed = {1, SIGKILL};
    uint64_t bits = 0;
    const int before = left_behind();
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    for (int i = 0; i < 4; i++) {
        with_processes(sizes[i], &config, whole, NULL, the_board, NULL);
        for (int r = 1; r < sizes[i]; r++)
            CHECK_EQ_U64(the_board->result[r], the_board->result[0]);
        with_threads(sizes[i], &config, bits_only, &bits);
        CHECK_EQ_U64(the_board->result[0], bits);
        printf("%d ranks: %ld failed so far\n", sizes[i], tac_check_failed());
    }
    with_threads(4, &config, bits_only, &bits);
    without_memfd(&config, bits);
    config.transport = "shm";
    with_processes(4, &config, loses_rank_1, NULL, the_board, &killed);
    config.progress = TAC_PROGRESS_THREAD;
    with_processes(3, &config, loses_rank_1, NULL, the_board, &killed);
    with_processes(3, &config, bits_only, NULL, the_board, NULL);
    CHECK_EQ(left_behind(), before);
    return tac_check_summary();
}
