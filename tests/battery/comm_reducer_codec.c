/* comm_reducer_codec.c: the reducer with codecs and casts: what arrives is what
 * the codec gives for each bucket on its own, in both kinds of memory, with
 * accumulation, unused parameters, ranks that join, and the rebuild; statistics
 * to the byte; what must be refused. */
#include "comm_codec_suite.h"
#include "comm_threads.h"
#include "tacit/reducer.h"

enum { N = 5, STEPS = 6 };

static const size_t shape_a[] = {30, 20}, shape_c[] = {12, 5, 4};
static const size_t counts[N] = {600, 33, 240, 0, 1000};
static const char *const names[N] = {"a", "b", "c", "empty", "d"};

/* Element i of parameter k on rank r. */
static float value(int r, int step, size_t k, size_t i)
{
    return gradient(r, step, k * 4099 + i);
}

typedef struct model {
    tac_param_desc d[N];
    float *arena; /* theirs: places at multiples of 64 bytes */
    size_t place[N], bytes;
    tac_reducer_config config;
    tac_reducer *reducer;
    tac_codec *codec;
} model;

static int model_open(model *m, tac_comm *comm, int theirs, const char *spec)
{
    size_t at = 0;
    const tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    tac_codec *codec = codec_of(comm, spec);
    if (m->config.struct_size == 0) m->config = config;
    m->codec = codec;
    for (size_t k = 0; k < N; k++) {
        m->d[k] = (tac_param_desc){
            .name = names[k], .count = counts[k], .dtype = TAC_F32};
        m->place[k] = at;
        at += (counts[k] + 15) / 16 * 16;
    }
    m->d[0].ndim = 2, m->d[0].shape = shape_a;
    m->d[2].ndim = 3, m->d[2].shape = shape_c;
    m->bytes = at * sizeof(float);
    m->arena = aligned_alloc(64, m->bytes);
    memset(m->arena, 0, m->bytes);
    if (theirs) {
        for (size_t k = 0; k < N; k++) m->d[k].grad = m->arena + m->place[k];
        m->config.arena = m->arena;
        m->config.arena_bytes = m->bytes;
    }
    m->config.first_bucket_bytes = 2000;
    m->config.bucket_bytes = 3000;
    return CHECK_OK(
               tac_reducer_create(comm, m->d, N, &m->config, &m->reducer)) &&
           CHECK_OK(tac_reducer_set_codec(m->reducer, codec));
}

static void model_close(model *m)
{
    tac_reducer_destroy(m->reducer);
    tac_codec_destroy(m->codec);
    free(m->arena);
}

static float *grad(model *m, size_t k)
{
    void *p = NULL;
    CHECK_OK(tac_reducer_grad_ptr(m->reducer, k, &p));
    return p;
}

static void produce(model *m, int rank, int step, float scale)
{
    for (size_t k = 0; k < N; k++) {
        float *g = grad(m, k);
        for (size_t i = 0; i < counts[k]; i++)
            g[i] = scale * value(rank, step, k, i);
    }
}

static tac_status run_step(model *m, int rank, int step, float scale)
{
    tac_status s = tac_reducer_begin(m->reducer, 1, (double)scale);
    if (s < 0) return s;
    produce(m, rank, step, scale);
    for (size_t k = N; k-- > 0 && s >= 0;)
        s = tac_reducer_ready(m->reducer, k, NULL);
    return s < 0 ? s : tac_reducer_finish(m->reducer, 0);
}

/* ---- the same as the codec alone ------------------------------------------
 */

/* A bucket as it is now, through another codec of the same kind. */
static void alone(model *m, tac_comm *comm, tac_codec *codec, size_t b,
                  int step, float scale, float *out, int plain)
{
    tac_bucket_view v;
    tac_codec_part parts[N];
    tac_codec_layout layout = {0, parts, (double)scale};
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    CHECK_OK(tac_reducer_bucket(m->reducer, b, &v));
    memset(out, 0, v.count * sizeof *out);
    for (size_t j = 0; j < v.n_params; j++) {
        const size_t k = v.params[j];
        if (counts[k] == 0) continue;
        parts[layout.n++] = (tac_codec_part){.name = names[k],
                                             .offset = v.offsets[j],
                                             .count = counts[k],
                                             .ndim = m->d[k].ndim,
                                             .shape = m->d[k].shape};
        for (size_t i = 0; i < counts[k]; i++)
            out[v.offsets[j] + i] =
                scale * value(tac_comm_rank(comm), step, k, i);
    }
    if (!plain) opt.codec = codec, opt.layout = &layout;
    CHECK_OK(reduce_with(comm, NULL, out, v.count, TAC_AVG, &opt));
}

static void compare_bucket(model *m, size_t b, const float *want, int rank,
                           int step)
{
    tac_bucket_view v;
    CHECK_OK(tac_reducer_bucket(m->reducer, b, &v));
    for (size_t j = 0; j < v.n_params; j++)
        if (counts[v.params[j]])
            expect_floats(grad(m, v.params[j]), want + v.offsets[j],
                          counts[v.params[j]], names[v.params[j]], rank, step);
}

