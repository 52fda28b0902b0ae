/* localsgd_merges.c: what becomes of tensors that are no parameters, by role
 * and rule; memory; elements reduced once each whatever sizes and fragments. */
#include "localsgd_saved.h"

enum { STATS = 21 };

typedef struct model {
    float w[33], frozen[9], own[4]; /* parameters */
    float mean[STATS], var[STATS], kept[STATS], reset[STATS], most[STATS];
    float moment[33], buffer[2], average[3];
    int64_t batches[2], step, zeroed;
} model;

#define ADD(l_, field, role_, merge_, type, ...)                               \
    CHECK_OK(tac_localsgd_add(                                                 \
        l_, &(tac_localsgd_tensor){.name = #field,                             \
                                   .role = role_,                              \
                                   .merge = merge_,                            \
                                   .dtype = type,                              \
                                   .count =                                    \
                                       sizeof m->field / tac_dtype_size(type), \
                                   .data = (void *)&m->field,                  \
                                   __VA_ARGS__}))

static void add_all(tac_localsgd *l, model *m)
{
    ADD(l, w, TAC_ROLE_PARAM, TAC_MERGE_DEFAULT, TAC_F32, .layer = -1);
    ADD(l, frozen, TAC_ROLE_PARAM, TAC_MERGE_FROZEN, TAC_F32, .layer = -1);
    ADD(l, own, TAC_ROLE_PARAM, TAC_MERGE_KEEP, TAC_F32, .layer = -1);
    ADD(l, mean, TAC_ROLE_STATISTIC, TAC_MERGE_DEFAULT, TAC_F32, .layer = 0);
    ADD(l, var, TAC_ROLE_STATISTIC, TAC_MERGE_MOMENTS, TAC_F32,
        .mean_of = "mean");
    ADD(l, kept, TAC_ROLE_STATISTIC, TAC_MERGE_KEEP, TAC_F32, .layer = 0);
    ADD(l, reset, TAC_ROLE_MOMENT, TAC_MERGE_RESET, TAC_F32, .layer = 0);
    ADD(l, most, TAC_ROLE_BUFFER, TAC_MERGE_MAX, TAC_F32, .layer = 0);
    ADD(l, moment, TAC_ROLE_MOMENT, TAC_MERGE_DEFAULT, TAC_F32, .layer = 0);
    ADD(l, buffer, TAC_ROLE_BUFFER, TAC_MERGE_DEFAULT, TAC_F32, .layer = 0);
    ADD(l, average, TAC_ROLE_MOMENT, TAC_MERGE_AVERAGE, TAC_F32, .layer = 0);
    ADD(l, batches, TAC_ROLE_COUNTER, TAC_MERGE_DEFAULT, TAC_I64, .layer = 0);
    ADD(l, step, TAC_ROLE_COUNTER, TAC_MERGE_KEEP, TAC_I64, .layer = 0);
    ADD(l, zeroed, TAC_ROLE_COUNTER, TAC_MERGE_RESET, TAC_I64, .layer = 0);
}

static void fill(model *m, int r)
{
    for (int i = 0; i < 33; i++) m->w[i] = (float)(r + i);
    for (int i = 0; i < 33; i++) m->moment[i] = (float)(2 * r + i);
    for (int i = 0; i < 9; i++) m->frozen[i] = (float)i;
    for (int i = 0; i < 4; i++) m->own[i] = (float)(100 * r + i);
    for (int i = 0; i < STATS; i++) {
        m->mean[i] = (float)(r * (i + 1));
        m->var[i] = (float)(1 + r);
        m->kept[i] = m->reset[i] = (float)(r + 1);
        m->most[i] = (float)(r % 3 * (i % 2 ? 1 : -1));
    }
    m->buffer[0] = m->buffer[1] = (float)r;
    for (int i = 0; i < 3; i++) m->average[i] = (float)(r * i);
    m->batches[0] = 10 + r;
    m->batches[1] = -5 - r;
    m->step = m->zeroed = 7 + r;
}

/* Weight of rank r in the average. */
static double share(int size, int r, int weighted)
{
    return weighted ? (r + 1) / (size * (size + 1) / 2.0) : 1.0 / size;
}

