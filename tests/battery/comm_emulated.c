/* comm_emulated.c: the emulated network. Results are right whatever is
 * underneath; nothing crosses faster than the links allow, nor absurdly slower;
 * hosts, bytes between hosts and errors are what they should be. Bounds above
 * are generous, because the machine may be busy. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "comm_sendrecv_suite.h"
#include "comm_fork.h"
#include "transports/emulate.h"

static board *the_board;

/* ---- the specification ----------------------------------------------------
 */

static void parses(void)
{
    static const struct {
        const char *text;
        int hosts;
        double rate;
        uint64_t delay_ns;
    } good[] = {
        {"hosts=4,rate=1gbit,delay=10ms", 4, 125e6, 10000000},
        {"hosts=2", 2, 0, 0},
        {"delay=0,rate=0,hosts=1", 1, 0, 0},
        {"hosts=8,rate=2.5gbit,delay=50us", 8, 312.5e6, 50000},
        {"rate=100mbit,hosts=3,delay=1s", 3, 12.5e6, 1000000000},
        {"hosts=16,rate=64kbit", 16, 8e3, 0},
    };
    static const char *const bad[] = {"",
                                      "hosts",
                                      "hosts=0",
                                      "hosts=-1",
                                      "hosts=x",
                                      "hosts=1.5",
                                      "rate=1gbit",
                                      "hosts=2,rate=1",
                                      "hosts=2,rate=1gbyte",
                                      "hosts=2,delay=10",
                                      "hosts=2,delay=-1ms",
                                      "hosts=2,loss=1",
                                      "hosts=2;rate=1gbit",
                                      "hosts=2,rate=",
                                      "hosts=2,",
                                      "hosts=2,,rate=0",
                                      ",hosts=2",
                                      "hosts=2,rate=nankbit",
                                      "hosts=999999999999"};
    tac__emulate e;
    char why[320] = "";
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        e = (tac__emulate){-1, -1, 1};
        CHECK_MSG(tac__emulate_parse(good[i].text, &e, why, sizeof why), "%s",
                  good[i].text);
        CHECK_EQ(e.hosts, good[i].hosts);
        CHECK_EQ_F64(e.rate, good[i].rate);
        CHECK_EQ_U64(e.delay_ns, good[i].delay_ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        *why = '\0';
        CHECK_MSG(!tac__emulate_parse(bad[i], &e, why, sizeof why), "\"%s\"",
                  bad[i]);
        CHECK_MSG(strstr(why, "rate=1gbit") != NULL, "\"%s\"", why);
    }
    CHECK_EQ((long long)tac__net_wire_bytes(0), 66);
    CHECK_EQ((long long)tac__net_wire_bytes(1448), 1514);
    CHECK_EQ((long long)tac__net_wire_bytes(1449), 1449 + 132);
}

/* ---- results --------------------------------------------------------------
 */

static void everything(tac_comm *c, void *arg)
{
    const int brief = tac_comm_size(c) > 4;
    (void)arg;
    the_board->result[tac_comm_rank(c)] =
        brief ? suite_run_brief(c, TESTS_SLOW ? 20 : 60)
              : suite_run(c, TESTS_SLOW ? 30 : 100);
    CHECK_EQ_STR(tac_comm_transport_name(c), "emulated");
}

static void the_bits(tac_comm *c, void *arg)
{
    (void)arg;
    the_board->result[tac_comm_rank(c)] = suite_run_bits(c);
}

/* Whatever the cost model chooses, and every algorithm by name. */
static void free_choice(tac_comm *c, void *arg)
{
    env e;
    (void)arg;
    if (!env_open(&e, c)) return;
    suite_algorithms(&e);
    suite_random(&e, TESTS_SLOW ? 30 : 100);
    env_close(&e);
    p2p_run(c);
}

/* Hosts are contiguous blocks, children have their ranks where they are. */
static void places(tac_comm *c, void *arg)
{
    static const int want5[] = {0, 0, 0, 1, 1};
    const int r = tac_comm_rank(c);
    tac_comm *host = NULL, *cross = NULL, *again = NULL;
    (void)arg;
    CHECK_EQ(tac_comm_hosts(c), 2);
    for (int q = 0; q < 5; q++)
        CHECK((c->peers[q].host == c->peers[r].host) == (want5[q] == want5[r]));
    CHECK_MSG(strstr(tac_comm_transport_why(c), "2 emulated hosts") != NULL,
              "%s", tac_comm_transport_why(c));
    CHECK_OK(tac_comm_split(c, want5[r], 0, &host));
    CHECK_OK(tac_comm_split(c, r % 3, 0, &cross));
    CHECK_EQ(tac_comm_hosts(host), 1);
    CHECK(strcmp(tac_comm_transport_name(host), "emulated") != 0);
    CHECK_EQ(tac_comm_hosts(cross), tac_comm_size(cross));
    CHECK_EQ_STR(tac_comm_transport_name(cross),
                 tac_comm_size(cross) > 1 ? "emulated" : "self");
    CHECK_OK(tac_comm_split(cross, 0, -r, &again));
    tac_comm_destroy(cross);
    int32_t x = 1;
    tac_req *req = NULL;
    CHECK_OK(finish(
        tac_allreduce(again, NULL, &x, 1, TAC_I32, TAC_SUM, NULL, &req), &req));
    CHECK_EQ(x, tac_comm_size(again));
    tac_comm_destroy(again);
    tac_comm_destroy(host);
}

