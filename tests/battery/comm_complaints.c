/* comm_complaints.c: what users of other systems complain about, and the
 * behaviour that answers it: the table of reference/comm.md, section 2. Tests
 * that are not here are named; what can't happen has its sentence, and
 * docs/troubleshooting-comm.md says it to users.
 *
 *  1  another number of parameters      comm_reducer_suite.h: test_mismatch
 *  2  only some ranks get the error     test_mismatch, test_bad_lists
 *  3  another set of parameters         test_mismatch (names, before data)
 *  4  other counts: hang, wrong tail    comm_broken.h: broken_disagreed
 *  5  cryptic text on a size mismatch   transfers_that_differ
 *  6  a mismatch ends the program       the same tests: the program goes on
 *  7  fp16 sums overflow                averages_of_large_halves
 *  8  scaling before or after           scales_at_both_ends
 *  9  "fp16" that sends f32             wire_bytes_are_counted
 * 10  loss scale differs by rank        all ranks get identical bits of an
 *                                       allreduce (comm_suite.h: suite_bits);
 *                                       the scaler itself is not in comm/
 * 11  sync silently off                 ddp compares all ranks' parameters:
 *                                       tac_replica_verify_equal, cli/same_bits
 * 12  ranks pair different collectives  broken_disagreed (KIND, ORDER)
 * 13  rebuilt buckets differ by rank    comm_reducer_suite.h: test_rebuild
 * 14  ready order differs by rank       test_random, test_same_bits
 * 15  rebuild loses what accumulated    test_accumulation
 * 16  residuals keyed by bucket         keyed by parameter name: codec.h, and
 *                                       the codecs' batteries
 * 17  unused parameters                 test_unused
 * 18  a gradient that never comes       test_incomplete
 * 19  dropped gradient views            can't happen: views are pointers that
 *                                       the reducer gives anew after each begin
 * 20  averager counts several times     localsgd/, not comm/
 * 21  averager's step not saved         localsgd/, not comm/
 * 22  bucket limits not honoured        unit/comm_buckets.c; test_stats
 * 23  ranks submit different things     stalls_are_told_once
 * 24  uneven numbers of batches         test_join
 * 25  mpirun refuses root               scripts/env; the library does not care
 * 26  oversubscription                  comm_failures.c: idles; 8 ranks in
 *                                       comm_collectives.c
 * 27  an idle library costs             idle_costs_nothing
 * 28  dtypes that end the program       unknown_kinds_are_refused
 * 29  compression without gain          one_rank_sends_nothing; the bench shows
 *                                       wire bytes beside times
 * 30  survivors of a death hang         comm_kills.c, mpi/comm_kills.c
 * 31  which rank is missing?            timeouts_tell_what_ranks_do
 * 32  small /dev/shm                    comm_kills.c: small_dev_shm;
 *                                       mpi/comm_collectives.c: falls_back
 * 33  determinism                       comm_reducer_suite.h: test_same_bits;
 *                                       comm_collectives.c: same_bits
 * 34  abort hangs                       comm_broken.h: broken_aborted
 * 35  integer overflow                  integers_wrap_and_truncate
 * 36  versions or settings differ       other_versions_are_refused
 * 37  timeouts without cause or text    comm_failures.c: times_out
 * 38  NaN check trips on unused input   comm_reducer_suite.h: test_nan (only
 *                                       gradients that are sent are read)
 * 39  device pointers given to MPI      device_streams_are_refused: buffers are
 *                                       host memory
 * 40  counts beyond 2^31                small_messages_same_bits (a limit of 4
 *                                       KiB stands for 2^31)
 * 41  several groups at once            comm_collectives.c: two_threads;
 *                                       comm_shm.c: left_behind
 * 42  the wrong network interface       can't be seen on one host: UCX and MPI
 *                                       choose it, the docs say how to
 * 43  empty input, a group of one       comm_wrong.c, comm_peers.c row 1
 * 44  one rank can't open a transport   one_rank_cannot_open
 * 45  progress needs the program        comm_collectives.c: completes_alone;
 *                                       comm.h: TAC_PROGRESS_CALLER
 * 46  fewer elements than ranks         fewer_elements_than_ranks
 * 47  x86 only                          comm_kernels.c
 * 48  no way not to synchronise         test_accumulation
 *
 * And: one failure is one line (one_failure_one_line). */
