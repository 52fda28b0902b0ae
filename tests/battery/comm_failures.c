/* comm_failures.c: what happens when ranks stay away, disagree, give up or
 * leave: an agreed error in bounded time, never a hang, and destroy works. */
#include "comm_suite.h"
#include "comm_threads.h"

static int contains(const tac_comm *c, const char *what)
{
    char text[512];
    tac_comm_error(c, text, sizeof text);
    return CHECK_MSG(strstr(text, what) != NULL, "\"%s\" contains \"%s\"", text,
                     what);
}

static tac_status sum_one(tac_comm *c, int timeout_ms)
{
    tac_req *req = NULL;
    static _Thread_local float x;
    x = 1;
    const tac_status s =
        tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, NULL, &req);
    return s < 0 ? s : tac_wait(req, timeout_ms);
}

static void sleep_ms(unsigned ms)
{
    tac_clock_sleep_ns((uint64_t)ms * 1000000u);
}

/* After one good allreduce only rank 0 calls: it times out after 10 ms, names
 * the ranks that stay away, and the error reaches them. */
static void times_out(tac_comm *c, void *by_option)
{
    CHECK_OK(sum_one(c, 0));
    if (tac_comm_rank(c) == 0) {
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        float x = 1;
        opt.tag = 42;
        if (by_option) opt.timeout_ms = 10;
        CHECK_OK(tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, &opt, &req));
        const double from = tac_clock_s();
        CHECK_STATUS(tac_wait(req, by_option ? 0 : 10), TAC_ERR_TIMEOUT);
        CHECK(tac_clock_s() - from < 2);
        CHECK_STATUS(sum_one(c, 0), TAC_ERR_TIMEOUT); /* at once */
    } else {
        for (int i = 0; i < 1000 && !tac_comm_error(c, NULL, 0); i++) {
            sleep_ms(5);
            (void)tac_comm_progress(c);
        }
        CHECK_STATUS(sum_one(c, 0), TAC_ERR_TIMEOUT);
    }
    contains(c, "timed out");
    contains(c, "allreduce #1");
    contains(c, "tag 42");
    contains(c, "10 ms");
    contains(c, "waited for: 1, 2;");
}

/* Another thread aborts while all wait. */
static void *abort_soon(void *comm)
{
    sleep_ms(50);
    tac_comm_abort(comm, "enough is enough");
    return NULL;
}

static void aborts(tac_comm *c, void *arg)
{
    pthread_t other;
    const int rank = tac_comm_rank(c);
    (void)arg;
    if (rank == 1) CHECK(pthread_create(&other, NULL, abort_soon, c) == 0);
    if (rank == 3) sleep_ms(150); /* does not wait: hears of it later */
    CHECK_STATUS(sum_one(c, 0), TAC_ERR_ABORTED);
    CHECK_STATUS(sum_one(c, 0), TAC_ERR_ABORTED);
    contains(c, "rank 1 aborted: enough is enough");
    if (rank == 1) pthread_join(other, NULL);
}

/* Other counts, ops, roots, kinds: an error on all ranks that names both, and
 * no output is touched. */
static void disagrees(tac_comm *c, void *arg)
{
    const int how = *(const int *)arg, odd = tac_comm_rank(c) == 2;
    float x[64] = {0}, y[64];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    tac_status s = TAC_OK;
    memset(y, POISON, sizeof y);
    opt.tag = how == 4 && odd ? 5 : 0;
    opt.prescale = how == 5 && odd ? 2 : 1;
    if (how == 2 && odd)
        s = tac_barrier(c, NULL, &req);
    else if (how == 3)
        s = tac_broadcast(c, tac_comm_rank(c) ? y : x, 8, TAC_F32, odd, NULL,
                          &req);
    else
        s = tac_allreduce(c, x, y, how == 0 && odd ? 9 : 8, TAC_F32,
                          how == 1 && odd ? TAC_MAX : TAC_SUM, &opt, &req);
    CHECK_OK(s);
    CHECK_STATUS(tac_wait(req, 0), TAC_ERR_MISMATCH);
    for (size_t i = 0; i < sizeof y; i++)
        if (((unsigned char *)y)[i] != POISON) {
            CHECK_FAIL("way %d: byte %zu was written", how, i);
            break;
        }
    contains(c, "rank 2 runs");
}