/* ---- time -----------------------------------------------------------------
 */

enum { MIB = 1 << 20 };

/* Seconds from the first rank's start of what fn starts to the last one's end,
 * after a barrier; the same on all ranks. */
typedef int start_fn(tac_comm *c, char *buf, tac_req **req);

static double timed(tac_comm *c, start_fn *fn)
{
    tac_req *req[8], *all = NULL;
    char *buf = calloc(4, MIB);
    CHECK_OK(finish(tac_barrier(c, NULL, &all), &all));
    double t[2] = {-tac_clock_s(), -1e300};
    const int n = fn(c, buf, req);
    for (int i = 0; i < n; i++) CHECK_OK(tac_wait(req[i], 0));
    if (n > 0) t[1] = tac_clock_s();
    if (n == 0) t[0] = -1e300;
    CHECK_OK(finish(tac_allreduce(c, NULL, t, 2, TAC_F64, TAC_MAX, NULL, &all),
                    &all));
    free(buf);
    return t[1] + t[0];
}

static double wire_s(size_t bytes, double rate)
{
    return (double)bytes * 1514 / 1448 / rate;
}

/* `slack` more than the least time, for a machine under load. */
static void check_time(double s, double least, double slack, const char *what)
{
    CHECK_MSG(s >= least * 0.999, "%s took %.6f s, the links need %.6f", what,
              s, least);
    CHECK_MSG(s < least * 2 + slack, "%s took %.6f s, the links need %.6f",
              what, s, least);
}

/* Rank 0 to rank 2, on another host; rank 1 to rank 3, on the same two. */
static int one_stream(tac_comm *c, char *buf, tac_req **req)
{
    const int r = tac_comm_rank(c);
    if (r == 0) CHECK_OK(tac_send(c, buf, MIB, TAC_U8, 2, NULL, req));
    if (r == 2) CHECK_OK(tac_recv(c, buf, MIB, TAC_U8, 0, NULL, req));
    return r == 0 || r == 2;
}

static int two_streams(tac_comm *c, char *buf, tac_req **req)
{
    const int r = tac_comm_rank(c);
    if (r < 2) CHECK_OK(tac_send(c, buf, MIB, TAC_U8, r + 2, NULL, req));
    if (r >= 2) CHECK_OK(tac_recv(c, buf, MIB, TAC_U8, r - 2, NULL, req));
    return 1;
}

/* Both directions at a time: links are full duplex. */
static int both_ways(tac_comm *c, char *buf, tac_req **req)
{
    const int r = tac_comm_rank(c), peer = 2 - r;
    if (r % 2) return 0;
    CHECK_OK(tac_send(c, buf, MIB, TAC_U8, peer, NULL, &req[0]));
    CHECK_OK(tac_recv(c, buf + MIB, MIB, TAC_U8, peer, NULL, &req[1]));
    return 2;
}

static int within_host(tac_comm *c, char *buf, tac_req **req)
{
    const int r = tac_comm_rank(c), peer = r ^ 1;
    CHECK_OK(tac_send(c, buf, MIB, TAC_U8, peer, NULL, &req[0]));
    CHECK_OK(tac_recv(c, buf + MIB, MIB, TAC_U8, peer, NULL, &req[1]));
    return 2;
}

/* 4 ranks on 2 hosts, 100 Mbit/s: 1 MiB takes 88 ms. */
static void times(tac_comm *c, void *arg)
{
    const double one = wire_s(MIB, 12.5e6);
    (void)arg;
    check_time(timed(c, one_stream), one, 2, "one stream");
    check_time(timed(c, two_streams), 2 * one, 2, "two through one link");
    check_time(timed(c, both_ways), one, 2, "both ways");
}

/* Over a link of 1 Mbit/s it would take 8.8 s. */
static void stays_within(tac_comm *c, void *arg)
{
    (void)arg;
    const double s = timed(c, within_host);
    CHECK_MSG(s < 4, "within a host: %.6f s", s);
}

