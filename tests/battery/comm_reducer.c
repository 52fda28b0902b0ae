/* comm_reducer.c: the reducer, with ranks that are threads: 1, 2, 3, 4, 7, 8.
 *
 * The suite is in tests/comm_reducer_suite.h; here are the threads, and what
 * needs a communicator of its own because it ends poisoned. */
#include <pthread.h>
#include <time.h>

#include "comm_reducer_suite.h"
#include "tacit/trace.h"

enum { MAX_RANKS = 8 };

typedef void rank_fn(tac_comm *comm);

typedef struct rank_arg {
    tac_thread_group *group;
    int rank, world;
    tac_progress progress;
    rank_fn *fn;
} rank_arg;

static void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void *run_rank(void *p)
{
    const rank_arg *a = p;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    cc.rank = a->rank;
    cc.world = a->world;
    cc.threads = 1;
    cc.log = drop_line; /* failures are wanted here */
    cc.trace_events = 4096;
    config.timeout_ms = TIMEOUT_MS;
    config.progress = a->progress;
    if (!CHECK_OK(tac_context_create(&cc, &ctx))) return NULL;
    if (CHECK_OK(
            tac_comm_create_threads(ctx, a->group, a->rank, &config, &comm)))
        a->fn(comm);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return NULL;
}

static void with_ranks(int world, tac_progress progress, rank_fn *fn)
{
    pthread_t threads[MAX_RANKS];
    rank_arg args[MAX_RANKS];
    tac_thread_group *group = NULL;
    if (!CHECK_OK(tac_thread_group_create(world, &group))) return;
    for (int q = 0; q < world; ++q) {
        args[q] = (rank_arg){group, q, world, progress, fn};
        if (pthread_create(&threads[q], NULL, run_rank, &args[q]))
            CHECK_FAIL("no thread for rank %d", q);
    }
    for (int q = 0; q < world; ++q) pthread_join(threads[q], NULL);
    tac_thread_group_destroy(group);
}

static void whole_suite(tac_comm *comm)
{
    const int world = tac_comm_size(comm);
    const int slower = TESTS_TSAN ? 4 : 1;
    suite_run(comm, (world <= 2 ? 1000 : 60) / slower, world <= 4 ? 40 : 15);
}

/* ---- ends poisoned --------------------------------------------------------
 */

static tac_status failing_hook(void *state, tac_comm *comm,
                               const tac_bucket_view *b, tac_req **req)
{
    (void)b;
    (void)req;
    return tac_comm_rank(comm) == *(const int *)state ? TAC_ERR_DATA : TAC_OK;
}

/* A hook that fails on one rank ends the step on all, quickly. */
static void hook_fails(tac_comm *comm)
{
    static const size_t counts[] = {5, 50};
    env e = env_make(comm);
    const int guilty = e.world - 1;
    model m;
    model_make(&e, &m, OURS, 2, counts, NULL);
    tac_reducer *r = make(&e, &m);
    CHECK_OK(tac_reducer_set_hook(r, failing_hook, NULL, (void *)&guilty));
    const tac_status s = one_step(&e, r, &m, 0, NULL);
    CHECK_STATUS(s, e.rank == guilty ? TAC_ERR_DATA : TAC_ERR_ABORTED);
    CHECK_STATUS(tac_reducer_begin(r, 1, 1.0), s);
    CHECK_STATUS(tac_comm_error(comm, NULL, 0), TAC_ERR_ABORTED);
    tac_reducer_destroy(r);
}

/* A rank that stays away: the others time out, then everything fails at once,
 * and can be destroyed. */
