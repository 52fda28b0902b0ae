/* comm_algorithms.c: every algorithm by name over thread ranks, with and
 * without virtual hosts; overrides and the tuning file. */
#include "comm_algorithms.h"
#include "comm_threads.h"
#include "override.h"
#include "tune.h"

#include <unistd.h>

/* ---- one host, and several --------------------------------------------------
 */

typedef struct plan {
    unsigned thin;
    int hosts, whole; /* also order, rounding, wires */
} plan;

static void run_plan(tac_comm *comm, void *arg)
{
    const plan *p = arg;
    env e;
    if (!env_open(&e, comm)) return;
    CHECK_EQ(tac_comm_hosts(comm), p->hosts);
    alg_all(&e, p->thin);
    alg_averages(&e);
    alg_rounding(&e);
    alg_order(&e);
    if (p->whole) alg_wires(&e);
    if (p->whole) alg_feedback(&e);
    env_close(&e);
}

static void run_hosts(int ranks, int hosts, size_t message, unsigned thin,
                      int whole)
{
    char emulate[32];
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    plan p = {TESTS_SLOW ? 4 * thin : thin, hosts, whole};
    snprintf(emulate, sizeof emulate, "hosts=%d", hosts);
    if (hosts > 1) config.emulate = emulate;
    config.message_bytes = message;
    config.staging_bytes = message ? 65536 : 0;
    with_threads(ranks, &config, run_plan, &p);
    printf("%d ranks on %d hosts: %ld failed so far\n", ranks, hosts,
           tac_check_failed());
}

static void test_ranks(void)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16};
    for (int i = 0; i < 11; i++) {
        const int few = ranks[i] < 6;
        if (TESTS_SLOW && !few && i % 2) continue;
        run_hosts(ranks[i], 1, i % 2 ? 4096 : 0, few ? 5 : 29, few);
    }
}

/* 2+2, 3+2, 2+1+1, 1+1, 2+2+2, 2+2+1, 3+3+2, 2+2+2+2 */
static void test_hosts(void)
{
    run_hosts(4, 2, 4096, 3, 1);
    run_hosts(5, 2, 0, 5, 1);
    run_hosts(4, 3, 4096, 7, 1);
    run_hosts(2, 2, 0, 5, 1);
    run_hosts(6, 3, 0, 9, 0);
    run_hosts(5, 3, 0, 9, 0);
    run_hosts(8, 3, 4096, 17, 0);
    run_hosts(8, 4, 0, 17, 1);
}

/* ---- bytes, timeouts, aborts ------------------------------------------------
 */

static void count_bytes(tac_comm *comm, void *arg)
{
    env e;
    if (!env_open(&e, comm)) return;
    alg_bytes(&e, *(const int *)arg);
    env_close(&e);
}

static void test_bytes(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    int two = 2, four = 4;
    config.emulate = "hosts=2";
    with_threads(4, &config, count_bytes, &two);
    with_threads(8, &config, count_bytes, &four);
    config.emulate = "hosts=4";
    with_threads(8, &config, count_bytes, &two);
}

static int text_has(const tac_comm *c, const char *what)
{
    char text[TAC__ERROR] = "";
    tac_comm_error(c, text, sizeof text);
    return CHECK_MSG(strstr(text, what) != NULL, "\"%s\" has \"%s\"", text,
                     what);
}

/* Elements a rank, in use until the communicators are gone. */
enum { LOST = 1000000 };

/* Rank 3 never calls: the others fail in time, and name it by its number in the
 * communicator that they called. */