#include <sched.h>
#include <unistd.h>

#include "boot.h"
#include "comm_fork.h"
#include "comm_suite.h"
#include "comm_told.h"
#include "tacit/transport.h"

static board *the_board;

/* ---- 5, 6 -----------------------------------------------------------------
 */

/* The receive names another count: both sides get an error that has both
 * counts and both ranks. */
static void transfers_that_differ(tac_comm *c, void *arg)
{
    float x[8] = {0};
    tac_req *req = NULL;
    (void)arg;
    if (tac_comm_rank(c) == 0)
        CHECK_OK(tac_send(c, x, 5, TAC_F32, 1, NULL, &req));
    if (tac_comm_rank(c) == 1)
        CHECK_OK(tac_recv(c, x, 8, TAC_F32, 0, NULL, &req));
    if (req) (void)tac_wait(req, 0); /* a send may be complete */
    CHECK_STATUS(told_wait_for_error(c), TAC_ERR_MISMATCH);
    told_error_has(c, "rank 0");
    told_error_has(c, "rank 1");
    told_error_has(c, "f32 x 5");
    told_error_has(c, "f32 x 8");
}

/* ---- 7, 8 -----------------------------------------------------------------
 */

/* 8 ranks average 32768, 30000 and 20000 exactly, as f16 and as f32 that
 * travels as f16, by the algorithm that is chosen and by every other. */
static void averages_of_large_halves(tac_comm *c, void *arg)
{
    static const float values[] = {32768.0f, 30000.0f, 65504.0f, 20000.0f};
    const tac__alg any = {.coll = TAC_COLL_ALLREDUCE}; /* chosen */
    (void)arg;
    for (size_t a = 0; a == 0 || tac__algs[a - 1]; a++)
        for (int k = 0; k < 8; k++) {
            const tac__alg *alg = a ? tac__algs[a - 1] : &any;
            const tac_dtype t = k & 1 ? TAC_F32 : TAC_F16;
            float x[40];
            tac_coll_opt opt = TAC_COLL_OPT_INIT;
            tac_req *req = NULL;
            size_t bad = 0;
            if (alg->coll != TAC_COLL_ALLREDUCE) continue;
            opt.algorithm = alg->name;
            if (t == TAC_F32) opt.wire_dtype = TAC_F16;
            for (size_t i = 0; i < 40; i++) put(x, t, i, (double)values[k / 2]);
            const tac_status s = finish(
                tac_allreduce(c, NULL, x, 40, t, TAC_AVG, &opt, &req), &req);
            if (s == TAC_ERR_UNSUPPORTED) continue;
            /* Asked for by name, some round once a hop (docs/comm.md). */
            if (alg->reorders && k / 2 & 1) continue;
            for (size_t i = 0; i < 40; i++)
                bad += get(x, t, i) != (double)values[k / 2];
            CHECK_MSG(s == TAC_OK && bad == 0, "%s of %g as %s: %s, %g",
                      alg->name ? alg->name : "any", (double)values[k / 2],
                      tac_dtype_name(t), tac_status_name(s), get(x, t, 0));
        }
}

/* Near the least and the largest f16 on the wire; and scales are applied where
 * they are said to be. */