/* A rank that leaves is missed at once, not after the timeout. */
static void leaves(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(sum_one(c, 0));
    if (tac_comm_rank(c) == 1) return; /* its communicator is destroyed */
    const double from = tac_clock_s();
    CHECK_STATUS(sum_one(c, 0), TAC_ERR_PEER);
    CHECK(tac_clock_s() - from < 5);
    contains(c, "rank 1 has left");
}

/* Destroyed with requests under way: they can still be waited for. */
static void *orphans(void *arg)
{
    rank_job *j = arg;
    tac_context *ctx = rank_context(j->rank, j->size);
    tac_comm *c = NULL;
    tac_req *done = NULL, *open[2] = {NULL, NULL};
    float x[3] = {1, 1, 1};
    CHECK_OK(tac_comm_create_threads(ctx, j->group, j->rank, NULL, &c));
    CHECK_OK(tac_barrier(c, NULL, &done));
    for (int finished = 0; !finished; sched_yield())
        if (!CHECK_OK(tac_test(done, &finished))) break;
    if (j->rank == 0)
        for (int i = 0; i < 2; i++)
            CHECK_OK(tac_allreduce(c, NULL, &x[i], 1, TAC_F32, TAC_SUM, NULL,
                                   &open[i]));
    tac_comm_destroy(c);
    CHECK_OK(tac_wait(done, 0));
    for (int i = 0; i < 2 && open[i]; i++)
        CHECK_STATUS(tac_wait(open[i], 0), TAC_ERR_ABORTED);
    tac_context_destroy(ctx);
    return NULL;
}

/* ---- creation
 * ----------------------------------------------------------------- */

typedef struct creation {
    rank_job job;
    tac_comm_config config;
    tac_status want;
    const char *text;
} creation;

static void *create_fails(void *arg)
{
    const creation *k = arg;
    char text[512];
    tac_context *ctx = rank_context(k->job.rank, k->job.size);
    tac_comm *c = (tac_comm *)(void *)ctx;
    const double from = tac_clock_s();
    CHECK_STATUS(
        tac_comm_create_threads(ctx, k->job.group, k->job.rank, &k->config, &c),
        k->want);
    CHECK(tac_clock_s() - from < 10);
    CHECK((void *)c == (void *)ctx); /* written only on success */
    tac_context_error(ctx, text, sizeof text);
    CHECK_MSG(strstr(text, k->text) != NULL, "\"%s\" contains \"%s\"", text,
              k->text);
    tac_context_destroy(ctx);
    return NULL;
}

