/* comm_codecs.c: 16-bit wires and codecs with ranks that are threads and
 * processes (tests/comm_codec_suite.h), specifications, and what must be
 * refused. */
#include <malloc.h>

#include "comm_codec_suite.h"
#include "comm_fork.h"

static void whole(tac_comm *comm, void *arg)
{
    const uint64_t h = suite_codecs(comm);
    if (tac_comm_rank(comm) == 0) *(uint64_t *)arg = h;
}

static void bits(tac_comm *comm, void *arg)
{
    CHECK_EQ_U64(suite_codec_bits(comm), *(const uint64_t *)arg);
}

/* ---- specifications -------------------------------------------------------
 */

static void check_spec(tac_context *ctx, const char *spec, const char *full)
{
    tac_codec *c = NULL, *again = NULL;
    if (!CHECK_OK(tac_codec_create(ctx, spec, &c))) return;
    CHECK_EQ_STR(tac_codec_spec(c), full);
    CHECK_OK(tac_codec_create(ctx, full, &again));
    CHECK_EQ_STR(tac_codec_spec(again), full);
    tac_codec_destroy(c);
    tac_codec_destroy(again);
}

static void check_bad(tac_context *ctx, const char *spec, const char *word)
{
    char text[512] = "";
    tac_codec *c = NULL;
    CHECK_STATUS(tac_codec_create(ctx, spec, &c), TAC_ERR_ARG);
    (void)tac_context_error(ctx, text, sizeof text);
    CHECK_MSG(strstr(text, word) != NULL, "'%s' gives \"%s\", without '%s'",
              spec, text, word);
    CHECK(c == NULL);
}

static void check_specs(void)
{
    tac_context *ctx = rank_context(0, 1);
    tac_codec *c = (tac_codec *)(void *)ctx;
    CHECK_OK(tac_codec_create(ctx, "none", &c));
    CHECK(c == NULL);
    CHECK_EQ_STR(tac_codec_spec(NULL), "none");
    tac_codec_destroy(NULL);
    check_spec(ctx, "fp16", "fp16,noef,start=0");
    check_spec(ctx, "bf16,ef", "bf16,ef,start=0");
    check_spec(ctx, "int8", "int8,ef,start=0");
    check_spec(ctx, "int8,noef,start=3", "int8,noef,start=3");
    check_spec(ctx, "int8,seed=7,stochastic",
               "int8,ef,stochastic,seed=7,start=0");
    check_spec(ctx, "fp4", "fp4,ef,start=0");
    check_spec(ctx, "fp4,stochastic,noef",
               "fp4,noef,stochastic,seed=0,start=0");
    check_spec(ctx, "topk:0.01",
               "topk:0.01,ef,bits=32,chunk=0,min=1,warmup=0,start=0");
    check_spec(ctx, "topk:1,noef,warmup=9,min=1024",
               "topk:1,noef,bits=32,chunk=0,min=1024,warmup=9,start=0");
    check_spec(ctx, "topk:0.015625,chunk=4096,bits=2",
               "topk:0.015625,ef,bits=2,chunk=4096,min=1,warmup=0,start=0");
    check_spec(ctx,
               "topk:0.015625,noef,bits=32,chunk=65536,"
               "min=18446744073709551615,warmup=18446744073709551615",
               "topk:0.015625,noef,bits=32,chunk=65536,"
               "min=18446744073709551615,warmup=18446744073709551615,start=0");
    check_spec(ctx, "powersgd:4", "powersgd:4,ef,seed=0,min-rate=2,start=10");
    check_spec(ctx, "powersgd:1,min-rate=1.5,start=0",
               "powersgd:1,ef,seed=0,min-rate=1.5,start=0");
    check_bad(ctx, "", "possible are none, fp16");
    check_bad(ctx, "topq:0.1", "'topk'");
    check_bad(ctx, "f16", "'fp16'");
    check_bad(ctx, "power:4", "there is no 'power'");
    check_bad(ctx, "fp16:2", "takes no argument");
    check_bad(ctx, "topk", "topk:0.01");
    check_bad(ctx, "topk:0", "above 0");
    check_bad(ctx, "topk:1.5", "at most 1");
    check_bad(ctx, "topk:nan", "above 0");
    check_bad(ctx, "topk:0.1x", "above 0");
    check_bad(ctx, "powersgd:0", "powersgd:4");
    check_bad(ctx, "powersgd:-1", "powersgd:4");
    check_bad(ctx, "powersgd:2.5", "powersgd:4");
    check_bad(ctx, "int8,min-rate=2", "stochastic");
    check_bad(ctx, "topk:0.1,stochastic", "min=N");
    check_bad(ctx, "powersgd:4,start=x", "start=N");
    check_bad(ctx, "powersgd:4,seed", "seed=N");
    check_bad(ctx, "powersgd:4,min-rate=-1", "min-rate=X");
    check_bad(ctx, "fp16,", "ef, noef");
    check_bad(ctx, "int8,seed=99999999999999999999", "seed is a whole number");
    check_bad(ctx, "topk:1,min=99999999999999999999", "18446744073709551615");
    check_bad(ctx, "int8,start=-1", "not '-1'");
    check_bad(ctx, "topk:1,bits=3", "bits is 2, 4, 8 or 32");
    check_bad(ctx, "topk:1,bits=0", "not '0'");
    check_bad(ctx, "topk:1,chunk=8", "power of two from 16 to 65536");
    check_bad(ctx, "topk:1,chunk=1000", "not '1000'");
    check_bad(ctx, "topk:1,chunk=131072", "not '131072'");
    check_bad(ctx, "int8,bits=4", "'bits=4' is no option of int8");
    check_bad(ctx, "zip", "fp4");
    check_bad(ctx, "topk:1,warmup=-1", "warmup is a whole number");
    check_bad(ctx, "powersgd:2,min-rate=nan", "not 'nan'");
    check_bad(ctx, "int8,noef,ef", "contradict");
    check_bad(ctx, "powersgd:1,x", "start=N, seed=N, min-rate=X");
    check_bad(ctx, "powersgd:0", "not '0'");
    tac_context_destroy(ctx);
}