static void rank_stays_away(tac_comm *comm)
{
    env e = env_make(comm);
    model m;
    model_make(&e, &m, OURS, ODD, odd_counts, NULL);
    tac_reducer *r = make(&e, &m);
    CHECK_OK(one_step(&e, r, &m, 0, NULL));
    if (e.rank) {
        CHECK_OK(tac_reducer_begin(r, 0, 1.0)); /* rebuilds with all */
        CHECK_OK(tac_reducer_finish(r, 0));
        tac_status s = tac_reducer_begin(r, 1, 1.0);
        for (size_t i = 0; i < m.n && !s; ++i)
            s = tac_reducer_ready(r, i, NULL);
        if (!s) s = tac_reducer_finish(r, 200);
        CHECK(s < 0);
        CHECK_STATUS(tac_reducer_begin(r, 1, 1.0), s);
        CHECK(tac_comm_error(comm, NULL, 0) < 0);
    } else {
        CHECK_OK(tac_reducer_begin(r, 0, 1.0));
        CHECK_OK(tac_reducer_finish(r, 0));
        for (int k = 0; k < 100 && !tac_comm_error(comm, NULL, 0); ++k) {
            const struct timespec ms20 = {0, 20000000};
            nanosleep(&ms20, NULL);
            (void)tac_comm_progress(comm);
        }
        CHECK(tac_comm_error(comm, NULL, 0) < 0);
    }
    tac_reducer_destroy(r);
}

/* Destroyed with buckets under way. */
static void destroyed_in_a_step(tac_comm *comm)
{
    env e = env_make(comm);
    model m;
    model_make(&e, &m, OURS, ODD, odd_counts, NULL);
    m.config.first_bucket_bytes = m.config.bucket_bytes = 100;
    tac_reducer *r = make(&e, &m);
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    for (size_t i = 0; i < 4; ++i)
        if (tac_reducer_ready(r, i, NULL)) break;
    tac_reducer_destroy(r);
    tac_comm_destroy(NULL);
    model_free(&e, &m);
}

/* Spans of buckets are in the trace, one a bucket and step. */
static void spans(tac_comm *comm)
{
    env e = env_make(comm);
    model m;
    tac_reducer_stats s;
    static tac_span span[MAX_RANKS][256];
    model_make(&e, &m, OURS, ODD, odd_counts, NULL);
    m.config.first_bucket_bytes = m.config.bucket_bytes = 200;
    tac_reducer *r = make(&e, &m);
    CHECK_OK(one_step(&e, r, &m, 0, NULL));
    tac_reducer_stats_get(r, &s);
    size_t found = 0;
    const size_t n = tac_trace_read(e.ctx, span[e.rank], 256);
    for (size_t k = 0; k < n; ++k) {
        const tac_span *x = &span[e.rank][k];
        if (strncmp(x->name, "bucket", 6)) continue;
        CHECK(x->end_ns >= x->begin_ns);
        CHECK(x->arg >= 0 && x->arg < (int64_t)s.buckets);
        CHECK_EQ((int)x->lane,
                 TAC_LANE_BUCKETS + (int)(x->arg % TAC_BUCKET_LANES));
        ++found;
    }
    CHECK_EQ_U64(found, s.step.calls);
    CHECK(found > 0);
    tac_reducer_destroy(r);
}

int main(void)
{
    static const int worlds[] = {1, 2, 3, 4, 7, 8};
    for (size_t k = 0; k < sizeof worlds / sizeof *worlds; ++k) {
        with_ranks(worlds[k], TAC_PROGRESS_CALLER, whole_suite);
        printf("%d ranks: %ld failed so far\n", worlds[k], tac_check_failed());
        fflush(stdout);
    }
    with_ranks(3, TAC_PROGRESS_THREAD, whole_suite);
    printf("3 ranks with progress threads: %ld failed so far\n",
           tac_check_failed());
    with_ranks(3, TAC_PROGRESS_CALLER, hook_fails);
    with_ranks(3, TAC_PROGRESS_CALLER, rank_stays_away);
    with_ranks(3, TAC_PROGRESS_CALLER, destroyed_in_a_step);
    with_ranks(2, TAC_PROGRESS_CALLER, spans);
    return tac_check_summary();
}