/* Of 3 ranks, `present` call. */
static void creation_fails(creation k[3], int present)
{
    pthread_t thread[3];
    tac_thread_group *group = NULL;
    CHECK_OK(tac_thread_group_create(3, &group));
    for (int r = 0; r < present; r++) {
        k[r].job = (rank_job){.group = group, .rank = r, .size = 3};
        CHECK(pthread_create(&thread[r], NULL, create_fails, &k[r]) == 0);
    }
    for (int r = 0; r < present; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

static void creations(void)
{
    creation k[3];
    const creation same = {.config = TAC_COMM_CONFIG_INIT,
                           .want = TAC_ERR_MISMATCH,
                           .text = "rank 1 has another"};
    for (int how = 0; how < 3; how++) {
        for (int r = 0; r < 3; r++) k[r] = same;
        if (how == 0) k[1].config.staging_bytes = 12345;
        if (how == 1) k[1].config.deterministic = 1;
        if (how == 2) k[1].config.transport = "thread";
        creation_fails(k, 3);
    }
    for (int r = 0; r < 3; r++) {
        k[r] = same;
        k[r].config.timeout_ms = 200;
        k[r].want = TAC_ERR_TIMEOUT;
        k[r].text = "timed out";
    }
    creation_fails(k, 2); /* one stays away */
    static const char *const names[] = {"mpi", "self", "pigeon"};
    for (int how = 0; how < 3; how++) {
        for (int r = 0; r < 3; r++) {
            k[r] = same;
            k[r].config.transport = names[how];
            k[r].want = TAC_ERR_UNSUPPORTED;
            k[r].text = names[how];
        }
        creation_fails(k, 3);
    }
}

/* ---- waiting
 * ------------------------------------------------------------------- */

typedef struct log_lines {
    _Atomic int stalls;
} log_lines;

static void count_stalls(void *arg, tac_log_level level, const char *line)
{
    log_lines *l = arg;
    if (level == TAC_LOG_WARN && strstr(line, "barrier #0") &&
        strstr(line, "waited for: 1"))
        atomic_fetch_add(&l->stalls, 1);
}

static void *stall(void *arg)
{
    rank_job *j = arg;
    log_lines *lines = j->arg;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *c = NULL;
    tac_req *req = NULL;
    cc.log = count_stalls;
    cc.log_arg = lines;
    config.stall_warn_ms = 30;
    CHECK_OK(tac_context_create(&cc, &ctx));
    CHECK_OK(tac_comm_create_threads(ctx, j->group, j->rank, &config, &c));
    for (int i = 0; j->rank == 1 && i < 2000 && !lines->stalls; i++)
        sleep_ms(5);
    CHECK_OK(finish(tac_barrier(c, NULL, &req), &req));
    tac_comm_destroy(c);
    tac_context_destroy(ctx);
    return NULL;
}

static void run_two(void *(*fn)(void *), void *arg)
{
    pthread_t thread[2];
    rank_job job[2];
    tac_thread_group *group = NULL;
    CHECK_OK(tac_thread_group_create(2, &group));
    for (int r = 0; r < 2; r++) {
        job[r] = (rank_job){.group = group, .rank = r, .size = 2, .arg = arg};
        CHECK(pthread_create(&thread[r], NULL, fn, &job[r]) == 0);
    }
    for (int r = 0; r < 2; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

/* Seven ranks wait a second for the eighth and use little of the processor. */
static void idles(tac_comm *c, void *arg)
{
    tac_req *req = NULL;
    (void)arg;
    CHECK_OK(finish(tac_barrier(c, NULL, &req), &req));
    const double wall = tac_clock_s(), cpu = tac_clock_process_cpu_s();
    if (tac_comm_rank(c) == 7) sleep_ms(1000);
    CHECK_OK(finish(tac_barrier(c, NULL, &req), &req));
    const double used = tac_clock_process_cpu_s() - cpu;
    const double took = tac_clock_s() - wall;
    if (tac_comm_rank(c) == 7)
        CHECK_MSG(used < 0.2 * took, "waiting took %.3f s of CPU in %.3f s",
                  used, took);
}

int main(void)
{
    tac_comm_config threaded = TAC_COMM_CONFIG_INIT;
    threaded.progress = TAC_PROGRESS_THREAD;
    for (int t = 0; t < 2; t++) {
        const tac_comm_config *config = t ? &threaded : NULL;
        with_threads(3, config, times_out, NULL);
        with_threads(3, config, times_out, &threaded);
        with_threads(4, config, aborts, NULL);
        for (int how = 0; how < 6; how++)
            with_threads(4, config, disagrees, &how);
        with_threads(3, config, leaves, NULL);
        with_threads(8, config, idles, NULL);
        printf("%s: %ld failed so far\n", t ? "progress threads" : "callers",
               tac_check_failed());
    }
    run_two(orphans, NULL);
    log_lines lines = {0};
    run_two(stall, &lines);
    CHECK_EQ(atomic_load(&lines.stalls), 1);
    creations();
    return tac_check_summary();
}
