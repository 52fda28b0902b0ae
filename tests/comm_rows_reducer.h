/* comm_rows_reducer.h: the rows of comm_rows.h that need a reducer. Rows 3, 6
 * and 8 are in unit/comm_buckets.c and comm_reducer_suite.h (test_accumulation,
 * test_no_sync_differs, test_race with 1000 iterations). */
#ifndef COMM_ROWS_REDUCER_H
#define COMM_ROWS_REDUCER_H

#include "comm_rows.h"
#include "tacit/clock.h"
#include "tacit/codec.h"

/* ---- row 4 ----------------------------------------------------------------
 *
 * Two linear layers, h = W x + b, o = V h + c, loss |o - y|^2 / (2 batch). */

enum { IN = 20, HID = 40, OUT = 10, B4 = 3, P4 = 4 };
enum { W4 = HID * IN, V4 = OUT * HID };

typedef struct row_4_net {
    float w[W4], b[HID], v[V4], c[OUT];
} row_4_net;

/* Small multiples of 1/32, from position and salt. */
static inline float row_4_noise(size_t i, unsigned salt)
{
    const uint32_t h = ((uint32_t)i * 2654435761u + salt * 40503u) >> 13;
    return ((float)(h % 33) - 16.0f) / 32.0f;
}

static inline void row_4_init(row_4_net *n)
{
    for (size_t i = 0; i < W4; i++) n->w[i] = row_4_noise(i, 1) / 4;
    for (size_t i = 0; i < HID; i++) n->b[i] = row_4_noise(i, 2);
    for (size_t i = 0; i < V4; i++) n->v[i] = row_4_noise(i, 3) / 4;
    for (size_t i = 0; i < OUT; i++) n->c[i] = row_4_noise(i, 4);
}

static inline void row_4_forward(const row_4_net *n, const float *x, float *h,
                                 float *o)
{
    for (int i = 0; i < HID; i++) {
        h[i] = n->b[i];
        for (int j = 0; j < IN; j++) h[i] += n->w[i * IN + j] * x[j];
    }
    for (int i = 0; i < OUT; i++) {
        o[i] = n->c[i];
        for (int j = 0; j < HID; j++) o[i] += n->v[i * HID + j] * h[j];
    }
}

/* Adds the gradient of sample s, divided by `batch`. */
static inline void row_4_backward(const row_4_net *n, size_t s, int step,
                                  int batch, row_4_net *g)
{
    float x[IN], h[HID], o[OUT];
    for (size_t j = 0; j < IN; j++)
        x[j] = row_4_noise(s * IN + j, 10u + (unsigned)step);
    row_4_forward(n, x, h, o);
    for (int i = 0; i < OUT; i++) {
        const float y = row_4_noise(s * OUT + (size_t)i, 20u);
        o[i] = (o[i] - y) / (float)batch;
        g->c[i] += o[i];
        for (int j = 0; j < HID; j++) g->v[i * HID + j] += o[i] * h[j];
    }
    for (int j = 0; j < HID; j++) {
        float d = 0;
        for (int i = 0; i < OUT; i++) d += n->v[i * HID + j] * o[i];
        g->b[j] += d;
        for (int k = 0; k < IN; k++) g->w[j * IN + k] += d * x[k];
    }
}

static inline void row_4_descend(row_4_net *n, const row_4_net *g)
{
    float *p = (float *)n;
    const float *q = (const float *)g;
    for (size_t i = 0; i < sizeof *n / sizeof *p; i++) p[i] -= 0.1f * q[i];
}

static inline void row_4_params(row_4_net *g, tac_param_desc d[P4])
{
    d[0] = (tac_param_desc){.name = "w", .count = W4, .grad = g->w};
    d[1] = (tac_param_desc){.name = "b", .count = HID, .grad = g->b};
    d[2] = (tac_param_desc){.name = "v", .count = V4, .grad = g->v};
    d[3] = (tac_param_desc){.name = "c", .count = OUT, .grad = g->c};
}