static void miss_one(tac_comm *comm, void *arg)
{
    enum { N = 100000 };
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float *x = (float *)arg + (size_t)tac_comm_rank(comm) * LOST;
    opt.algorithm = "hierarchical";
    if (tac_comm_rank(comm) != 3) {
        CHECK_OK(tac_allreduce(comm, x, x, N, TAC_F32, TAC_SUM, &opt, &req));
        CHECK_STATUS(tac_wait(req, 0), TAC_ERR_TIMEOUT);
        text_has(comm, "timed out");
        text_has(comm, "allreduce #");
    } else {
        for (int i = 0; i < 4000 && !tac_comm_error(comm, NULL, 0); i++) {
            tac_clock_sleep_ns(1000000u);
            (void)tac_comm_progress(comm);
        }
        CHECK_STATUS(tac_comm_error(comm, NULL, 0), TAC_ERR_TIMEOUT);
    }
    if (tac_comm_rank(comm) == 2) text_has(comm, "3");
    CHECK_STATUS(tac_allreduce(comm, x, x, 1, TAC_F32, TAC_SUM, NULL, &req),
                 TAC_ERR_TIMEOUT);
}

static void abort_one(tac_comm *comm, void *arg)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float *x = (float *)arg + (size_t)tac_comm_rank(comm) * LOST;
    opt.algorithm = "hierarchical";
    if (tac_comm_rank(comm) == 1) {
        tac_clock_sleep_ns(20000000u);
        tac_comm_abort(comm, "no more");
    } else {
        CHECK_OK(tac_allreduce(comm, x, x, LOST, TAC_F32, TAC_SUM, &opt, &req));
        CHECK_STATUS(tac_wait(req, 0), TAC_ERR_ABORTED);
    }
    text_has(comm, "rank 1 aborted: no more");
}

static void test_failures(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = "hosts=2";
    config.timeout_ms = 1000;
    float *x = calloc(4 * (size_t)LOST, sizeof *x);
    with_threads(4, &config, miss_one, x);
    config.timeout_ms = 20000;
    with_threads(4, &config, abort_one, x);
    free(x);
}

/* With a thread that drives, and several outstanding. */
static void outstanding(tac_comm *comm, void *arg)
{
    env e;
    (void)arg;
    if (!env_open(&e, comm)) return;
    suite_outstanding(&e);
    suite_two_comms(&e);
    suite_split(&e);
    env_close(&e);
}

static void test_progress(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = "hosts=2";
    config.algorithms = "allreduce=hierarchical";
    with_threads(4, &config, outstanding, NULL);
    config.progress = TAC_PROGRESS_THREAD;
    with_threads(4, &config, outstanding, NULL);
}

/* ---- the choice -------------------------------------------------------------
 */

static const char *chosen(const tac_comm *c, tac_coll coll, size_t bytes,
                          const tac__wire *wire)
{
    const tac__alg *a = NULL;
    const tac_req like = {.coll = coll,
                          .comm = (tac_comm *)(uintptr_t)c,
                          .dtype = TAC_F32,
                          .esize = 4,
                          .count = bytes / 4,
                          .prescale = 1,
                          .postscale = 1,
                          .wire = wire};
    return tac__alg_choose((tac_comm *)(uintptr_t)c, &like, NULL, &a) == TAC_OK
               ? a->name
               : "none";
}

static void see_choice(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, 4, NULL), "recursive_doubling");
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, 65536, NULL),
                 "recursive_doubling");
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, 65540, NULL), "ring");
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, (size_t)1 << 30, NULL), "ring");
    CHECK_EQ_STR(chosen(c, TAC_COLL_BROADCAST, 4, NULL), "tree");
    /* recursive doubling has no wire formats: the model goes on */
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, 4, &tac__wire_int8), "direct");
}

static void see_model(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, (size_t)16 << 20, NULL),
                 "hierarchical");
    CHECK_EQ_STR(
        chosen(c, TAC_COLL_ALLREDUCE, (size_t)16 << 20, &tac__wire_fp16),
        "hierarchical");
    const char *small = chosen(c, TAC_COLL_ALLREDUCE, 4, NULL);
    CHECK_MSG(strcmp(small, "ring") != 0, "4 bytes take %s", small);
}