static void expect(const model *m, int me, int size, int weighted)
{
    double mean = 0, square = 0, ranks = 0;
    for (int r = 0; r < size; r++) {
        const double w = share(size, r, weighted);
        mean += w * r;
        square += w * (double)r * r;
        ranks += w * (1 + r);
    }
    for (int i = 0; i < 33; i++) CHECK_NEAR(m->w[i], mean + i, 1e-5);
    for (int i = 0; i < 33; i++) CHECK_EQ_F64(m->moment[i], 2 * me + i);
    for (int i = 0; i < 4; i++) CHECK_EQ_F64(m->own[i], 100 * me + i);
    for (int i = 0; i < 9; i++) CHECK_EQ_F64(m->frozen[i], i);
    for (int i = 0; i < STATS; i++) {
        const double k = i + 1;
        CHECK_NEAR(m->mean[i], k * mean, 1e-4);
        /* the variance of all ranks' samples together */
        CHECK_NEAR(m->var[i], ranks + k * k * (square - mean * mean),
                   1e-5 * k * k * 64);
        CHECK_EQ_F64(m->kept[i], me + 1);
        CHECK_EQ_F64(m->reset[i], 0);
        CHECK_EQ_F64(m->most[i], i % 2 ? (size > 2 ? 2 : size - 1) : 0);
    }
    for (int i = 0; i < 3; i++) CHECK_NEAR(m->average[i], i * mean, 1e-5);
    CHECK_EQ_F64(m->buffer[1], me);
    CHECK_EQ((long long)m->batches[0], 9 + size);
    CHECK_EQ((long long)m->batches[1], -5);
    CHECK_EQ((long long)m->step, 7 + me);
    CHECK_EQ((long long)m->zeroed, 0);
}

static void merges(tac_comm *comm, void *arg)
{
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    (void)arg;
    for (int k = 0; k < 4; k++) {
        model values, *m = &values;
        tac_localsgd *l = NULL;
        tac_localsgd_config c = preset(comm, "local", 1);
        if (k % 2) c.weighting = TAC_WEIGHT_SAMPLES;
        if (k / 2) c.outer.kind = TAC_OUTER_SGD;
        CHECK_OK(tac_localsgd_create(comm, &c, &l));
        add_all(l, m);
        fill(m, 0);
        CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
        fill(m, me);
        CHECK_OK(tac_localsgd_step(
            l, &(tac_local_step){.lr = 1, .loss = NAN, .samples = me + 1},
            NULL));
        expect(m, me, size, k % 2);
        const tac_localsgd_stats s = stats_of(l);
        const uint64_t statistics = 2 * 4 * STATS, moments = 4 * 3;
        CHECK_EQ_U64(s.bytes_role[TAC_ROLE_PARAM], 4 * 33);
        CHECK_EQ_U64(s.bytes_role[TAC_ROLE_STATISTIC], statistics);
        CHECK_EQ_U64(s.bytes_role[TAC_ROLE_MOMENT], moments);
        CHECK_EQ_U64(s.bytes_role[TAC_ROLE_COUNTER], 16);
        CHECK_EQ_U64(s.bytes_role[TAC_ROLE_BUFFER], 4 * STATS);
        CHECK_EQ_U64(s.bytes_wire,
                     4 * 33 + statistics + moments + 16 + 4 * STATS);
        tac_localsgd_destroy(l);
    }
}

/* A frozen tensor that differs is found at the start. */
static void frozen(tac_comm *comm, void *arg)
{
    model values, *m = &values;
    tac_localsgd *l = NULL;
    const tac_localsgd_config c = preset(comm, "local", 1);
    (void)arg;
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    add_all(l, m);
    fill(m, 0);
    if (tac_comm_rank(comm) == 1) m->frozen[8] = 0;
    CHECK_STATUS(tac_localsgd_start(l, TAC_START_BROADCAST), TAC_ERR_MISMATCH);
    tac_localsgd_destroy(l);
}

/* ---- what can't be registered ---------------------------------------------
 */

static void refuses(tac_localsgd *l, tac_localsgd_tensor t)
{
    CHECK_STATUS(tac_localsgd_add(l, &t), TAC_ERR_ARG);
}

