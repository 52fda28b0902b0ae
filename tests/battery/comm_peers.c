/* comm_peers.c: what peers' own test suites ask of them, asked of tacit: the
 * table of reference/comm.md, section 5, row by row, with ranks that are
 * threads and ranks that are processes, over every transport that needs no
 * launcher. (mpi/comm_peers.c: the same under mpirun.)
 *
 *   row  where
 *   1    row_1_exact_sums: ranks 1..9, 13, 16, 24, 32; all algorithms
 *   2    row_2_times_out, here
 *   3    unit/comm_buckets.c
 *   4    row_4_same_as_alone; with the engine: battery/ddp_same_answer.c
 *   5    row_5_hooks
 *   6    comm_reducer_suite.h: test_accumulation, test_no_sync_differs
 *   8    comm_reducer_suite.h: test_race, 1000 iterations
 *   9    row_9_mismatch; texts: comm_reducer_suite.h, test_mismatch
 *   10   row_10_creation, here
 *   12   row_12_dtypes, row_12_async
 *   14   row_14_fill, row_14_late, row_14_never. Scales by rank (nccl-tests'
 *        premul) are a mismatch here: scales belong to the call, which is the
 *        same on all ranks (comm.h)
 *   15   row_15_small_tensor, row_15_one_bit (a hook written here: a codec of
 *        one bit is not among tacit's)
 *   (a)  comm_reducer_suite.h: test_same_bits (ready order, bucket and chunk
 *        sizes); battery/comm_kernels.c; comm_collectives.c: same_bits
 *   (b)  wire_bytes_are_counted in comm_complaints.c, comm_codecs.c
 *   (c)  battery/comm_kills.c, mpi/comm_kills.c */
#include "comm_fork.h"
#include "comm_rows.h"
#include "comm_rows_reducer.h"
#include "comm_told.h"

static board *the_board;

/* ---- healthy --------------------------------------------------------------
 */

static void exact_sums(tac_comm *c, void *arg)
{
    (void)arg;
    row_1_exact_sums(c);
}

/* ---- row 15: one bit an element -------------------------------------------
 *
 * Sign and ||x||/sqrt(n), twice: what a rank contributes, and the mean; both
 * with the error of the last time added. */

enum { N15 = 1000, STEPS15 = 5 };

static float row_15_value(int rank, int step, size_t i)
{
    const uint32_t h = ((uint32_t)i * 2654435761u + (uint32_t)rank * 977u +
                        (uint32_t)step * 31337u) >>
                       9;
    return ((float)(h % 2001) - 1000.0f) / 1000.0f;
}

/* x + error becomes sign * scale; the error is what that loses. */
static void row_15_compress(float *x, float *error)
{
    double squares = 0;
    for (size_t i = 0; i < N15; i++) {
        x[i] += error[i];
        squares += (double)x[i] * (double)x[i];
    }
    const float scale = (float)sqrt(squares / N15);
    for (size_t i = 0; i < N15; i++) {
        const float sent = x[i] >= 0 ? scale : -scale;
        error[i] = x[i] - sent;
        x[i] = sent;
    }
}

typedef struct row_15_state {
    float mine[N15], server[N15]; /* errors */
    unsigned char bits[N15 / 8], all[16 * N15 / 8];
    float scale[16];
} row_15_state;

/* Bits and scales of all ranks by allgather; every rank plays the server. */
static tac_status row_15_hook(void *state, tac_comm *c,
                              const tac_bucket_view *b, tac_req **req)
{
    row_15_state *s = state;
    float *x = b->buffer;
    (void)req;
    row_15_compress(x, s->mine);
    const float scale = fabsf(x[0]);
    memset(s->bits, 0, sizeof s->bits);
    for (size_t i = 0; i < N15; i++)
        if (x[i] >= 0) s->bits[i / 8] |= (unsigned char)(1u << i % 8);
    TAC_TRY(row_wait(
        tac_allgather(c, s->bits, s->all, sizeof s->bits, TAC_U8, NULL, req),
        req));
    TAC_TRY(row_wait(tac_allgather(c, &scale, s->scale, 1, TAC_F32, NULL, req),
                     req));
    *req = NULL;
    for (size_t i = 0; i < N15; i++) {
        float sum = 0;
        for (int r = 0; r < tac_comm_size(c); r++) {
            const unsigned char *bits = s->all + (size_t)r * sizeof s->bits;
            const int up = bits[i / 8] >> i % 8 & 1;
            sum += up ? s->scale[r] : -s->scale[r];
        }
        x[i] = sum / (float)tac_comm_size(c);
    }
    row_15_compress(x, s->server);
    return TAC_OK;
}