static void one_kind(tac_comm *comm, int theirs, const char *spec)
{
    const int me = tac_comm_rank(comm), world = tac_comm_size(comm);
    float want[4096];
    model m = {0};
    tac_codec *other = codec_of(comm, spec);
    tac_reducer_stats s;
    uint64_t wire = 0, counted = 0;
    if (!model_open(&m, comm, theirs, spec)) return;
    for (int step = 0; step < STEPS; step++) {
        const float scale = step < 3 ? 1.0f : 1024.0f;
        /* Until the reducer's own arena is rebuilt, state has to wait. */
        const int plain =
            (step == 0 && !theirs && tac_codec_has_state(other)) || world == 1;
        if (!CHECK_OK(run_step(&m, me, step, scale))) break;
        tac_reducer_stats_get(m.reducer, &s);
        counted = s.step.bytes_wire;
        wire = 0;
        for (size_t b = 0; b < tac_reducer_buckets(m.reducer); b++) {
            tac_comm_stats cs;
            tac_comm_stats_reset(comm);
            alone(&m, comm, other, b, step, scale, want, plain);
            tac_comm_stats_get(comm, &cs);
            if (world > 1) wire += cs.total.bytes_wire;
            compare_bucket(&m, b, want, me, step);
        }
        CHECK_EQ((long long)counted, (long long)wire);
    }
    CHECK(theirs || s.rebuilt || world == 1);
    if (world > 1) CHECK_EQ_U64(residual_hash(m.codec), residual_hash(other));
    model_close(&m);
    tac_codec_destroy(other);
}

/* ---- casts ----------------------------------------------------------------
 */

static void casts(tac_comm *comm)
{
    const int me = tac_comm_rank(comm), world = tac_comm_size(comm);
    float *in[RANKS_MOST], want[1000];
    model m = {0};
    tac_reducer_stats s;
    if (!model_open(&m, comm, 0, "none")) return;
    CHECK_STATUS(tac_reducer_set_wire(m.reducer, TAC_F64), TAC_ERR_ARG);
    CHECK_OK(tac_reducer_set_wire(m.reducer, TAC_F16));
    CHECK_STATUS(tac_reducer_set_wire(m.reducer, TAC_F16), TAC_ERR_STATE);
    CHECK_OK(run_step(&m, me, 0, 1.0f));
    CHECK_OK(run_step(&m, me, 1, 1.0f));
    tac_reducer_stats_get(m.reducer, &s);
    tac_bucket_view v;
    size_t bytes = 0;
    for (size_t b = 0; b < tac_reducer_buckets(m.reducer); b++) {
        CHECK_OK(tac_reducer_bucket(m.reducer, b, &v));
        bytes += tac__wire_fp16.bytes(v.count);
        if (v.n_params != 1 || v.params[0] != 4 || world == 1) continue;
        for (int r = 0; r < world; r++) {
            in[r] = calloc(1000, sizeof(float));
            for (size_t i = 0; i < 1000; i++) in[r][i] = value(r, 1, 4, i);
        }
        oracle_reduce(&tac__wire_fp16, world, in, 1000, TAC_AVG, 1.0f, want);
        expect_floats(grad(&m, 4), want, 1000, "cast", me, 1);
        for (int r = 0; r < world; r++) free(in[r]);
    }
    CHECK_EQ((long long)s.step.bytes_wire, world == 1 ? 0 : (long long)bytes);
    model_close(&m);
}

/* ---- ways of stepping -----------------------------------------------------
 */

/* Three micro-steps without sync, then one with: the sum is compressed. */
static void accumulates(tac_comm *comm)
{
    const int me = tac_comm_rank(comm), world = tac_comm_size(comm);
    model m = {0};
    if (!model_open(&m, comm, 0, "fp16")) return;
    for (int group = 0; group < 3; group++) {
        for (int micro = 0; micro < 4; micro++) {
            CHECK_OK(tac_reducer_begin(m.reducer, micro == 3, 1.0));
            for (size_t k = 0; k < N; k++) {
                float *g = grad(&m, k);
                for (size_t i = 0; i < counts[k]; i++)
                    g[i] = micro ? g[i] + (float)(me + 1) : (float)(me + 1);
                CHECK_OK(tac_reducer_ready(m.reducer, k, NULL));
            }
            CHECK_OK(tac_reducer_finish(m.reducer, 0));
        }
        const float want = 4.0f * (float)(world + 1) / 2;
        CHECK_EQ_F64(grad(&m, 0)[7], want);
        CHECK_EQ_F64(grad(&m, 4)[999], want);
    }
    model_close(&m);
}