static void scales_at_both_ends(tac_comm *c, void *arg)
{
    static const float values[] = {1e-8f, 6e-8f, 1e-3f, 65504.0f, 1e5f};
    const int p = tac_comm_size(c);
    (void)arg;
    for (int k = 0; k < 5; k++) {
        float x[33];
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        opt.wire_dtype = TAC_F16;
        for (int i = 0; i < 33; i++) x[i] = values[k];
        CHECK_OK(finish(
            tac_allreduce(c, NULL, x, 33, TAC_F32, TAC_AVG, &opt, &req), &req));
        for (int i = 0; i < 33; i++) CHECK_NEAR(x[i] / values[k], 1.0, 2e-3);
        /* prescale 1/p keeps every partial sum small; postscale would not. */
        uint16_t h[3];
        for (int i = 0; i < 3; i++) h[i] = tac_f32_to_f16(65504.0f);
        opt = (tac_coll_opt)TAC_COLL_OPT_INIT;
        opt.prescale = 1.0 / p;
        CHECK_OK(finish(
            tac_allreduce(c, NULL, h, 3, TAC_F16, TAC_SUM, &opt, &req), &req));
        CHECK_NEAR(tac_f16_to_f32(h[0]), 65504.0, 32.0);
    }
}

/* ---- 9, 29 ----------------------------------------------------------------
 */

static void wire_bytes_are_counted(tac_comm *c, void *arg)
{
    enum { N = 100000 };
    float *x = calloc(N, sizeof *x);
    tac_comm_stats s;
    (void)arg;
    for (int wire = 0; wire < 2; wire++) {
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        if (wire) opt.wire_dtype = TAC_F16;
        tac_comm_stats_reset(c);
        CHECK_OK(finish(
            tac_allreduce(c, NULL, x, N, TAC_F32, TAC_SUM, &opt, &req), &req));
        tac_comm_stats_get(c, &s);
        const uint64_t sent = s.op[TAC_COLL_ALLREDUCE].bytes_wire;
        CHECK_EQ_U64(s.op[TAC_COLL_ALLREDUCE].bytes_logical, N * 4);
        if (!wire || tac_comm_size(c) == 1) /* one rank sends nothing */
            CHECK_EQ_U64(sent, N * 4);
        else
            CHECK_MSG(sent <= N * 2 + N / 256, "%llu bytes",
                      (unsigned long long)sent);
    }
    free(x);
}

/* ---- 23, 31, 37: reports ---------------------------------------------------
 */

typedef struct lines {
    told rank[8];
} lines;

typedef struct telling {
    tac_thread_group *group;
    const tac_comm_config *config;
    lines *lines;
    rank_fn *fn;
    int rank, size;
} telling;

static void *tell_main(void *arg)
{
    const telling *k = arg;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *c = NULL;
    cc.rank = k->rank;
    cc.world = k->size;
    cc.log = told_line;
    cc.log_arg = &k->lines->rank[k->rank];
    CHECK_OK(tac_context_create(&cc, &ctx));
    if (CHECK_OK(
            tac_comm_create_threads(ctx, k->group, k->rank, k->config, &c)))
        k->fn(c, NULL);
    tac_comm_destroy(c);
    tac_context_destroy(ctx);
    return NULL;
}

