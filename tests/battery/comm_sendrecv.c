/* comm_sendrecv.c: tac_send and tac_recv between threads, processes and on a
 * world of one; what must fail fails on both sides, and in time. */
#include "comm_sendrecv_suite.h"
#include "comm_fork.h"

static board *the_board;

static void whole(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_run(c);
}

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

static void other_count(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_disagrees(c, 0);
}

static void other_dtype(tac_comm *c, void *arg)
{
    (void)arg;
    p2p_disagrees(c, 1);
}

/* What was sent before leaving still arrives; what was not is missed at once,
 * not after the timeout. */
static void leaves(tac_comm *c, void *arg)
{
    enum { N = 1000 };
    char x[N] = {0};
    tac_req *req = NULL;
    (void)arg;
    if (tac_comm_rank(c) == 1) {
        CHECK_OK(finish(tac_send(c, x, N, TAC_U8, 0, NULL, &req), &req));
    } else if (tac_comm_rank(c) == 0) {
        tac_clock_sleep_ns(100000000u);
        CHECK_OK(finish(tac_recv(c, x, N, TAC_U8, 1, NULL, &req), &req));
        const double from = tac_clock_s();
        CHECK_STATUS(finish(tac_recv(c, x, N, TAC_U8, 1, NULL, &req), &req),
                     TAC_ERR_PEER);
        CHECK(tac_clock_s() - from < 5);
        p2p_contains(c, "rank 1 has left");
    }
}

/* Rank 1 dies; rank 0, which waits for it, says so within 2 s. Rank 2 has
 * nothing to do with it and hears of it. */
static void loses_rank_1(tac_comm *c, void *arg)
{
    char x[8] = {0};
    tac_req *req = NULL;
    (void)arg;
    if (tac_comm_rank(c) == 1) {
        tac_clock_sleep_ns(100000000u);
        raise(SIGKILL);
    }
    const double from = tac_clock_s();
    if (tac_comm_rank(c) == 0)
        CHECK_STATUS(finish(tac_recv(c, x, 8, TAC_U8, 1, NULL, &req), &req),
                     TAC_ERR_PEER);
    p2p_await_error(c);
    CHECK_STATUS(tac_comm_error(c, NULL, 0), TAC_ERR_PEER);
    CHECK(tac_clock_s() - from < 2.1);
    p2p_contains(c, "rank 1 ");
    p2p_contains(c, "died");
}

/* Destroyed with requests under way: they can still be waited for. */
static void orphans(tac_comm *c, void *arg)
{
    enum { N = 1000000 };
    static _Thread_local char x[2][N];
    tac_comm *child = NULL;
    tac_req *req[2] = {0};
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    (void)arg;
    if (!CHECK_OK(tac_comm_split(c, 0, 0, &child))) return;
    CHECK_OK(tac_send(child, x[0], N, TAC_U8, (r + 1) % p, NULL, &req[0]));
    CHECK_OK(tac_recv(child, x[1], N, TAC_U8, r, NULL, &req[1]));
    p2p_meet(child);
    tac_comm_destroy(child);
    CHECK(tac_wait(req[0], 0) < 0);
    CHECK(tac_wait(req[1], 0) < 0);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 8};
    const fork_end killed = {1, SIGKILL};
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    for (int t = 0; t < 2; t++) {
        tac_comm_config config = TAC_COMM_CONFIG_INIT;
        config.progress = t ? TAC_PROGRESS_THREAD : TAC_PROGRESS_CALLER;
        for (int i = 0; i < 4; i++) {
            config.message_bytes = i % 2 ? 4096 : 0;
            with_threads(sizes[i], &config, whole, NULL);
            /* What processes do to one another, TSan does not see. */
            if (!TESTS_TSAN || sizes[i] == 2)
                with_processes(sizes[i], &config, whole, NULL, the_board, NULL);
        }
        with_threads(3, &config, other_count, NULL);
        with_threads(2, &config, other_dtype, NULL);
        with_processes(2, &config, other_count, NULL, the_board, NULL);
        with_threads(3, &config, times_out, NULL);
        with_threads(1, &config, times_out, NULL);
        with_threads(3, &config, aborts, NULL);
        with_threads(2, &config, leaves, NULL);
        with_threads(3, &config, orphans, NULL);
        with_processes(3, &config, loses_rank_1, NULL, the_board, &killed);
        printf("%s: %ld failed so far\n", t ? "progress threads" : "callers",
               tac_check_failed());
    }
    return tac_check_summary();
}