static void refused(tac_comm *comm, void *arg)
{
    float x[4] = {0};
    tac_localsgd *l = NULL;
    const tac_localsgd_config c = preset(comm, "local", 1);
    const tac_localsgd_tensor good = {.name = "x", .count = 4, .data = x};
    tac_localsgd_tensor t = good;
    (void)arg;
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    CHECK_OK(tac_localsgd_add(l, &good));
    refuses(l, good); /* the name twice */
    t.name = "";
    refuses(l, t);
    t.name = "y";
    t.dtype = TAC_F16;
    refuses(l, t);
    t.dtype = TAC_F32;
    t.data = NULL;
    refuses(l, t);
    t.data = x;
    t.layer = -2;
    refuses(l, t);
    t.layer = 0;
    t.merge = TAC_MERGE_RESET; /* of a parameter */
    refuses(l, t);
    t.role = TAC_ROLE_COUNTER; /* f32 */
    refuses(l, t);
    t.role = TAC_ROLE_STATISTIC;
    t.merge = TAC_MERGE_MOMENTS; /* of a parameter, and of nothing */
    t.mean_of = "x";
    refuses(l, t);
    t.mean_of = NULL;
    refuses(l, t);
    tac_localsgd_destroy(l);
}

/* ---- every element once ---------------------------------------------------
 */

/* Random sizes, layers, places and numbers of fragments: each element becomes
 * the mean, gaps stay, one collective a fragment. */
static void once_each(tac_comm *comm, uint64_t seed)
{
    enum { TENSORS = 12, MOST = 40, ROOM = 2 * TENSORS * MOST };
    const tac_rng_key key = {seed, TAC_STREAM_USER, 0};
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    float *x = malloc(ROOM * sizeof *x);
    char names[TENSORS][8], used[ROOM] = {0};
    size_t at = 0, elements = 0;
    tac_localsgd *l = NULL;
    tac_localsgd_config c = preset(comm, seed % 2 ? "local" : "diloco", 3);
    c.fragments = 1 + (int64_t)tac_rng_below(&key, 0, 5);
    c.strided = (int)(seed / 2 % 2);
    c.outer.kind = TAC_OUTER_AVERAGE;
    c.codec = seed % 2 ? NULL : "bf16";
    c.codec = seed % 3 ? NULL : c.codec;
    for (size_t i = 0; i < ROOM; i++) x[i] = -1;
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    for (int i = 0; i < TENSORS; i++) {
        const size_t n = tac_rng_below(&key, 10 + (uint64_t)i, MOST);
        snprintf(names[i], sizeof names[i], "t%d", i);
        CHECK_OK(tac_localsgd_add(
            l, &(tac_localsgd_tensor){
                   .name = names[i],
                   .count = n,
                   .data = x + at,
                   .layer = (int64_t)tac_rng_below(&key, 30 + (uint64_t)i, 8) +
                            (i ? 0 : 8)}));
        memset(used + at, 1, n);
        elements += n;
        at += n + (tac_rng_below(&key, 50 + (uint64_t)i, 3) ? 0 : 5);
    }
    CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
    for (int n = 1; n <= 6; n++) {
        for (size_t i = 0; i < ROOM; i++)
            if (used[i]) x[i] = (float)((double)(i % 64) + 64 * me);
        CHECK_OK(tac_localsgd_step(
            l, &(tac_local_step){.lr = 1, .loss = NAN, .samples = 1}, NULL));
        if (n < 6) continue;
        CHECK_OK(tac_localsgd_finish(l));
    }
    for (size_t i = 0; i < ROOM; i++) {
        const double want =
            used[i] ? (double)(i % 64) + 64 * (size - 1) / 2.0 : -1;
        if (c.codec ? fabs((double)x[i] - want) > 1 : (double)x[i] != want) {
            CHECK_FAIL("seed %d: element %zu is %g, not %g", (int)seed, i,
                       (double)x[i], want);
            break;
        }
    }
    CHECK_EQ((long long)tac_localsgd_elements(l), (long long)elements);
    tac_localsgd_destroy(l);
    free(x);
}

static void every_element(tac_comm *comm, void *arg)
{
    (void)arg;
    for (uint64_t seed = 0; seed < 40; seed++) once_each(comm, seed);
}

/* ---- memory ---------------------------------------------------------------
 */

/* As the header says: staging of the largest fragment, anchor, outer state, a
 * buffer for each delta that can be under way. */