/* The plain simulation: all ranks' arithmetic in one place. */
static void row_15_simulate(int p, int step, float (*error)[N15], float *server,
                            float *out)
{
    memset(out, 0, N15 * sizeof *out);
    for (int r = 0; r < p; r++) {
        float x[N15];
        for (size_t i = 0; i < N15; i++) x[i] = row_15_value(r, step, i);
        row_15_compress(x, error[r]);
        for (size_t i = 0; i < N15; i++) out[i] += x[i];
    }
    for (size_t i = 0; i < N15; i++) out[i] /= (float)p;
    row_15_compress(out, server);
}

static void row_15_one_bit(tac_comm *c)
{
    const int p = tac_comm_size(c);
    float(*error)[N15] = calloc((size_t)p + 2, sizeof *error);
    float *server = error[p], *want = error[p + 1];
    row_15_state *s = calloc(1, sizeof *s);
    const tac_param_desc d = {.name = "x", .count = N15};
    tac_reducer *r = NULL;
    if (!CHECK(error && s) || !CHECK_OK(tac_reducer_create(c, &d, 1, NULL, &r)))
        return;
    CHECK_OK(tac_reducer_set_hook(r, row_15_hook, NULL, s));
    for (int step = 0; step < STEPS15; step++) {
        void *g = NULL;
        size_t bad = 0;
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        CHECK_OK(tac_reducer_grad_ptr(r, 0, &g));
        for (size_t i = 0; i < N15; i++)
            ((float *)g)[i] = row_15_value(tac_comm_rank(c), step, i);
        CHECK_OK(tac_reducer_ready(r, 0, NULL));
        CHECK_OK(tac_reducer_finish(r, 0));
        row_15_simulate(p, step, error, server, want);
        for (size_t i = 0; i < N15; i++)
            bad += !(fabsf(((float *)g)[i] - want[i]) <= 1e-6f);
        CHECK_MSG(bad == 0, "row 15: step %d: %zu elements differ", step, bad);
    }
    tac_reducer_destroy(r);
    free(s);
    free(error);
}

static void healthy_rows(tac_comm *c, void *arg)
{
    (void)arg;
    row_1_exact_sums(c);
    row_4_same_as_alone(c);
    row_5_hooks(c);
    row_9_mismatch(c);
    row_12_dtypes(c);
    row_12_async(c);
    row_14_fill(c);
    row_15_small_tensor(c);
    row_15_one_bit(c);
}

/* ---- row 2 ----------------------------------------------------------------
 */

/* One good allreduce, then a timeout of 10 ms and only rank 0 calls. */
static void row_2_times_out(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) != 0) {
        CHECK_STATUS(told_wait_for_error(c), TAC_ERR_TIMEOUT);
        return;
    }
    const double from = tac_clock_s();
    CHECK_STATUS(told_sum(c, 10), TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < 1);
    told_error_has(c, "timed out");
}

/* ---- row 14: late, or never ------------------------------------------------
 */

/* 0.4 s late is no failure where 2 s are allowed. */
static void row_14_late(tac_comm *c, void *arg)
{
    (void)arg;
    if (tac_comm_rank(c) == 1) told_sleep_ms(400);
    CHECK_OK(told_sum(c, 2000));
    CHECK_OK(told_barrier(c));
}

/* Never is one, on all that posted. */
static void row_14_never(tac_comm *c, void *arg)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float x = 1;
    (void)arg;
    opt.timeout_ms = 400;
    if (tac_comm_rank(c) == 1) {
        CHECK_STATUS(told_wait_for_error(c), TAC_ERR_TIMEOUT);
        return;
    }
    const double from = tac_clock_s();
    CHECK_STATUS(
        row_wait(tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, &opt, &req),
                 &req),
        TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < 1.4);
}

/* ---- row 10 ---------------------------------------------------------------
 */

typedef struct creation {
    tac_thread_group *group;
    int rank;
} creation;