/* Buckets of 1049 bytes, 2 steps of SGD: the parameters of one process that has
 * the whole batch, rtol 1.3e-6, atol 5e-5. */
static inline void row_4_same_as_alone(tac_comm *c)
{
    const int p = tac_comm_size(c), me = tac_comm_rank(c);
    row_4_net *net = calloc(4, sizeof *net), *alone = net + 1, *g = net + 2,
              *all = net + 3;
    tac_param_desc d[P4];
    tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    tac_reducer *r = NULL;
    config.first_bucket_bytes = config.bucket_bytes = 1049;
    if (!CHECK(net != NULL)) return;
    row_4_init(net);
    row_4_init(alone);
    row_4_params(g, d);
    if (!CHECK_OK(tac_reducer_create(c, d, P4, &config, &r))) return;
    CHECK(tac_reducer_buckets(r) > 1);
    for (int step = 0; step < 2; step++) {
        memset(g, 0, sizeof *g);
        memset(all, 0, sizeof *all);
        for (int s = 0; s < B4 * p; s++) {
            row_4_backward(alone, (size_t)s, step, B4 * p, all);
            if (s / B4 == me) row_4_backward(net, (size_t)s, step, B4, g);
        }
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        for (size_t i = 0; i < P4; i++) CHECK_OK(tac_reducer_ready(r, i, NULL));
        CHECK_OK(tac_reducer_finish(r, 0));
        row_4_descend(net, g);
        row_4_descend(alone, all);
    }
    const float *x = (const float *)net, *y = (const float *)alone;
    size_t bad = 0;
    for (size_t i = 0; i < sizeof *net / sizeof *x; i++)
        bad += !(fabsf(x[i] - y[i]) <= 5e-5f + 1.3e-6f * fabsf(y[i]));
    CHECK_MSG(bad == 0, "row 4: %zu parameters differ", bad);
    tac_reducer_destroy(r);
    free(net);
}

/* ---- row 5 ----------------------------------------------------------------
 *
 * A parameter of 40 x 20 whose gradient is x^(1 + rank) / 800, and a small
 * second one, so that there is more than one bucket. */

enum { ROWS5 = 40, COLS5 = 20, N5 = ROWS5 * COLS5, TAIL5 = 150 };

static inline float row_5_grad(int rank, size_t i)
{
    const float x = (float)((i * 2654435761u >> 7) % 1000) / 1000.0f;
    return powf(x, (float)(1 + rank)) / (float)N5;
}

typedef struct row_5_state {
    int hooks, lasts;
} row_5_state;

static tac_status row_5_allreduce(void *state, tac_comm *c,
                                  const tac_bucket_view *b, tac_req **req)
{
    row_5_state *s = state;
    s->hooks++;
    s->lasts += b->is_last;
    return tac_allreduce(c, b->buffer, b->buffer, b->count, b->dtype, TAC_AVG,
                         NULL, req);
}

static tac_status row_5_noop(void *state, tac_comm *c, const tac_bucket_view *b,
                             tac_req **req)
{
    (void)state, (void)c, (void)b, (void)req;
    return TAC_OK;
}

typedef enum row_5_way {
    ROW_5_PLAIN,
    ROW_5_HOOK,
    ROW_5_NOOP,
    ROW_5_FP16,
    ROW_5_BF16,
    ROW_5_INT8,
    ROW_5_WAYS
} row_5_way;

static inline tac_status row_5_set(tac_reducer *r, row_5_way way,
                                   tac_codec *codec, row_5_state *s)
{
    switch (way) {
    case ROW_5_HOOK: return tac_reducer_set_hook(r, row_5_allreduce, NULL, s);
    case ROW_5_NOOP: return tac_reducer_set_hook(r, row_5_noop, NULL, s);
    case ROW_5_FP16: return tac_reducer_set_wire(r, TAC_F16);
    case ROW_5_BF16: return tac_reducer_set_wire(r, TAC_BF16);
    case ROW_5_INT8: return tac_reducer_set_codec(r, codec);
    default: return TAC_OK;
    }
}