static int ping(tac_comm *c, char *buf, tac_req **req)
{
    const int r = tac_comm_rank(c), peer = 1 - r;
    CHECK_OK(tac_send(c, buf, 1, TAC_U8, peer, NULL, &req[0]));
    CHECK_OK(tac_recv(c, buf + 1, 1, TAC_U8, peer, NULL, &req[1]));
    return 2;
}

/* A delay, no rate: messages take just as long, many at a time too. */
static void delays(tac_comm *c, void *arg)
{
    (void)arg;
    const double cpu = tac_clock_thread_cpu_s();
    const double s = timed(c, ping);
    check_time(s, 0.05, 2, "a message with 50 ms of delay");
    const double spent = tac_clock_thread_cpu_s() - cpu;
    CHECK_MSG(TESTS_SLOW || spent < 0.03, "waiting cost %.4f s", spent);
}

/* Two pairs of hosts: their links have nothing to do with each other. */
static void parallel(tac_comm *c, void *arg)
{
    (void)arg;
    check_time(timed(c, two_streams), wire_s(MIB, 12.5e6), 2, "parallel links");
}

static void counts_bytes(tac_comm *c, void *arg)
{
    enum { N = 1000 };
    tac_comm_stats s;
    tac_req *req[2];
    char x[2][N];
    const int r = tac_comm_rank(c);
    memset(x, r, sizeof x);
    (void)arg;
    /* 0 and 1 are on one host, 2 and 3 on another. */
    const int to = (r + 1) % 4, from = (r + 3) % 4;
    CHECK_OK(tac_send(c, x[0], N, TAC_U8, to, NULL, &req[0]));
    CHECK_OK(tac_recv(c, x[1], N, TAC_U8, from, NULL, &req[1]));
    CHECK_OK(tac_wait(req[0], 0));
    CHECK_OK(tac_wait(req[1], 0));
    CHECK_EQ(x[1][0], from);
    tac_comm_stats_get(c, &s);
    const uint64_t want = r % 2 ? N + sizeof(tac__envelope) : 0;
    CHECK_EQ_U64(s.op[TAC_COLL_SEND].bytes_between_hosts, want);
}

/* ---- failures -------------------------------------------------------------
 */

static void times_out(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_times_out(c);
}

static void aborts(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_aborts(c);
}

static void disagrees(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_disagrees(c, 0);
}

static void loses_rank_1(tac_comm *c, void *arg)
{
    tac_req *req = NULL;
    float x = 1;
    (void)arg;
    CHECK_OK(finish(tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, NULL, &req),
                    &req));
    if (tac_comm_rank(c) == 1) {
        tac_clock_sleep_ns(50000000u);
        raise(SIGKILL);
    }
    const double from = tac_clock_s();
    CHECK_STATUS(
        finish(tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, NULL, &req),
               &req),
        TAC_ERR_PEER);
    CHECK(tac_clock_s() - from < 2.1);
    p2p_contains(c, "rank 1 ");
}

static void leaves(tac_comm *c, void *arg)
{
    tac_req *req = NULL;
    char x = 0;
    (void)arg;
    CHECK_OK(finish(tac_barrier(c, NULL, &req), &req));
    if (tac_comm_rank(c) == 1) {
        CHECK_OK(finish(tac_send(c, &x, 1, TAC_U8, 0, NULL, &req), &req));
        return; /* what it has sent is on the wire for 100 ms */
    }
    CHECK_OK(finish(tac_recv(c, &x, 1, TAC_U8, 1, NULL, &req), &req));
    CHECK_STATUS(finish(tac_recv(c, &x, 1, TAC_U8, 1, NULL, &req), &req),
                 TAC_ERR_PEER);
    p2p_contains(c, "rank 1 has left");
}

static void *refused(void *p)
{
    const rank_job *j = p;
    tac_comm *c = NULL;
    tac_context *ctx = rank_context(j->rank, j->size);
    char text[512];
    CHECK_STATUS(tac_comm_create_threads(ctx, j->group, j->rank, j->config, &c),
                 TAC_ERR_ARG);
    CHECK(c == NULL);
    tac_context_error(ctx, text, sizeof text);
    CHECK_MSG(strstr(text, (const char *)j->arg) != NULL, "\"%s\"", text);
    tac_context_destroy(ctx);
    return NULL;
}