/* What no rank produces stays as it was; what some do is averaged. */
static void unused(tac_comm *comm)
{
    const int me = tac_comm_rank(comm), world = tac_comm_size(comm);
    const tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    model m = {.config = config};
    m.config.find_unused = 1;
    if (!model_open(&m, comm, 0, "int8,noef")) return;
    CHECK_OK(tac_reducer_begin(m.reducer, 1, 1.0));
    for (size_t k = 0; k < N; k++) {
        float *g = grad(&m, k);
        for (size_t i = 0; i < counts[k]; i++) g[i] = 127.0f;
        if (k == 1 || (k == 2 && me > 0))
            CHECK_OK(tac_reducer_unused(m.reducer, k));
        else
            CHECK_OK(tac_reducer_ready(m.reducer, k, NULL));
    }
    CHECK_OK(tac_reducer_finish(m.reducer, 0));
    CHECK_EQ_F64(grad(&m, 1)[5], 127.0);
    CHECK_NEAR(grad(&m, 2)[5], 127.0 / world, 0.51);
    CHECK_EQ_F64(grad(&m, 0)[5], 127.0);
    model_close(&m);
}

/* A rank without data shadows the others; its residuals keep their scale. */
static void joins(tac_comm *comm)
{
    const int me = tac_comm_rank(comm), world = tac_comm_size(comm);
    const tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    const float scale = 4096.0f;
    model m = {.config = config};
    double in = 0, out = 0;
    int more = 1, steps = 0;
    m.config.join = m.config.no_rebuild = 1;
    if (!model_open(&m, comm, 0, "topk:0.3")) return;
    for (int step = 0; step < 2 + me; step++, steps++) {
        if (!CHECK_OK(run_step(&m, me, step, scale))) return;
        for (size_t i = 0; i < counts[0]; i++)
            out += (double)(grad(&m, 0)[i] / scale);
    }
    while (more) {
        if (!CHECK_OK(tac_reducer_join(m.reducer, 0, &more, NULL))) return;
        for (size_t i = 0; more && i < counts[0]; i++)
            out += (double)(grad(&m, 0)[i] / scale);
        steps += more;
    }
    CHECK_EQ(steps, 1 + world);
    for (int r = 0; r < world; r++)
        for (int step = 0; step < 2 + r; step++)
            for (size_t i = 0; i < counts[0]; i++)
                in += (double)value(r, step, 0, i) / world;
    const float *residual =
        world > 1 ? state_item(m.codec, "a.residual", counts[0]) : NULL;
    double owed = 0;
    tac_req *req = NULL;
    for (size_t i = 0; residual && i < counts[0]; i++)
        owed += (double)residual[i] / world;
    const tac_status s =
        tac_allreduce(comm, NULL, &owed, 1, TAC_F64, TAC_SUM, NULL, &req);
    CHECK_OK(s < 0 ? s : tac_wait(req, 0));
    CHECK_NEAR(in - out, owed, 1e-3);
    model_close(&m);
}

/* ---- refused --------------------------------------------------------------
 */

static tac_status no_hook(void *state, tac_comm *comm,
                          const tac_bucket_view *bucket, tac_req **req)
{
    (void)state, (void)comm, (void)bucket, (void)req;
    return TAC_OK;
}

static void refused(tac_comm *comm)
{
    const tac_param_desc wide = {.name = "x", .count = 4, .dtype = TAC_F64};
    const tac_param_desc twice[] = {
        {.name = "x", .count = 4, .dtype = TAC_F32},
        {.name = "x", .count = 4, .dtype = TAC_F32}};
    tac_codec *codec = codec_of(comm, "int8");
    tac_reducer *r = NULL;
    model m = {0};
    if (!model_open(&m, comm, 0, "int8")) return;
    CHECK_STATUS(tac_reducer_set_codec(m.reducer, codec), TAC_ERR_STATE);
    CHECK_STATUS(tac_reducer_set_wire(m.reducer, TAC_F16), TAC_ERR_STATE);
    CHECK_STATUS(tac_reducer_set_hook(m.reducer, no_hook, NULL, NULL),
                 TAC_ERR_STATE);
    model_close(&m);
    CHECK_OK(tac_reducer_create(comm, &wide, 1, NULL, &r));
    CHECK_STATUS(tac_reducer_set_codec(r, codec), TAC_ERR_UNSUPPORTED);
    tac_reducer_destroy(r);
    CHECK_OK(tac_reducer_create(comm, twice, 2, NULL, &r));
    CHECK_STATUS(tac_reducer_set_codec(r, codec), TAC_ERR_ARG);
    tac_reducer_destroy(r);
    tac_codec_destroy(codec);
}

static void whole(tac_comm *comm, void *arg)
{
    static const char *const specs[] = {
        "fp16",           "int8",          "topk:0.1",
        "int8,start=2",   "bf16,ef",       "powersgd:2,start=1,min-rate=1",
        "int8,noef",      "topk:0.2,noef", "topk:0.2,bits=2,chunk=16",
        "topk:0.2,bits=4"};
    (void)arg;
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++)
        for (int theirs = 0; theirs < 2; theirs++)
            one_kind(comm, theirs, specs[k]);
    casts(comm);
    accumulates(comm);
    unused(comm);
    joins(comm);
    refused(comm);
}

int main(void)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    for (int p = 1; p < 5; p++) with_threads(p, NULL, whole, NULL);
    config.progress = TAC_PROGRESS_THREAD;
    with_threads(3, &config, whole, NULL);
    return tac_check_summary();
}