/* ---- refused --------------------------------------------------------------
 */

static void arguments(tac_comm *comm, void *arg)
{
    float x[8] = {0};
    double d[8] = {0};
    tac_req *req = NULL;
    tac_codec *c = codec_of(comm, "int8");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    (void)arg;
    opt.codec = c;
    opt.wire_dtype = TAC_F16;
    CHECK_STATUS(tac_allreduce(comm, x, x, 8, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_ARG);
    opt.wire_dtype = TAC_WIRE_SAME;
    CHECK_STATUS(tac_allreduce(comm, x, x, 8, TAC_F32, TAC_MAX, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    CHECK_STATUS(tac_allreduce(comm, d, d, 8, TAC_F64, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    CHECK_OK(tac_comm_error(comm, NULL, 0));
    CHECK_OK(reduce_with(comm, NULL, x, 8, TAC_SUM, &opt));
    tac_codec_destroy(c);
}

static void other_spec(tac_comm *comm, void *arg)
{
    char text[512] = "";
    float x[64] = {0};
    const int odd = tac_comm_rank(comm) == tac_comm_size(comm) - 1;
    tac_codec *c = codec_of(comm, odd ? "topk:0.25" : "powersgd:2,start=0");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    (void)arg;
    opt.codec = c;
    CHECK_STATUS(reduce_with(comm, NULL, x, 64, TAC_SUM, &opt),
                 TAC_ERR_MISMATCH);
    (void)tac_comm_error(comm, text, sizeof text);
    CHECK_MSG(strstr(text, "topk:0.25") && strstr(text, "powersgd:2"),
              "names not both codecs: %s", text);
    tac_codec_destroy(c);
}

static void other_layout(tac_comm *comm, void *arg)
{
    char text[512] = "";
    float x[64] = {0};
    const int odd = tac_comm_rank(comm) == 0;
    const tac_codec_part parts[] = {{"a", 0, odd ? 30 : 40, 0, NULL},
                                    {"b", 40, 20, 0, NULL}};
    const tac_codec_layout layout = {2, parts, 1};
    tac_codec *c = codec_of(comm, "topk:0.25");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    (void)arg;
    opt.codec = c;
    opt.layout = &layout;
    CHECK_STATUS(reduce_with(comm, NULL, x, 64, TAC_SUM, &opt),
                 TAC_ERR_MISMATCH);
    (void)tac_comm_error(comm, text, sizeof text);
    CHECK_MSG(strstr(text, "layout") != NULL, "says not why: %s", text);
    tac_codec_destroy(c);
}

static void bad_layout(tac_comm *comm, void *arg)
{
    float x[64] = {0};
    const tac_codec_part twice[] = {{"a", 0, 30, 0, NULL}, {"a", 30, 30, 0, 0}};
    const tac_codec_part over[] = {{"a", 0, 30, 0, NULL}, {"b", 20, 30, 0, 0}};
    const tac_codec_layout layouts[] = {{2, twice, 1}, {2, over, 1}};
    tac_codec *c = codec_of(comm, "topk:0.25");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.codec = c;
    opt.layout = &layouts[*(const int *)arg];
    CHECK(reduce_with(comm, NULL, x, 64, TAC_SUM, &opt) < 0);
    CHECK_STATUS(tac_codec_expect(c, &layouts[0]), TAC_ERR_ARG);
    tac_codec_destroy(c);
}

/* All ranks have finished what is before it. (One that goes on early may spoil
 * the communicator for those that are still in the barrier.) */
static void meet_before_refusal(tac_comm *comm)
{
    tac_req *req = NULL;
    tac_status s = tac_barrier(comm, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    CHECK_MSG(s == TAC_OK || s == TAC_ERR_ARG, "%s", tac_status_name(s));
}

/* A call of no elements changes nothing; another count under the same tag is
 * refused, with the reason, on every rank. */
static void other_count(tac_comm *comm, void *arg)
{
    static float all[RANKS_MOST][5000];
    char text[512] = "";
    float *x = all[tac_comm_rank(comm)];
    tac_codec *c = codec_of(comm, arg);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_codec_stats before, after;
    opt.codec = c;
    CHECK_OK(reduce_with(comm, NULL, x, 0, TAC_SUM, &opt));
    for (int i = 0; i < 3; i++) {
        fill_rank(x, 5000, tac_comm_rank(comm), i);
        CHECK_OK(reduce_with(comm, NULL, x, 5000, TAC_AVG, &opt));
        tac_codec_stats_get(c, &before);
        CHECK_OK(reduce_with(comm, NULL, x, 0, TAC_AVG, &opt));
        tac_codec_stats_get(c, &after);
        CHECK_EQ_U64(after.calls, before.calls + 1);
        CHECK_EQ_U64(after.bytes_after, before.bytes_after);
        CHECK(memcmp(&before.residual_norm, &after.residual_norm, 8) == 0);
    }
    meet_before_refusal(comm);
    CHECK_STATUS(reduce_with(comm, NULL, x, 7, TAC_SUM, &opt), TAC_ERR_ARG);
    CHECK_STATUS(tac_comm_error(comm, text, sizeof text), TAC_ERR_ARG);
    CHECK_MSG(strstr(text, "parameter 'tag 0' had 5000 elements and now has 7"),
              "says not why: %s", text);
    tac_codec_destroy(c);
}

/* ---- several at once ------------------------------------------------------
 */

/* Buckets of one codec are queued behind one another, as a reducer does. */
static void queued(tac_comm *comm, void *arg)
{
    enum { BUCKETS = 5, N = 3000 };
    static const char *const names[] = {"p", "q", "r", "s", "t"};
    static float all[RANKS_MOST][BUCKETS][N];
    tac_codec_part part[BUCKETS];
    tac_codec_layout layout[BUCKETS];
    tac_req *req[BUCKETS] = {NULL};
    tac_codec *c = codec_of(comm, arg);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    float(*x)[N] = all[tac_comm_rank(comm)], want[N];
    wire_sim sim;
    sim_open(&sim, &tac__wire_int8, tac_comm_size(comm), N, 1);
    opt.codec = c;
    for (int step = 0; step < 3; step++) {
        for (int b = 0; b < BUCKETS; b++) {
            part[b] = (tac_codec_part){.name = names[b], .count = N};
            layout[b] = (tac_codec_layout){1, &part[b], 1};
            opt.layout = &layout[b];
            fill_rank(x[b], N, tac_comm_rank(comm), step);
            CHECK_OK(tac_allreduce(comm, NULL, x[b], N, TAC_F32, TAC_AVG, &opt,
                                   &req[b]));
        }
        sim_step(&sim, step, 1.0f, want);
        for (int b = 0; b < BUCKETS; b++) {
            CHECK_OK(tac_wait(req[b], 0));
            expect_floats(x[b], want, N, "queued", b, step);
        }
    }
    sim_close(&sim);
    tac_codec_destroy(c);
}

/* ---- bytes ----------------------------------------------------------------
 */

static void wire_bytes(tac_comm *comm, const char *spec, size_t n, size_t want)
{
    const int p = tac_comm_size(comm);
    tac_codec *c = codec_of(comm, spec);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_comm_stats s;
    tac_codec_stats cs;
    float *x = calloc(n + 1, sizeof *x);
    opt.codec = c;
    for (int call = 0; call < 2; call++) {
        tac_comm_stats_reset(comm);
        CHECK_OK(reduce_with(comm, NULL, x, n, TAC_AVG, &opt));
        tac_comm_stats_get(comm, &s);
        const tac_comm_op_stats *a = &s.op[TAC_COLL_ALLREDUCE];
        CHECK_EQ((long long)a->calls, 1);
        CHECK_EQ((long long)a->bytes_logical, (long long)(n * 4));
        CHECK_MSG(a->bytes_wire == (p == 1 ? n * 4 : want),
                  "%s x %zu: %llu bytes on the wire, not %zu", spec, n,
                  (unsigned long long)a->bytes_wire, want);
        CHECK_EQ((long long)s.total.calls, 1);
    }
    CHECK_EQ((long long)tac_codec_wire_bytes(c, n, NULL), (long long)want);
    tac_codec_stats_get(c, &cs);
    CHECK_EQ((long long)cs.bytes_after,
             (long long)(2 * (p == 1 ? 4 * n : want)));
    CHECK_EQ((long long)cs.calls_plain, p == 1 ? 2 : 0);
    free(x);
    tac_codec_destroy(c);
}

static void bytes(tac_comm *comm, void *arg)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_comm_stats s;
    float x[3000] = {0};
    (void)arg;
    wire_bytes(comm, "fp16", 3000, 6000 + 2 * 3);
    wire_bytes(comm, "fp16,ef", 1024, 2050);
    wire_bytes(comm, "bf16", 3001, 6002);
    wire_bytes(comm, "int8", 3000, 3000 + 4 * 12);
    wire_bytes(comm, "int8,noef", 1, 5);
    wire_bytes(comm, "fp4", 3000, 1500 + 4 * 12);
    wire_bytes(comm, "fp4,noef", 7, 4 + 4);
    wire_bytes(comm, "topk:0.01", 3000, 8 * 30);
    wire_bytes(comm, "topk:0.01", 3, 8);
    wire_bytes(comm, "topk:0.29", 100, 8 * 29);
    wire_bytes(comm, "topk:0.5,min=101", 100, 4 * 100);
    wire_bytes(comm, "topk:0.01,bits=2", 3000, 4 * 30 + 8 + 8);
    wire_bytes(comm, "topk:0.01,bits=4", 1, 4 + 4 + 8);
    wire_bytes(comm, "topk:0.5,bits=8", 3001, 4 * 1501 + 1504 + 8 * 6);
    /* 64 of 4096: 14 bits each, and two levels for 256 */
    wire_bytes(comm, "topk:0.015625,bits=2,chunk=4096", 8 * 4096,
               8 * 64 * 14 / 8 + 8 * 2);
    wire_bytes(comm, "topk:0.015625,chunk=4096", 4097, 65 * 4 + 100);
    wire_bytes(comm, "topk:0.5,bits=2,chunk=16", 0, 0);
    wire_bytes(comm, "powersgd:2,start=0", 500, 4 * 500);
    wire_bytes(comm, "int8", 0, 0);
    wire_bytes(comm, "topk:0.5", 0, 0);
    if (tac_comm_size(comm) == 1) return;
    opt.wire_dtype = TAC_F16;
    tac_comm_stats_reset(comm);
    CHECK_OK(reduce_with(comm, NULL, x, 3000, TAC_AVG, &opt));
    tac_comm_stats_get(comm, &s);
    CHECK_EQ((long long)s.total.bytes_wire, 6006);
}

/* Six calls of a warm-up that has two stages, behind one of f32. */
static void warms_up(tac_comm *comm, void *arg)
{
    enum { N = 1000 };
    static const long long want[] = {4000, 2000, 2000, 2000, 504,
                                     504,  504,  400,  400};
    float x[N] = {1};
    tac_codec *c = codec_of(comm, "topk:0.05,warmup=6,start=1");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_comm_stats s;
    (void)arg;
    opt.codec = c;
    for (int call = 0; call < 9; call++) {
        tac_comm_stats_reset(comm);
        fill_rank(x, N, tac_comm_rank(comm), call);
        CHECK_OK(reduce_with(comm, NULL, x, N, TAC_AVG, &opt));
        tac_comm_stats_get(comm, &s);
        CHECK_EQ((long long)s.total.bytes_wire, want[call]);
    }
    tac_codec_destroy(c);
}

/* ---- memory ---------------------------------------------------------------
 */

static void pause_all(tac_comm *comm)
{
    tac_req *req = NULL;
    const tac_status s = tac_barrier(comm, NULL, &req);
    CHECK_OK(s < 0 ? s : tac_wait(req, 0));
}

/* After the first call of a shape the heap does not grow, on any rank. */
static void allocates_once(tac_comm *comm, void *arg)
{
    float x[PALL];
    (void)arg;
    for (int k = 0; k < STATEFUL; k++) {
        size_t heap = 0;
        tac_codec *c = codec_of(comm, stateful_specs[k]);
        for (int step = 0; step < 3; step++) codec_call(comm, c, x, step);
        pause_all(comm);
        if (tac_comm_rank(comm) == 0) heap = mallinfo2().uordblks;
        pause_all(comm);
        for (int step = 0; step < 20; step++) codec_call(comm, c, x, step);
        pause_all(comm);
        if (tac_comm_rank(comm) == 0)
            CHECK_MSG(mallinfo2().uordblks == heap, "%s: the heap has grown",
                      stateful_specs[k]);
        pause_all(comm);
        tac_codec_destroy(c);
    }
}

/* ---- stochastic rounding --------------------------------------------------
 */

/* The average over many calls approaches the mean of the inputs. */
static void unbiased(tac_comm *comm, void *arg)
{
    enum { N = 512, CALLS = TESTS_SLOW ? 400 : 1500 };
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    float x[N];
    double sum[N] = {0};
    int far = 0;
    tac_codec *c = codec_of(comm, "int8,noef,stochastic");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    (void)arg;
    opt.codec = c;
    for (int call = 0; call < CALLS; call++) {
        fill_rank(x, N, me, 0);
        CHECK_OK(reduce_with(comm, NULL, x, N, TAC_AVG, &opt));
        for (int i = 0; i < N; i++) sum[i] += (double)x[i];
    }
    for (int i = 0; i < N; i++) {
        double mean = 0;
        for (int r = 0; r < p; r++)
            mean += (double)gradient(r, 0, (size_t)i) / p;
        /* two roundings of at most half a step in standard deviation */
        far += fabs(sum[i] / CALLS - mean) > 5 * (1.0 / 127) / sqrt(CALLS);
    }
    CHECK_EQ(far, 0);
    tac_codec_destroy(c);
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 8};
    uint64_t h[4];
    int which[] = {0, 1};
    board *b = board_create();
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    check_specs();
    for (int i = 0; i < 4; i++) {
        with_threads(ranks[i], NULL, whole, &h[i]);
        with_threads(ranks[i], NULL, bytes, NULL);
        with_threads(ranks[i], NULL, arguments, NULL);
    }
    config.progress = TAC_PROGRESS_THREAD;
    config.staging_bytes = 16384;
    with_threads(3, &config, bits, &h[2]);
    if (b) with_processes(3, NULL, bits, &h[2], b, NULL);
    /* ThreadSanitizer sees nothing of what processes do to one another. */
    if (b && !TESTS_TSAN) with_processes(4, NULL, whole, &h[0], b, NULL);
    with_threads(3, NULL, other_spec, NULL);
    with_threads(3, NULL, other_layout, NULL);
    with_threads(2, NULL, bad_layout, &which[0]);
    with_threads(2, NULL, bad_layout, &which[1]);
    for (int i = 0; i < 3; i++) {
        static const char *const specs[] = {"int8", "topk:0.1", "powersgd:2"};
        void *spec = (void *)(uintptr_t)specs[i];
        with_threads(ranks[i], NULL, other_count, spec);
        if (b) with_processes(2, NULL, other_count, spec, b, NULL);
    }
    with_threads(4, NULL, queued, (void *)(uintptr_t) "int8");
    with_threads(2, NULL, warms_up, NULL);
    with_threads(2, NULL, allocates_once, NULL);
    with_threads(2, NULL, unbiased, NULL);
    return tac_check_summary();
}