/* What noop has left out, by hand. */
static inline void row_5_reduce_by_hand(tac_comm *c, float *g, size_t n)
{
    tac_req *req = NULL;
    for (size_t i = 0; i < n; i++) g[i] /= (float)tac_comm_size(c);
    CHECK_OK(row_wait(
        tac_allreduce(c, NULL, g, n, TAC_F32, TAC_SUM, NULL, &req), &req));
}

/* The averages that one way gives. */
static inline void row_5_run(tac_comm *c, row_5_way way, float *out)
{
    const tac_param_desc d[2] = {{.name = "tail", .count = TAIL5},
                                 {.name = "weight", .count = N5}};
    tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    tac_reducer *r = NULL;
    tac_codec *codec = NULL;
    row_5_state s = {0, 0};
    config.first_bucket_bytes = config.bucket_bytes = 400;
    config.no_rebuild = 1;
    CHECK_OK(tac_codec_create(tac_comm_context(c), "int8,noef", &codec));
    if (!CHECK_OK(tac_reducer_create(c, d, 2, &config, &r))) return;
    CHECK_OK(row_5_set(r, way, codec, &s));
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    void *g[2] = {NULL, NULL};
    for (size_t k = 2; k-- > 0;) {
        CHECK_OK(tac_reducer_grad_ptr(r, k, &g[k]));
        for (size_t i = 0; i < d[k].count; i++)
            ((float *)g[k])[i] = row_5_grad(tac_comm_rank(c), i);
        CHECK_OK(tac_reducer_ready(r, k, NULL));
    }
    CHECK_OK(tac_reducer_finish(r, 0));
    if (way == ROW_5_NOOP) row_5_reduce_by_hand(c, g[1], N5);
    memcpy(out, g[1], N5 * sizeof *out);
    if (way == ROW_5_HOOK) CHECK_EQ(s.hooks, 2);
    if (way == ROW_5_HOOK) CHECK_EQ(s.lasts, 1);
    tac_reducer_destroy(r);
    tac_codec_destroy(codec);
}

static inline void row_5_hooks(tac_comm *c)
{
    float *want = malloc(2 * N5 * sizeof *want), *got = want + N5;
    if (!CHECK(want != NULL)) return;
    row_5_run(c, ROW_5_PLAIN, want);
    for (int way = ROW_5_HOOK; way < ROW_5_WAYS; way++) {
        const float atol = way >= ROW_5_FP16 ? 1e-4f : 0;
        size_t bad = 0;
        row_5_run(c, (row_5_way)way, got);
        for (size_t i = 0; i < N5; i++)
            bad += !(fabsf(got[i] - want[i]) <= atol + 1e-5f * fabsf(want[i]));
        CHECK_MSG(bad == 0, "row 5: way %d: %zu elements differ", way, bad);
    }
    free(want);
}

/* ---- row 9 ----------------------------------------------------------------
 *
 * Another shape, number or dtype of parameters on one rank: an error on all,
 * soon, whatever the timeout (the texts: comm_reducer_suite.h). */
static inline void row_9_mismatch(tac_comm *c)
{
    static const size_t a[] = {2, 3}, b[] = {3, 2};
    const int odd = tac_comm_rank(c) == tac_comm_size(c) - 1;
    if (tac_comm_size(c) == 1) return;
    for (int how = 0; how < 3; how++) {
        tac_param_desc d[2] = {
            {.name = "p", .count = 6, .ndim = 2, .shape = a},
            {.name = "q", .count = 4},
        };
        tac_reducer *r = NULL;
        const double from = tac_clock_s();
        if (odd && how == 0) d[0].shape = b;
        if (odd && how == 2) d[1].dtype = TAC_F64;
        CHECK_STATUS(
            tac_reducer_create(c, d, odd && how == 1 ? 1 : 2, NULL, &r),
            TAC_ERR_MISMATCH);
        CHECK(tac_clock_s() - from < 10);
        CHECK(r == NULL);
    }
}

#endif