/* fn on `size` threads whose log lines are kept. */
static void with_lines(int size, const tac_comm_config *config, rank_fn *fn,
                       lines *l)
{
    pthread_t thread[8];
    telling k[8];
    tac_thread_group *group = NULL;
    memset(l, 0, sizeof *l);
    CHECK_OK(tac_thread_group_create(size, &group));
    for (int r = 0; r < size; r++) {
        pthread_mutex_init(&l->rank[r].lock, NULL);
        k[r] = (telling){group, config, l, fn, r, size};
        CHECK(pthread_create(&thread[r], NULL, tell_main, &k[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

static int all_errors(const lines *l, int size)
{
    int n = 0;
    for (int r = 0; r < size; r++) n += l->rank[r].errors;
    return n;
}

/* Rank 3 has stopped after two operations, rank 2 after one more. */
static void one_stays_away(tac_comm *c, void *arg)
{
    const int rank = tac_comm_rank(c);
    (void)arg;
    for (int i = 0; i < 2; i++) CHECK_OK(told_sum(c, 0));
    if (rank == 3)
        CHECK_STATUS(told_wait_for_error(c), TAC_ERR_TIMEOUT);
    else
        CHECK_STATUS(told_barrier(c), TAC_ERR_TIMEOUT);
    told_error_has(c, "barrier #2 timed out on rank ");
    told_error_has(c, "(timeout 200 ms)");
    told_error_has(c, "waited for: 3;");
    told_error_has(c, "ranks 0-2 are in barrier #2");
    told_error_has(c, "rank 3 has finished allreduce #1 and entered nothing");
}

static void timeouts_tell_what_ranks_do(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    lines l;
    config.timeout_ms = 200;
    with_lines(4, &config, one_stays_away, &l);
    CHECK_EQ(all_errors(&l, 4), 1); /* three waited, one says so */
}

static void late_by_300_ms(tac_comm *c, void *arg)
{
    (void)arg;
    CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) == 1) told_sleep_ms(300);
    CHECK_OK(told_sum(c, 0));
}

/* One warning an operation and waiting rank, with all that is known. */
static void stalls_are_told_once(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    lines l;
    config.stall_warn_ms = 50;
    with_lines(3, &config, late_by_300_ms, &l);
    for (int r = 0; r < 3; r++) {
        CHECK_EQ(l.rank[r].warnings, r != 1);
        CHECK_EQ(l.rank[r].errors, 0);
        if (r == 1) continue;
        told_has(l.rank[r].warning, "allreduce #1 (f32 x 1, 4 bytes)");
        told_has(l.rank[r].warning, "waited for: 1;");
        told_has(l.rank[r].warning, "ranks 0, 2 are in allreduce #1");
        told_has(l.rank[r].warning, "rank 1 has finished allreduce #0");
    }
}

/* ---- one line --------------------------------------------------------------
 */

static void all_but_one_wait(tac_comm *c, void *arg)
{
    (void)arg;
    if (tac_comm_rank(c) == 2) tac_comm_abort(c, "on purpose");
    (void)told_sum(c, 0);
    CHECK_STATUS(told_wait_for_error(c), TAC_ERR_ABORTED);
    told_error_has(c, "rank 2 aborted: on purpose");
}

static void all_disagree(tac_comm *c, void *arg)
{
    float x[9] = {0};
    tac_req *req = NULL;
    (void)arg;
    CHECK_OK(tac_allreduce(c, NULL, x, tac_comm_rank(c) == 2 ? 9 : 8, TAC_F32,
                           TAC_SUM, NULL, &req));
    CHECK_STATUS(tac_wait(req, 0), TAC_ERR_MISMATCH);
}

static void one_failure_one_line(void)
{
    lines l;
    with_lines(4, NULL, all_but_one_wait, &l);
    CHECK_EQ(all_errors(&l, 4), 1);
    CHECK_EQ(l.rank[2].errors, 1);
    with_lines(4, NULL, all_disagree, &l);
    CHECK_EQ(all_errors(&l, 4), 1);
}

/* ---- 27 -------------------------------------------------------------------
 */

/* A progress thread without work, and a communicator between operations. */
static void idle_costs_nothing(tac_comm *c, void *arg)
{
    cpu_set_t before, after;
    (void)arg;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK_OK(told_barrier(c));
    const double cpu = tac_clock_process_cpu_s();
    told_sleep_ms(500);
    const double used = tac_clock_process_cpu_s() - cpu;
    /* told_sleep_ms of both ranks wakes 500 times each. */
    CHECK_MSG(used < 0.05, "0.5 s of idling took %.4f s", used);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
    CHECK_OK(told_barrier(c));
}

/* ---- 28, 39 ---------------------------------------------------------------
 */

static void unknown_kinds_are_refused(tac_comm *c, void *arg)
{
    float x[4] = {0};
    tac_req *req = NULL;
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    (void)arg;
    CHECK_STATUS(
        tac_allreduce(c, NULL, x, 4, (tac_dtype)99, TAC_SUM, NULL, &req),
        TAC_ERR_ARG);
    CHECK_STATUS(tac_allreduce(c, NULL, x, 4, TAC_F32, (tac_op)99, NULL, &req),
                 TAC_ERR_ARG);
    opt.stream = x; /* device_streams_are_refused */
    CHECK_STATUS(tac_allreduce(c, NULL, x, 4, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    opt = (tac_coll_opt)TAC_COLL_OPT_INIT;
    opt.wire_dtype = TAC_F16;
    CHECK_STATUS(tac_allreduce(c, NULL, x, 1, TAC_F64, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    opt = (tac_coll_opt)TAC_COLL_OPT_INIT;
    opt.algorithm = "telepathy";
    CHECK_STATUS(tac_allreduce(c, NULL, x, 4, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    CHECK(req == NULL);
    CHECK_OK(told_sum(c, 0)); /* none of that has harmed it */
}

/* ---- 35 -------------------------------------------------------------------
 */

static void integers_wrap_and_truncate(tac_comm *c, void *arg)
{
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    uint8_t b = 200;
    int32_t i = INT32_MAX, avg = r == 0 ? -7 : 0;
    tac_req *req = NULL;
    (void)arg;
    CHECK_OK(finish(tac_allreduce(c, NULL, &b, 1, TAC_U8, TAC_SUM, NULL, &req),
                    &req));
    CHECK_EQ(b, (uint8_t)(200 * p));
    CHECK_OK(finish(tac_allreduce(c, NULL, &i, 1, TAC_I32, TAC_SUM, NULL, &req),
                    &req));
    CHECK_EQ(i, (int32_t)(uint32_t)((uint64_t)INT32_MAX * (uint64_t)p));
    CHECK_OK(finish(
        tac_allreduce(c, NULL, &avg, 1, TAC_I32, TAC_AVG, NULL, &req), &req));
    CHECK_EQ(avg, -7 / p);
    b = 200;
    CHECK_OK(finish(tac_allreduce(c, NULL, &b, 1, TAC_U8, TAC_AVG, NULL, &req),
                    &req));
    CHECK_EQ(b, 200); /* the sum of an average does not wrap */
}

/* ---- 36 -------------------------------------------------------------------
 */

/* A bootstrap that changes what rank 1 says of itself. */
typedef struct forger {
    fork_rank *f;
    int field, exchanges;
    unsigned char copy[FORK_SLOT];
} forger;

static tac_status forge_start(void *arg, const void *send, void *recv,
                              size_t bytes, void **op)
{
    forger *x = arg;
    memcpy(x->copy, send, bytes);
    if (x->exchanges++ == 0 && x->f->rank == 1 && bytes == sizeof(tac__hello)) {
        tac__hello *h = (void *)x->copy;
        if (x->field == 0) h->version++;
        if (x->field == 1) h->abi++;
        if (x->field == 2) h->config++;
    }
    *op = NULL;
    return fork_start(x->f, x->copy, recv, bytes, op);
}

static tac_status forge_test(void *arg, void *op)
{
    return fork_test(((forger *)arg)->f, op);
}

typedef struct forged {
    int rank, field;
    tac_comm_config config;
    const char *text;
} forged;

static void *create_forged(void *arg)
{
    const forged *k = arg;
    fork_rank f = {.board = the_board, .rank = k->rank, .size = 3};
    forger x = {.f = &f, .field = k->field};
    const tac_oob oob = {sizeof oob, forge_start, forge_test, fork_cancel, &x};
    tac_context *ctx = rank_context(k->rank, 3);
    tac_comm *c = NULL;
    char text[512];
    CHECK_STATUS(tac_comm_create_oob(ctx, k->rank, 3, &oob, &k->config, &c),
                 TAC_ERR_MISMATCH);
    CHECK(c == NULL);
    tac_context_error(ctx, text, sizeof text);
    told_has(text, "rank 1 has another");
    told_has(text, k->text);
    tac_context_destroy(ctx);
    return NULL;
}

static void expect_refused(forged k[3])
{
    pthread_t thread[3];
    memset(the_board, 0, sizeof *the_board);
    for (int r = 0; r < 3; r++) {
        k[r].rank = r;
        CHECK(pthread_create(&thread[r], NULL, create_forged, &k[r]) == 0);
    }
    for (int r = 0; r < 3; r++) pthread_join(thread[r], NULL);
}

static void other_versions_are_refused(void)
{
    static const char *const texts[] = {"version", "abi", "configuration"};
    const tac_comm_config same = TAC_COMM_CONFIG_INIT;
    for (int field = 0; field < 3; field++) {
        forged k[3];
        for (int r = 0; r < 3; r++)
            k[r] = (forged){r, field, same, texts[field]};
        expect_refused(k);
    }
    for (int key = 0; key < 6; key++) {
        forged k[3];
        for (int r = 0; r < 3; r++)
            k[r] = (forged){r, -1, same, "configuration"};
        tac_comm_config *c = &k[1].config;
        if (key == 0) c->check = 1;
        if (key == 1) c->message_bytes = 8192;
        if (key == 2) c->staging_bytes = 8192;
        if (key == 3) c->algorithms = "allreduce=direct";
        if (key == 4) c->deterministic = 1;
        if (key == 5) c->emulate = "hosts=3,rate=1gbit,delay=0";
        expect_refused(k);
    }
}

/* ---- 40 -------------------------------------------------------------------
 */

/* Many pieces give the bits of few. */
static void bits_with_limit(tac_comm *c, void *arg)
{
    uint64_t *bits = arg;
    const uint64_t mine = suite_run_bits(c);
    if (tac_comm_rank(c) != 0) return;
    if (*bits == 0) *bits = mine;
    CHECK_EQ_U64(mine, *bits);
}

/* A send of 1 MiB in pieces of 4 KiB. */
static void long_transfer(tac_comm *c, void *arg)
{
    enum { N = 1 << 18 };
    int32_t *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    const int p = tac_comm_size(c), me = tac_comm_rank(c);
    tac_req *req[2] = {NULL, NULL};
    size_t bad = 0;
    (void)arg;
    for (int i = 0; i < N; i++) x[i] = i * 7 + me;
    CHECK_OK(tac_recv(c, y, N, TAC_I32, (me + p - 1) % p, NULL, &req[0]));
    CHECK_OK(tac_send(c, x, N, TAC_I32, (me + 1) % p, NULL, &req[1]));
    CHECK_OK(tac_wait(req[1], 0));
    CHECK_OK(tac_wait(req[0], 0));
    for (int i = 0; i < N; i++) bad += y[i] != i * 7 + (me + p - 1) % p;
    CHECK_EQ_U64(bad, 0);
    free(x);
    free(y);
}

static void small_messages_same_bits(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    uint64_t bits = 0;
    config.deterministic = 1;
    with_threads(3, &config, bits_with_limit, &bits);
    config.message_bytes = 4096;
    with_threads(3, &config, bits_with_limit, &bits);
    with_threads(3, &config, long_transfer, NULL);
}

/* ---- 44 -------------------------------------------------------------------
 */

static int opens_but_on_rank_1(const struct tac__boot *b, void *arg,
                               const tac_comm_config *config, char *why,
                               size_t bytes)
{
    (void)arg, (void)config;
    snprintf(why, bytes, "its cable is unplugged");
    return b->rank != 1;
}

static void *create_offered(void *arg)
{
    static const tac_transport broken = {.abi = TAC_ABI,
                                         .name = "pigeon",
                                         .doc = "for tests",
                                         .usable = opens_but_on_rank_1};
    const forged *k = arg;
    int some = 0;
    fork_rank f = {.board = the_board, .rank = k->rank, .size = 3};
    const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel, &f};
    const tac_transport_offer offer = {&broken, &some};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = rank_context(k->rank, 3);
    tac_comm *c = NULL;
    char text[512];
    config.transport = "pigeon";
    config.timeout_ms = 5000;
    const double from = tac_clock_s();
    CHECK_STATUS(
        tac_comm_create_with(ctx, k->rank, 3, &oob, &offer, 1, &config, &c),
        TAC_ERR_UNSUPPORTED);
    CHECK(tac_clock_s() - from < 4);
    tac_context_error(ctx, text, sizeof text);
    told_has(text, "rank 1");
    told_has(text, "its cable is unplugged");
    tac_context_destroy(ctx);
    return NULL;
}

/* All fail, none waits. */
static void one_rank_cannot_open(void)
{
    pthread_t thread[3];
    forged k[3];
    memset(the_board, 0, sizeof *the_board);
    for (int r = 0; r < 3; r++) {
        k[r] = (forged){.rank = r};
        CHECK(pthread_create(&thread[r], NULL, create_offered, &k[r]) == 0);
    }
    for (int r = 0; r < 3; r++) pthread_join(thread[r], NULL);
}

/* ---- 46 -------------------------------------------------------------------
 */

/* One element less than ranks is no other algorithm, and which it was is in the
 * flight recorder. */
static void fewer_elements_than_ranks(tac_comm *c, void *arg)
{
    static const char key[] = "\"algorithm\":\"";
    char path[64], first[64] = "", name[64];
    float x[16] = {0};
    tac_req *req = NULL;
    (void)arg;
    for (size_t n = (size_t)tac_comm_size(c) - 1; n < 10; n++)
        CHECK_OK(finish(
            tac_allreduce(c, NULL, x, n, TAC_F32, TAC_SUM, NULL, &req), &req));
    if (tac_comm_rank(c) != 0) return;
    snprintf(path, sizeof path, "/tmp/tacit-complaints-%d", (int)getpid());
    CHECK_OK(tac_comm_dump(c, path));
    char *text = told_read_file(path);
    unlink(path);
    if (!CHECK(text != NULL)) return;
    int found = 0;
    for (const char *at = text; (at = strstr(at, key)) != NULL; found++) {
        at += strlen(key);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
        if (found == 0) snprintf(first, sizeof first, "%s", name);
        CHECK_EQ_STR(name, first);
    }
    CHECK_EQ(found, 11 - tac_comm_size(c));
    free(text);
}

/* ---- where ----------------------------------------------------------------
 */

static void over_processes(const char *transport)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.transport = transport;
    config.timeout_ms = 5000;
    if (!can_fork_over(transport, the_board)) return;
    with_processes(2, &config, transfers_that_differ, NULL, the_board, NULL);
    with_processes(8, &config, averages_of_large_halves, NULL, the_board, NULL);
    with_processes(2, &config, scales_at_both_ends, NULL, the_board, NULL);
    with_processes(2, &config, wire_bytes_are_counted, NULL, the_board, NULL);
    with_processes(3, &config, integers_wrap_and_truncate, NULL, the_board,
                   NULL);
    printf("%s: %ld failed so far\n", transport, tac_check_failed());
}

int main(void)
{
    tac_comm_config threaded = TAC_COMM_CONFIG_INIT;
    threaded.progress = TAC_PROGRESS_THREAD;
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    over_processes("shm");
    over_processes("ucx");
    with_threads(3, NULL, transfers_that_differ, NULL);
    with_threads(8, NULL, averages_of_large_halves, NULL);
    with_threads(2, NULL, scales_at_both_ends, NULL);
    with_threads(1, NULL, wire_bytes_are_counted, NULL);
    with_threads(2, NULL, wire_bytes_are_counted, NULL);
    with_threads(2, NULL, unknown_kinds_are_refused, NULL);
    with_threads(3, NULL, integers_wrap_and_truncate, NULL);
    with_threads(5, NULL, fewer_elements_than_ranks, NULL);
    if (!TESTS_SLOW) with_threads(2, &threaded, idle_costs_nothing, NULL);
    timeouts_tell_what_ranks_do();
    stalls_are_told_once();
    one_failure_one_line();
    other_versions_are_refused();
    small_messages_same_bits();
    one_rank_cannot_open();
    return tac_check_summary();
}