static void see_deterministic(tac_comm *c, void *arg)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float x = 1;
    (void)arg;
    for (size_t n = 4; n < (size_t)1 << 28; n *= 64)
        CHECK_EQ_STR(chosen(c, TAC_COLL_ALLREDUCE, n, NULL), "direct");
    opt.algorithm = "ring";
    CHECK_STATUS(tac_allreduce(c, &x, &x, 1, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
}

static void test_choice(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.emulate = "hosts=2";
    with_threads(4, &config, see_model, NULL);
    config.algorithms = "allreduce = recursive_doubling:0-64K, ring:65537- ; "
                        "broadcast=tree";
    with_threads(4, &config, see_choice, NULL);
    config.algorithms = NULL;
    config.deterministic = 1;
    with_threads(4, &config, see_deterministic, NULL);
}

static void wrong_override(const char *text, const char *what)
{
    tac__overrides o = {.n = 77};
    char why[200] = "";
    CHECK_STATUS(tac__overrides_parse(text, &o, why, sizeof why), TAC_ERR_ARG);
    CHECK_EQ(o.n, 77);
    CHECK_MSG(strstr(why, what) != NULL, "\"%s\" says \"%s\"", why, what);
}

static void test_overrides(void)
{
    tac__overrides o;
    char why[200], many[2000] = "allreduce=ring";
    CHECK_OK(tac__overrides_parse("", &o, why, sizeof why));
    CHECK_EQ(o.n, 0);
    CHECK_OK(
        tac__overrides_parse("allreduce=ring:1K-2M,direct:3G-;allgather=ring;",
                             &o, why, sizeof why));
    CHECK_EQ(o.n, 3);
    CHECK_EQ_U64(o.rule[0].from, 1024);
    CHECK_EQ_U64(o.rule[0].to, 2097152);
    CHECK_EQ_U64(o.rule[1].from, (size_t)3 << 30);
    CHECK_EQ_U64(o.rule[1].to, SIZE_MAX);
    CHECK_EQ_U64(o.rule[2].to, SIZE_MAX);
    CHECK_EQ(o.rule[2].coll, TAC_COLL_ALLGATHER);
    wrong_override("alreduce=ring", "'alreduce' (allreduce, reduce_scatter");
    wrong_override("allreduce=rong", "allreduce has no 'rong' (");
    wrong_override("allreduce=rong", "recursive_doubling");
    wrong_override("allreduce", "'allreduce' lacks '='");
    wrong_override("allreduce=", "has no ''");
    wrong_override("allreduce=ring:", "'' is no range");
    wrong_override("allreduce=ring:64", "'64' is no range");
    wrong_override("allreduce=ring:64-4", "'64-4' is no range");
    wrong_override("allreduce=ring:1X-2X", "'1X-2X' is no range");
    wrong_override("allreduce=ring:-4", "'-4' is no range");
    wrong_override("allreduce=ring:99999999999999999999-", "is no range");
    wrong_override("allreduce=ring:99999999999999G-", "is no range");
    wrong_override("send=ring", "'send' (");
    wrong_override(";;;", "an item is empty");
    wrong_override("allreduce=ring;;allgather=ring", "an item is empty");
    wrong_override("allreduce=ring;allreduce=direct", "is given twice");
    for (int i = 0; i < 40; i++) strcat(many, ",ring");
    wrong_override(many, "more than 32 rules");
}

static void *create_wrong(void *arg)
{
    rank_job *j = arg;
    tac_comm *c = NULL;
    char text[512];
    tac_context *ctx = rank_context(j->rank, j->size);
    CHECK_STATUS(tac_comm_create_threads(ctx, j->group, j->rank, j->config, &c),
                 *(const tac_status *)j->arg);
    CHECK(c == NULL);
    tac_context_error(ctx, text, sizeof text);
    CHECK_MSG(strstr(text, "wrong") != NULL, "\"%s\" names it", text);
    tac_context_destroy(ctx);
    return NULL;
}

/* A wrong configuration is the same error on all ranks, at creation. */
static void refuse(const tac_comm_config *config, tac_status s)
{
    pthread_t thread[2];
    rank_job job[2];
    tac_thread_group *group = NULL;
    CHECK_OK(tac_thread_group_create(2, &group));
    for (int r = 0; r < 2; r++) {
        job[r] = (rank_job){group, r, 2, config, NULL, &s};
        pthread_create(&thread[r], NULL, create_wrong, &job[r]);
    }
    for (int r = 0; r < 2; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

/* ---- the tuning file --------------------------------------------------------
 */

static void write_file(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(text, 1, bytes, f) == bytes);
    if (f) fclose(f);
}

static void wrong_file(const char *path, const char *text, size_t bytes,
                       const char *what)
{
    char why[256] = "";
    tac__cost_params p = tac__cost_builtin("mpi"), old = p;
    write_file(path, text, bytes);
    CHECK_STATUS(tac__tune_read(path, &p, why, sizeof why), TAC_ERR_ARG);
    CHECK(memcmp(&p, &old, sizeof p) == 0);
    CHECK_MSG(strstr(why, what) != NULL, "\"%s\" says \"%s\"", why, what);
}

static void test_tuning(void)
{
    char path[] = "/tmp/tacit-tune-XXXXXX", why[256] = "", long_line[1000];
    tac__cost_params p = tac__cost_builtin("mpi"), q = {0};
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    p.network.alpha = 1.25e-4;
    CHECK_OK(tac__tune_write(path, &p));
    CHECK_OK(tac__tune_read(path, &q, why, sizeof why));
    CHECK_NEAR(q.network.alpha, 1.25e-4, 1e-12);
    CHECK_NEAR(q.shared.beta, p.shared.beta, 1e-18);
#define WRONG(text, what) wrong_file(path, text, sizeof text - 1, what)
    WRONG("", "line 1: empty");
    WRONG("hello\n", "line 1: not \"tacit-tune 1\": hello");
    WRONG("tacit-tune 2\n", "line 1: not");
    WRONG("tacit-tune 1\nlocal.delta 1\n",
          "line 2: there is no key local.delta");
    WRONG("tacit-tune 1\n\nlocal.alpha\n", "line 3: one value is needed");
    WRONG("tacit-tune 1\nlocal.alpha 1 2\n", "line 2: one value is needed");
    WRONG("tacit-tune 1\nlocal.alpha x\n", "line 2: no number of seconds");
    WRONG("tacit-tune 1\nlocal.alpha -1\n", "line 2: no number of seconds");
    WRONG("tacit-tune 1\nlocal.alpha nan\n", "line 2: no number of seconds");
    WRONG("tacit-tune 1\nlocal.alpha 1e999\n", "line 2: no number of seconds");
    WRONG("tacit-tune 1\nlocal.alpha 1\nlocal.alpha 1\n", "line 3: twice");
    WRONG("tacit-tune 1\nlocal.al\0pha 1\n", "line 2: a zero byte");
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "tacit-tune 1\n", 13);
    wrong_file(path, long_line, sizeof long_line, "line 2: too long");
    char *many = malloc(200000);
    memset(many, '\n', 200000);
    memcpy(many, "tacit-tune 1\n", 13);
    wrong_file(path, many, 200000, "too many lines");
    free(many);
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    write_file(path, "tacit-tune 1\nwrong 1\n", 21);
    config.tune_file = path;
    refuse(&config, TAC_ERR_ARG);
    config.tune_file = "/nonexistent/wrong";
    refuse(&config, TAC_ERR_IO);
    config.tune_file = NULL;
    config.algorithms = "allreduce=wrong";
    refuse(&config, TAC_ERR_ARG);
    unlink(path);
}

static void test_list(void)
{
    tac_algorithm_info info = {0};
    size_t n = 0;
    while (tac_algorithm_list(n, &info) == TAC_OK) {
        CHECK(info.name && info.doc && *info.doc);
        n++;
    }
    CHECK(n > 15);
    CHECK_STATUS(tac_algorithm_list(n + 5, &info), TAC_ERR_ARG);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_overrides();
    test_tuning();
    test_list();
    test_choice();
    test_ranks();
    test_hosts();
    test_bytes();
    test_failures();
    test_progress();
    return tac_check_summary();
}