static void *create_in_vain(void *arg)
{
    const creation *k = arg;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = rank_context(k->rank, 4);
    tac_comm *c = NULL;
    char text[512];
    config.timeout_ms = 400;
    const double from = tac_clock_s();
    CHECK_STATUS(tac_comm_create_threads(ctx, k->group, k->rank, &config, &c),
                 TAC_ERR_TIMEOUT);
    CHECK(tac_clock_s() - from < 2.4);
    CHECK(c == NULL);
    tac_context_error(ctx, text, sizeof text);
    told_has(text, "timed out");
    told_has(text, "rank 2 of 4 has not called");
    tac_context_destroy(ctx);
    return NULL;
}

/* 4 ranks, of which one never comes: the 3 present get the timeout. */
static void row_10_creation(void)
{
    pthread_t thread[4];
    creation k[4];
    tac_thread_group *group = NULL;
    CHECK_OK(tac_thread_group_create(4, &group));
    for (int r = 0; r < 4; r++) {
        k[r] = (creation){group, r};
        if (r != 2)
            CHECK(pthread_create(&thread[r], NULL, create_in_vain, &k[r]) == 0);
    }
    for (int r = 0; r < 4; r++)
        if (r != 2) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

/* The same with processes, whose bootstrap can't name who is missing. */
static void row_10_processes(void)
{
    pid_t pid[2];
    memset(the_board, 0, sizeof *the_board);
    fflush(NULL);
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] != 0) continue;
        fork_rank f = {.board = the_board, .rank = r, .size = 3};
        const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel,
                             &f};
        tac_comm_config config = TAC_COMM_CONFIG_INIT;
        tac_context *ctx = rank_context(r, 3);
        tac_comm *c = NULL;
        char text[512];
        tac_check_count.failed = 0;
        config.timeout_ms = 300;
        CHECK_STATUS(tac_comm_create_oob(ctx, r, 3, &oob, &config, &c),
                     TAC_ERR_TIMEOUT);
        tac_context_error(ctx, text, sizeof text);
        told_has(text, "timed out");
        told_has(text, "not all ranks have called");
        tac_context_destroy(ctx);
        exit(tac_check_failed() > 0);
    }
    const double from = tac_clock_s();
    for (int r = 0; r < 2; r++) {
        int st = 0;
        CHECK(waitpid(pid[r], &st, 0) == pid[r]);
        CHECK_MSG(st == 0, "rank %d ended with 0x%x", r, st);
    }
    CHECK(tac_clock_s() - from < 2.3);
}

/* ---- where ----------------------------------------------------------------
 */

static void over_threads(void)
{
    static const int sizes[] = {1, 2, 4, 7};
    static const int more[] = {3, 5, 6, 8, 9, 13, 16, 24, 32};
    for (int i = 0; i < 4; i++)
        with_threads(sizes[i], NULL, healthy_rows, NULL);
    for (int i = 0; i < (TESTS_SLOW ? 3 : 9); i++)
        with_threads(more[i], NULL, exact_sums, NULL);
    with_threads(2, NULL, row_2_times_out, NULL);
    with_threads(3, NULL, row_14_late, NULL);
    with_threads(3, NULL, row_14_never, NULL);
    printf("threads: %ld failed so far\n", tac_check_failed());
    tac_comm_config emulated = TAC_COMM_CONFIG_INIT;
    emulated.emulate = "hosts=2,rate=10gbit,delay=0";
    with_threads(4, &emulated, healthy_rows, NULL);
    with_threads(2, &emulated, row_2_times_out, NULL);
    printf("an emulated network: %ld failed so far\n", tac_check_failed());
}

static void over_processes(const char *transport)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.transport = transport;
    if (!can_fork_over(transport, the_board)) return;
    with_processes(2, &config, healthy_rows, NULL, the_board, NULL);
    with_processes(4, &config, healthy_rows, NULL, the_board, NULL);
    with_processes(2, &config, row_2_times_out, NULL, the_board, NULL);
    with_processes(3, &config, row_14_late, NULL, the_board, NULL);
    with_processes(3, &config, row_14_never, NULL, the_board, NULL);
    printf("%s: %ld failed so far\n", transport, tac_check_failed());
}

int main(void)
{
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    /* Processes first: fork and threads don't go together well. */
    over_processes("shm");
    over_processes("ucx");
    row_10_processes();
    row_10_creation();
    over_threads();
    return tac_check_summary();
}