static void is_refused(const char *emulate, const char *why)
{
    pthread_t thread[2];
    rank_job job[2];
    tac_thread_group *group = NULL;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = emulate;
    CHECK_OK(tac_thread_group_create(2, &group));
    for (int r = 0; r < 2; r++) {
        job[r] = (rank_job){group, r, 2, &config, NULL, (void *)(uintptr_t)why};
        CHECK(pthread_create(&thread[r], NULL, refused, &job[r]) == 0);
    }
    for (int r = 0; r < 2; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

/* ---- where sleepers can't wait for several bells --------------------------
 */

/* futex_waitv fails with EPERM from now on; 0 if that can't be arranged. */
static int forbid_waitv(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 449, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog prog = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* Two communicators at a time, so that a waiter has two bells. */
static void two_at_a_time(tac_comm *c, void *arg)
{
    env e = {.comm = c, .rank = tac_comm_rank(c), .p = tac_comm_size(c)};
    char *room = malloc(2 * 80000);
    if (!room) abort();
    e.plain[0] = room;
    e.plain[1] = room + 80000;
    (void)arg;
    suite_two_comms(&e);
    free(room);
}

/* In a child, because what is forbidden stays so. */
static void without_waitv(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = "hosts=2,rate=1gbit";
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        tac_check_count.failed = 0;
        if (!forbid_waitv()) exit(TAC_CHECK_SKIP_CODE);
        with_threads(4, &config, two_at_a_time, NULL);
        exit(tac_check_failed() > 0);
    }
    int st = 0;
    CHECK(waitpid(pid, &st, 0) == pid);
    if (WIFEXITED(st) && WEXITSTATUS(st) == TAC_CHECK_SKIP_CODE)
        printf("skipped: seccomp filters are not allowed here\n");
    else
        CHECK_MSG(WIFEXITED(st) && WEXITSTATUS(st) == 0, "ended with 0x%x", st);
}

static void run(int size, const char *emulate, rank_fn *fn, int processes,
                const fork_end *end)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = emulate;
    if (processes)
        with_processes(size, &config, fn, NULL, the_board, end);
    else
        with_threads(size, &config, fn, NULL);
}

int main(void)
{
    const fork_end killed = {1, SIGKILL};
    tac_comm_config same = TAC_COMM_CONFIG_INIT;
    uint64_t bits = 0;
    same.emulate = "hosts=4";
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    parses();
    is_refused("hosts=2,rate=fast", "rate=Xkbit");
    is_refused("hosts=3", "there are 2");
    is_refused("hosts=2,hosts=1", "gives hosts twice");
    with_threads(4, &same, everything, NULL);
    bits = the_board->result[0];
    same.emulate = "hosts=2,rate=10gbit,delay=5us";
    /* What processes do to one another, ThreadSanitizer does not see. */
    with_processes(4, &same, TESTS_TSAN ? the_bits : everything, NULL,
                   the_board, NULL);
    for (int r = 0; r < 4; r++) CHECK_EQ_U64(the_board->result[r], bits);
    same.emulate = "hosts=3,rate=10gbit";
    with_threads(8, &same, everything, NULL);
    run(3, "hosts=2,rate=10gbit", free_choice, 0, NULL);
    run(4, "hosts=2,rate=10gbit", free_choice, 1, NULL);
    run(8, "hosts=4,rate=10gbit", free_choice, 0, NULL);
    same.progress = TAC_PROGRESS_THREAD;
    same.emulate = "hosts=3,rate=1gbit,delay=100us";
    with_threads(3, &same, free_choice, NULL);
    with_threads(3, &same, two_at_a_time, NULL);
    without_waitv();
    printf("results: %ld failed so far\n", tac_check_failed());
    run(5, "hosts=2", places, 0, NULL);
    run(5, "hosts=2,rate=1gbit", places, 1, NULL);
    run(4, "hosts=2,rate=1gbit", counts_bytes, 0, NULL);
    for (int processes = 0; processes < 2; processes++) {
        run(4, "hosts=2,rate=100mbit", times, processes, NULL);
        run(4, "hosts=2,rate=1mbit", stays_within, processes, NULL);
        run(4, "hosts=4,rate=100mbit", parallel, processes, NULL);
        run(2, "hosts=2,delay=50ms", delays, processes, NULL);
    }
    printf("times: %ld failed so far\n", tac_check_failed());
    for (int processes = 0; processes < 2; processes++) {
        run(3, "hosts=3,rate=1gbit,delay=1ms", times_out, processes, NULL);
        run(3, "hosts=2,rate=1gbit", aborts, processes, NULL);
        run(3, "hosts=3,rate=1gbit", disagrees, processes, NULL);
        run(2, "hosts=2,rate=1gbit,delay=100ms", leaves, processes, NULL);
    }
    run(4, "hosts=2,rate=1gbit", loses_rank_1, 1, &killed);
    return tac_check_summary();
}