static void memory(tac_comm *comm, void *arg)
{
    static float w[8][100];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)arg;
    for (int k = 0; k < 4; k++) {
        const size_t n = 800, f = sizeof(float);
        size_t want = n; /* staging */
        tac_localsgd *l = NULL;
        tac_localsgd_config c = preset(comm, k ? "diloco" : "local", 16);
        if (k == 2) c.fragments = 8;
        if (k == 3) c.fragments = 8, c.delay = 1;
        CHECK_OK(tac_localsgd_create(comm, &c, &l));
        for (int i = 0; i < 8; i++)
            CHECK_OK(tac_localsgd_add(
                l,
                &(tac_localsgd_tensor){
                    .name = names[i], .count = 100, .data = w[i], .layer = i}));
        CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
        if (k) want = 3 * n;
        if (k == 2) want = 2 * n + n / 8;
        if (k == 3) want = 2 * n + n / 8 + 2 * n / 8;
        CHECK_EQ((long long)tac_localsgd_bytes(l), (long long)(want * f));
        for (int i = 0; i < 33; i++)
            CHECK_OK(tac_localsgd_step(
                l, &(tac_local_step){.lr = 1, .loss = NAN, .samples = 1},
                NULL));
        CHECK_EQ((long long)tac_localsgd_bytes(l), (long long)(want * f));
        CHECK_OK(tac_localsgd_finish(l));
        tac_localsgd_destroy(l);
    }
}

/* Predicted is counted, for anything that can be configured; and what codecs
 * hold is what their documentation says. */
static void predicted(tac_comm *comm, void *arg)
{
    static const char *const names[] = {"local", "diloco", "slowmo",
                                        "streaming"};
    static const char *const codecs[] = {NULL, "fp16", "int8", "fp4,noef",
                                         "topk:0.1,bits=2,chunk=16,warmup=4"};
    const int size = tac_comm_size(comm);
    (void)arg;
    for (int k = 0; k < 4; k++)
        for (int q = 0; q < 5; q++)
            for (int64_t delay = 0; delay < 13; delay += 6) {
                trial t;
                size_t want = 0;
                tac_localsgd_config c = preset(comm, names[k], 12);
                c.codec = codecs[q];
                c.fragments = 1 + (k + q) % 4;
                if (k) c.delay = delay;
                if (k == 1 && delay == 12) c.stale = TAC_STALE_EAGER;
                if (k == 2 && delay == 0 && size > 2) {
                    c.n_levels = 2;
                    c.levels[0] = (tac_sync_level){2, 3};
                    c.levels[1] = (tac_sync_level){size, 12};
                }
                if (!trial_start(&t, comm, &c, 1)) return;
                const tac_localsgd_model m = tac_localsgd_model_of(t.l);
                CHECK_OK(tac_localsgd_predict_memory(tac_comm_context(comm), &c,
                                                     &m, size, &want));
                CHECK_EQ((long long)tac_localsgd_bytes(t.l), (long long)want);
                trial_close(&t);
            }
    const size_t n = TRIAL_N, m[1] = {TRIAL_N};
    const tac_localsgd_model one = {.layers = 1, .params = m};
    tac_localsgd_config c = preset(comm, "local", 3);
    size_t without = 0, with = 0;
    CHECK_OK(tac_localsgd_predict_memory(tac_comm_context(comm), &c, &one, size,
                                         &without));
    c.codec = "int8"; /* needs an anchor: n; two copies of two residuals */
    CHECK_OK(tac_localsgd_predict_memory(tac_comm_context(comm), &c, &one, size,
                                         &with));
    CHECK_EQ((long long)(with - without),
             (long long)(4 * n * (size > 1 ? 5 : 1)));
}

int main(void)
{
    static const int ranks[] = {1, 2, 4, 8};
    for (int i = TESTS_TSAN ? 2 : 0; i < 4; i += TESTS_SLOW ? 2 : 1) {
        with_threads(ranks[i], NULL, merges, NULL);
        with_threads(ranks[i], NULL, every_element, NULL);
    }
    with_threads(3, NULL, merges, NULL);
    with_threads(4, NULL, frozen, NULL);
    with_threads(1, NULL, refused, NULL);
    with_threads(1, NULL, memory, NULL);
    with_threads(1, NULL, predicted, NULL);
    with_threads(4, NULL, predicted, NULL);
    return tac_check_summary();
}
