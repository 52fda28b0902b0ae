/* comm_codec_suite.h: what codecs and 16-bit wires must do on any communicator.
 *
 * Every rank simulates all ranks: inputs are a function of (rank, step, index),
 * so each can compute on its own what the result must be. Casts, int8 and topk
 * are compared bit by bit with a simulation in f32; powersgd with one in f64.
 * Used with ranks that are threads, processes, and under mpirun. */
#ifndef COMM_CODEC_SUITE_H
#define COMM_CODEC_SUITE_H

#include <stdlib.h>

#include "comm_impl.h"
#include "tac_check.h"
#include "tacit/codec.h"
#include "tacit/hash.h"
#include "tacit/rng.h"
#include "comm_wire_oracle.h"

enum { RANKS_MOST = 8 };

/* ---- calls ----------------------------------------------------------------
 */

static inline UNWATCHED uint64_t scramble(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* Between -1 and 1, of sizes that differ a lot. */
static inline UNWATCHED float gradient(int r, int step, size_t i)
{
    const uint64_t h =
        scramble((uint64_t)i * 8191 + (uint64_t)r * 131 + (uint64_t)step * 17);
    const float x = (float)(int32_t)(uint32_t)h * 0x1p-31f;
    return h >> 60 ? x * 0.05f : x;
}

static inline UNWATCHED void fill_rank(float *x, size_t n, int r, int step)
{
    for (size_t i = 0; i < n; i++) x[i] = gradient(r, step, i);
    watch_write(x, n * sizeof *x);
}

static inline tac_status reduce_with(tac_comm *comm, const float *src,
                                     float *dst, size_t n, tac_op op,
                                     const tac_coll_opt *opt)
{
    tac_req *req = NULL;
    const tac_status s =
        tac_allreduce(comm, src, dst, n, TAC_F32, op, opt, &req);
    return s < 0 ? s : tac_wait(req, 0);
}

static inline tac_codec *codec_of(tac_comm *comm, const char *spec)
{
    tac_codec *c = NULL;
    CHECK_OK(tac_codec_create(tac_comm_context(comm), spec, &c));
    return c;
}

static inline UNWATCHED void expect_floats(const float *got, const float *want,
                                           size_t n, const char *what, int rank,
                                           int step)
{
    watch_read(got, n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        if (!same(got[i], want[i])) {
            CHECK_FAIL("%s, rank %d, step %d: element %zu of %zu is %.9g, not "
                       "%.9g",
                       what, rank, step, i, n, (double)got[i], (double)want[i]);
            return;
        }
    CHECK(1);
}

/* ---- casts of single calls ------------------------------------------------
 */

static inline UNWATCHED float combined(float a, float x, tac_op op)
{
    switch (op) {
    case TAC_PROD: return a * x;
    case TAC_MIN: return x < a || x != x ? x : a;
    case TAC_MAX: return x > a || x != x ? x : a;
    default: return a + x;
    }
}

/* Each contribution rounded once, added in rank order in f32, rounded once. */
static inline UNWATCHED void oracle_reduce(const tac__wire *w, int p,
                                           float **in, size_t n, tac_op op,
                                           float post, float *out)
{
    float *sent = calloc(n + 1, sizeof *sent),
          *acc = calloc(n + 1, sizeof *acc);
    for (int r = 0; r < p; r++) {
        wire_oracle(w, in[r], sent, n);
        for (size_t i = 0; i < n; i++)
            acc[i] = r ? combined(acc[i], sent[i], op) : sent[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (op == TAC_AVG) acc[i] /= (float)p;
        if (post != 1.0f) acc[i] *= post;
    }
    wire_oracle(w, acc, out, n);
    free(sent);
    free(acc);
}

typedef void value_fn(float *x, size_t n, int r);

static inline void cast_case(tac_comm *comm, int wire, size_t n, tac_op op,
                             value_fn *value, int in_place, const char *alg)
{
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    char what[64];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    float *in[RANKS_MOST], *want = calloc(n + 1, sizeof *want);
    float *src = calloc(n + 1, sizeof *src), *dst = calloc(n + 1, sizeof *dst);
    for (int r = 0; r < p; r++) {
        in[r] = calloc(n + 1, sizeof(float));
        value(in[r], n, r);
    }
    memcpy(in_place ? dst : src, in[me], n * sizeof *src);
    opt.wire_dtype = wire;
    opt.algorithm = alg;
    if (CHECK_OK(reduce_with(comm, in_place ? NULL : src, dst, n, op, &opt))) {
        const tac__wire *w =
            wire == TAC_F16 ? &tac__wire_fp16 : &tac__wire_bf16;
        oracle_reduce(w, p, in, n, op, 1.0f, want);
        snprintf(what, sizeof what, "%s, algorithm %s", w->name,
                 alg ? alg : "any");
        expect_floats(dst, p == 1 ? in[me] : want, n, what, me, (int)op);
    }
    for (int r = 0; r < p; r++) free(in[r]);
    free(want);
    free(src);
    free(dst);
}

static inline void ordinary(float *x, size_t n, int r)
{
    fill_rank(x, n, r, 0);
}

/* 2^11 against odd multiples of 2^-11: halves cannot hold both, and the order
 * of a sum shows in its last bits. */
static inline UNWATCHED void adversarial(float *x, size_t n, int r)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t h = scramble(i * 31 + (uint64_t)r);
        x[i] = (int)(h % 4) == 0
                   ? (h & 64 ? -2048.0f : 2048.0f)
                   : (float)(2 * (int)(h >> 40 & 511) + 1) * 0x1p-11f;
    }
}

static inline UNWATCHED void thirty_thousand(float *x, size_t n, int r)
{
    (void)r;
    for (size_t i = 0; i < n; i++) x[i] = 30000.0f;
}

static inline UNWATCHED void tiny(float *x, size_t n, int r)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1e-8f * (float)(1 + (i + (size_t)r) % 7);
}

static inline UNWATCHED void not_finite(float *x, size_t n, int r)
{
    fill_rank(x, n, r, 3);
    if (r == 1 && n > 2) x[2] = INFINITY;
    if (r == 0 && n > 1500) x[1400] = NAN;
}

static inline void suite_casts(tac_comm *comm)
{
    static const size_t counts[] = {0, 1, 17, 1024, 1025, 5000, 33001};
    static value_fn *const values[] = {ordinary, adversarial, thirty_thousand,
                                       tiny, not_finite};
    for (int w = 0; w < 2; w++)
        for (size_t c = 0; c < 7; c++)
            for (int v = 0; v < (TESTS_SLOW && c > 5 ? 2 : 5); v++)
                cast_case(comm, w ? TAC_BF16 : TAC_F16, counts[c],
                          v % 2 ? TAC_SUM : TAC_AVG, values[v], (int)c % 2,
                          NULL);
    for (int op = 0; op < TAC_OP_COUNT; op++)
        cast_case(comm, TAC_F16, 3000, (tac_op)op, ordinary, 0, NULL);
    if (tac_comm_size(comm) == 1) return;
    for (size_t a = 0; tac__algs[a]; a++) {
        const tac_req like = {.coll = TAC_COLL_ALLREDUCE,
                              .dtype = TAC_F32,
                              .esize = 4,
                              .count = 9000,
                              .wire = &tac__wire_fp16};
        if (tac__algs[a]->coll != TAC_COLL_ALLREDUCE ||
            tac__algs[a]->reorders || !tac__algs[a]->applicable(comm, &like))
            continue;
        cast_case(comm, TAC_F16, 9000, TAC_AVG, adversarial, 0,
                  tac__algs[a]->name);
    }
}

/* What was promised, in numbers. */
static inline void suite_promises(tac_comm *comm)
{
    const int p = tac_comm_size(comm);
    float x[1500];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.wire_dtype = TAC_F16;
    for (int i = 0; i < 1500; i++) x[i] = 30000.0f;
    CHECK_OK(reduce_with(comm, NULL, x, 1500, TAC_AVG, &opt));
    for (int i = 0; i < 1500; i += 499) CHECK_EQ_F64(x[i], 30000.0);
    for (int i = 0; i < 1500; i++) x[i] = 32768.0f;
    CHECK_OK(reduce_with(comm, NULL, x, 1500, TAC_AVG, &opt));
    CHECK_EQ_F64(x[1499], 32768.0);
    for (int i = 0; i < 1500; i++) x[i] = 65504.0f;
    CHECK_OK(reduce_with(comm, NULL, x, 1500, TAC_SUM, &opt));
    CHECK_NEAR(x[0], 65504.0 * p, 65504.0 * p * 0x1p-11);
    for (int i = 0; i < 1500; i++) x[i] = i % 2 ? 1e-8f : 3e-8f;
    CHECK_OK(reduce_with(comm, NULL, x, 1500, TAC_AVG, &opt));
    CHECK_NEAR(x[1], 1e-8, 1e-8 * 0x1p-10);
    CHECK_NEAR(x[2], 3e-8, 3e-8 * 0x1p-10);
}

/* ---- int8 and casts with feedback -----------------------------------------
 */

typedef struct wire_sim {
    const tac__wire *wire;
    int p, feedback;
    size_t n;
    float *lost[RANKS_MOST], *sum_lost, *x, *sent, *acc;
} wire_sim;

static inline void sim_open(wire_sim *s, const tac__wire *w, int p, size_t n,
                            int feedback)
{
    *s = (wire_sim){.wire = w, .p = p, .n = n, .feedback = feedback};
    for (int r = 0; r < p; r++) s->lost[r] = calloc(n, sizeof(float));
    s->sum_lost = calloc(n, sizeof(float));
    s->x = calloc(n, sizeof(float));
    s->sent = calloc(n, sizeof(float));
    s->acc = calloc(n, sizeof(float));
}

static inline void sim_close(wire_sim *s)
{
    for (int r = 0; r < s->p; r++) free(s->lost[r]);
    free(s->sum_lost);
    free(s->x);
    free(s->sent);
    free(s->acc);
}

static inline UNWATCHED void sim_rank(wire_sim *s, int r, float scale)
{
    for (size_t i = 0; i < s->n && s->feedback; i++)
        s->x[i] = s->x[i] * 1.0f + s->lost[r][i] * scale;
    wire_oracle(s->wire, s->x, s->sent, s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->lost[r][i] = (s->x[i] - s->sent[i]) / scale;
        s->acc[i] = r ? s->acc[i] + s->sent[i] : s->sent[i];
    }
}

/* The average that all ranks get in this step; gradients carry `scale`. */
static inline UNWATCHED void sim_step(wire_sim *s, int step, float scale,
                                      float *out)
{
    for (int r = 0; r < s->p; r++) {
        fill_rank(s->x, s->n, r, step);
        for (size_t i = 0; i < s->n; i++) s->x[i] *= scale;
        sim_rank(s, r, scale);
    }
    for (size_t i = 0; i < s->n; i++) {
        s->acc[i] /= (float)s->p;
        if (s->feedback) s->acc[i] += scale * s->sum_lost[i];
    }
    wire_oracle(s->wire, s->acc, out, s->n);
    for (size_t i = 0; i < s->n; i++)
        s->sum_lost[i] = (s->acc[i] - out[i]) / scale;
}

/* What is still owed: the mean residual and the sum's, against the difference
 * of what went in and what came out. */
static inline UNWATCHED void
check_telescope(const wire_sim *s, const double *in, const double *out)
{
    double worst = 0;
    for (size_t i = 0; i < s->n; i++) {
        double owed = s->sum_lost[i];
        for (int r = 0; r < s->p; r++) owed += (double)s->lost[r][i] / s->p;
        const double d = fabs(in[i] - out[i] - owed);
        if (d > worst) worst = d;
    }
    CHECK_NEAR(worst, 0, 2e-5);
}

/* What went in and came out in this step, without its scale. */
static inline UNWATCHED void add_gradients(double *in, double *out,
                                           const float *x, size_t n, int p,
                                           int step, float scale)
{
    for (size_t i = 0; i < n; i++) {
        out[i] += (double)x[i] / (double)scale;
        for (int r = 0; r < p; r++) in[i] += (double)gradient(r, step, i) / p;
    }
}

static inline void wire_codec(tac_comm *comm, const char *spec,
                              const tac__wire *w, int feedback)
{
    enum { N = 2700, STEPS = 12 };
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    static const float scales[] = {1.0f, 1024.0f, 3.0f};
    float x[N], want[N];
    double *in = calloc(N, sizeof *in), *out = calloc(N, sizeof *out);
    tac_codec *c = codec_of(comm, spec);
    const tac_codec_part part = {.name = "w", .count = N};
    tac_codec_layout layout = {.n = 1, .parts = &part};
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    wire_sim sim;
    sim_open(&sim, w, p, N, feedback);
    opt.codec = c;
    opt.layout = &layout;
    for (int step = 0; step < STEPS; step++) {
        const float scale = scales[step % 3];
        layout.grad_scale = step ? (double)scale : 0;
        fill_rank(x, N, me, step);
        for (int i = 0; i < N; i++) x[i] *= scale;
        if (!CHECK_OK(reduce_with(comm, NULL, x, N, TAC_AVG, &opt))) break;
        sim_step(&sim, step, scale, want);
        expect_floats(x, want, N, spec, me, step);
        add_gradients(in, out, x, N, p, step, scale);
    }
    if (feedback) check_telescope(&sim, in, out);
    sim_close(&sim);
    tac_codec_destroy(c);
    free(in);
    free(out);
}

/* ---- topk -----------------------------------------------------------------
 */

typedef struct ranked {
    float magnitude;
    size_t index;
} ranked;

static inline UNWATCHED int by_magnitude(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->magnitude != y->magnitude)
        return x->magnitude < y->magnitude ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

/* Moves the k largest of x to sent. */
static inline UNWATCHED void sim_topk(float *x, float *sent, size_t n, size_t k)
{
    ranked *order = calloc(n, sizeof *order);
    for (size_t i = 0; i < n; i++) order[i] = (ranked){fabsf(x[i]), i};
    qsort(order, n, sizeof *order, by_magnitude);
    for (size_t i = 0; i < n; i++) sent[i] = 0;
    for (size_t i = 0; i < k; i++) {
        sent[order[i].index] = x[order[i].index];
        x[order[i].index] = 0;
    }
    free(order);
}

typedef struct topk_case {
    const char *spec;
    double share;
    int bits;
    size_t chunk;      /* 0: none */
    size_t index_bits; /* of an element */
} topk_case;

/* The two levels of a block: smallest and largest, or the best pair of means,
 * by trying every cut (of equal ones that with more large ones). */
static inline UNWATCHED void sim_levels(const float *v, size_t n, int bits,
                                        float *lo, float *hi)
{
    ranked *order = calloc(n, sizeof *order);
    double best = INFINITY, all = 0;
    for (size_t i = 0; i < n; i++) order[i] = (ranked){fabsf(v[i]), i};
    qsort(order, n, sizeof *order, by_magnitude); /* the largest first */
    *lo = order[n - 1].magnitude;
    *hi = order[0].magnitude;
    for (size_t i = 0; i < n; i++)
        all += (double)order[i].magnitude * (double)order[i].magnitude;
    for (size_t cut = n; cut-- > 0 && bits == 2;) {
        double sum[2] = {0, 0}, lost = 0;
        for (size_t i = 0; i < n; i++)
            sum[i < cut] += (double)order[i].magnitude;
        const double a = sum[0] / (double)(n - cut);
        const double b = cut ? sum[1] / (double)cut : a;
        for (size_t i = 0; i < n; i++) {
            const double off = (double)order[i].magnitude - (i < cut ? b : a);
            lost += off * off;
        }
        if (!(lost < best - 1e-12 * all)) continue;
        best = lost;
        *lo = (float)a;
        *hi = (float)b;
    }
    free(order);
}

/* A block of values, as its receivers see them. */
static inline UNWATCHED void sim_block(float *v, size_t n, int bits)
{
    float lo, hi;
    const float last = (float)((1 << (bits - 1)) - 1);
    sim_levels(v, n, bits, &lo, &hi);
    const float step = (hi - lo) / last;
    for (size_t i = 0; i < n; i++) {
        float m = step > 0 ? floorf((fabsf(v[i]) - lo) / step + 0.5f) : 0;
        m = fminf(fmaxf(m, 0), last);
        v[i] = copysignf(lo + m * step, v[i]);
    }
}

/* Moves what a case sends of a parameter from x to sent; returns the bytes. */
static inline UNWATCHED size_t sim_record(const topk_case *t, float *x,
                                          float *sent, size_t n)
{
    size_t k = 0, blocks;
    size_t *at = calloc(n, sizeof *at);
    float *v = calloc(n, sizeof *v);
    const size_t chunk = t->chunk ? t->chunk : n;
    for (size_t b = 0; b < n; b += chunk) {
        const size_t m = n - b < chunk ? n - b : chunk;
        const size_t all = (size_t)(t->share * (double)m + 0.5);
        sim_topk(x + b, sent + b, m, all < 1 ? 1 : all);
    }
    for (size_t i = 0; i < n; i++)
        if (sent[i] != 0) v[k] = sent[i], at[k++] = i;
    blocks = (k + 255) / 256;
    for (size_t b = 0; b < k && t->bits < 32; b += 256)
        sim_block(v + b, k - b < 256 ? k - b : 256, t->bits);
    for (size_t j = 0; j < k; j++) {
        x[at[j]] = sent[at[j]] - v[j];
        sent[at[j]] = v[j];
    }
    free(at);
    free(v);
    return t->bits == 32
               ? 4 * k + (k * t->index_bits + 31) / 32 * 4
               : 8 * blocks +
                     (k * (t->index_bits + (size_t)t->bits) + 31) / 32 * 4;
}

enum { TOPK_N = 1000, TOPK_A = 700, TOPK_AT = 704, TOPK_B = 290 };

/* Two parameters with a gap between them, and one behind. Ties on purpose, and
 * no zeros. */
static inline UNWATCHED float topk_gradient(int r, int step, size_t i)
{
    const float g = gradient(r, step, i);
    return i % 3 ? g : (float)(int)(g * 4) * 0.25f + 0.125f;
}

static inline void suite_topk(tac_comm *comm, const topk_case *t)
{
    enum { STEPS = TESTS_SLOW ? 5 : 15 };
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    const tac_codec_part parts[] = {
        {.name = "a", .count = TOPK_A},
        {.name = "b", .offset = TOPK_AT, .count = TOPK_B},
        {.name = "none", .offset = TOPK_N}};
    const tac_codec_layout layout = {3, parts, 2.0};
    static float lost[RANKS_MOST][RANKS_MOST][TOPK_N]; /* [me]: threads */
    float x[TOPK_N], want[TOPK_N], sent[TOPK_N];
    double in[TOPK_N] = {0}, out[TOPK_N] = {0};
    size_t bytes = 0;
    tac_codec *c = codec_of(comm, t->spec);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_codec_stats stats;
    opt.codec = c;
    opt.layout = &layout;
    opt.postscale = 0.5;
    memset(lost[me], 0, sizeof lost[me]);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < TOPK_N; i++) want[i] = 0;
        for (int r = 0; r < p; r++) {
            float *l = lost[me][r];
            for (size_t i = 0; i < TOPK_N; i++) {
                l[i] = topk_gradient(r, step, i) * 1.0f + l[i] * 2.0f;
                if (i < TOPK_A || i - TOPK_AT < TOPK_B)
                    in[i] += 0.25 * (double)topk_gradient(r, step, i) / p;
                if (r == me) x[i] = topk_gradient(r, step, i);
            }
            bytes = 0;
            for (int q = 0; q < 2; q++) {
                const tac_codec_part *part = &parts[q];
                bytes += sim_record(t, l + part->offset, sent, part->count);
                for (size_t i = 0; i < part->count; i++)
                    want[part->offset + i] += sent[i];
            }
            for (size_t i = 0; i < TOPK_N; i++) l[i] /= 2.0f;
        }
        for (size_t i = 0; i < TOPK_N; i++) want[i] = want[i] / (float)p * 0.5f;
        if (!CHECK_OK(reduce_with(comm, x, x, TOPK_N, TAC_AVG, &opt))) break;
        expect_floats(x, want, TOPK_N, t->spec, me, step);
        for (size_t i = 0; i < TOPK_N; i++) out[i] += 0.5 * (double)x[i];
    }
    for (size_t i = 0; i < TOPK_N; i++) {
        double owed = 0;
        if (i >= TOPK_A && i - TOPK_AT >= TOPK_B) continue;
        for (int r = 0; r < p; r++) owed += 0.5 * (double)lost[me][r][i] / p;
        if (fabs(in[i] - out[i] - owed) > 1e-5) {
            CHECK_NEAR(in[i] - out[i], owed, 1e-5);
            break;
        }
    }
    tac_codec_stats_get(c, &stats);
    CHECK_EQ((long long)stats.calls, STEPS);
    CHECK_EQ((long long)stats.bytes_before, STEPS * TOPK_N * 4);
    CHECK_EQ((long long)stats.bytes_after, (long long)(STEPS * bytes));
    CHECK(stats.residual_norm > 0);
    CHECK_EQ((long long)tac_codec_wire_bytes(c, TOPK_N, &layout),
             (long long)bytes);
    tac_codec_destroy(c);
}

/* Few and many values, chunks that divide a parameter and that don't, one that
 * is longer than it. */
static inline void suite_topk_cases(tac_comm *comm)
{
    static const topk_case cases[] = {
        {"topk:0.1", 0.1, 32, 0, 32},
        {"topk:0.1,bits=8", 0.1, 8, 0, 32},
        {"topk:0.5,bits=4", 0.5, 4, 0, 32},
        {"topk:0.5,bits=2", 0.5, 2, 0, 32},
        {"topk:0.001,bits=2", 0.001, 2, 0, 32},
        {"topk:0.1,chunk=64", 0.1, 32, 64, 6},
        {"topk:0.1,chunk=64,bits=2", 0.1, 2, 64, 6},
        {"topk:0.5,chunk=16,bits=8", 0.5, 8, 16, 4},
        {"topk:0.015625,chunk=4096,bits=2", 0.015625, 2, 4096, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        suite_topk(comm, &cases[i]);
}

/* ---- powersgd -------------------------------------------------------------
 */

/* A view of a codec's state by name. */
typedef struct seek {
    const char *name;
    const void *data;
    size_t count;
} seek;

static inline tac_status seek_item(void *arg, const tac_state_item *item)
{
    seek *s = arg;
    if (strcmp(item->name, s->name) != 0) return TAC_OK;
    s->data = item->data;
    s->count = tac_state_item_count(item);
    return TAC_OK;
}

static inline const float *state_item(tac_codec *c, const char *name, size_t n)
{
    seek s = {name, NULL, 0};
    tac_state_visitor v = {seek_item, &s, NULL};
    CHECK_OK(tac_codec_visit(c, &v));
    CHECK_MSG(s.data && s.count == n, "state item %s: %zu, not %zu elements",
              name, s.count, n);
    return s.data;
}

enum { PR = 24, PC = 40, PRANK = 3, PN = PR * PC, PALL = PN + 16 };

/* Columns of a (n, r), made orthonormal. */
static inline UNWATCHED void sim_orthonormal(double *a, size_t n, size_t r)
{
    for (size_t j = 0; j < r; j++) {
        for (size_t pass = 0; pass < 2; pass++)
            for (size_t k = 0; k < j; k++) {
                double d = 0;
                for (size_t i = 0; i < n; i++) d += a[i * r + j] * a[i * r + k];
                for (size_t i = 0; i < n; i++) a[i * r + j] -= d * a[i * r + k];
            }
        double s = 0;
        for (size_t i = 0; i < n; i++) s += a[i * r + j] * a[i * r + j];
        for (size_t i = 0; i < n; i++) a[i * r + j] /= sqrt(s);
    }
}

/* One step on the mean matrix M: out = P P^T M, Q = M^T P. */
static inline UNWATCHED void sim_powersgd(const double *M, double *Q,
                                          double *out)
{
    double P[PR * PRANK] = {0};
    sim_orthonormal(Q, PC, PRANK);
    for (int i = 0; i < PR; i++)
        for (int j = 0; j < PRANK; j++)
            for (int k = 0; k < PC; k++)
                P[i * PRANK + j] += M[i * PC + k] * Q[k * PRANK + j];
    sim_orthonormal(P, PR, PRANK);
    memset(Q, 0, PC * PRANK * sizeof *Q);
    for (int i = 0; i < PR; i++)
        for (int j = 0; j < PRANK; j++)
            for (int k = 0; k < PC; k++)
                Q[k * PRANK + j] += M[i * PC + k] * P[i * PRANK + j];
    for (int i = 0; i < PR; i++)
        for (int k = 0; k < PC; k++) {
            out[i * PC + k] = 0;
            for (int j = 0; j < PRANK; j++)
                out[i * PC + k] += P[i * PRANK + j] * Q[k * PRANK + j];
        }
}

static inline void suite_powersgd(tac_comm *comm)
{
    enum { STEPS = 8, START = 2 };
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    const size_t shape[] = {PR, 4, PC / 4};
    const tac_codec_part parts[] = {{"w", 0, PN, 3, shape},
                                    {"b", PN, 16, 0, 0}};
    const tac_codec_layout layout = {2, parts, 4.0};
    tac_codec *c = codec_of(comm, "powersgd:3,min-rate=1,start=2,seed=5");
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    double Q[PC * PRANK], M[PN], R[PN] = {0}, out[PN];
    float x[PALL];
    tac_codec_stats stats;
    if (p == 1) {
        tac_codec_destroy(c);
        return;
    }
    CHECK_EQ_STR(tac_codec_spec(c), "powersgd:3,ef,seed=5,min-rate=1,start=2");
    CHECK_OK(tac_codec_expect(c, &layout));
    const float *q = state_item(c, "w.q", PC * PRANK);
    for (int k = 0; k < PC && q; k++)
        for (int j = 0; j < PRANK; j++) Q[k * PRANK + j] = q[j * PC + k];
    opt.codec = c;
    opt.layout = &layout;
    for (int step = 0; step < STEPS; step++) {
        double worst = 0, size = 0;
        float plain[PALL];
        for (int i = 0; i < PALL; i++) {
            double mean = 0;
            for (int r = 0; r < p; r++)
                mean += (double)gradient(r, step, (size_t)i) / p;
            if (i < PN) M[i] = mean + R[i];
            x[i] = plain[i] = 4.0f * gradient(me, step, (size_t)i);
        }
        CHECK_OK(reduce_with(comm, NULL, plain, PALL, TAC_AVG, NULL));
        if (!CHECK_OK(reduce_with(comm, x, x, PALL, TAC_AVG, &opt))) break;
        if (step < START) {
            expect_floats(x, plain, PALL, "powersgd start", me, step);
            continue;
        }
        expect_floats(x + PN, plain + PN, 16, "powersgd bias", me, step);
        sim_powersgd(M, Q, out);
        for (int i = 0; i < PN; i++) {
            R[i] = M[i] - out[i];
            size = fmax(size, fabs(out[i]));
            worst = fmax(worst, fabs(out[i] - (double)x[i] / 4));
        }
        CHECK_NEAR(worst, 0, 1e-4 * size);
    }
    const float *residual = state_item(c, "w.residual", PN);
    float mean[PN];
    double worst = 0;
    if (residual) {
        CHECK_OK(reduce_with(comm, residual, mean, PN, TAC_AVG, NULL));
        for (int i = 0; i < PN; i++)
            worst = fmax(worst, fabs(R[i] - (double)mean[i]));
        CHECK_NEAR(worst, 0, 1e-4);
    }
    tac_codec_stats_get(c, &stats);
    CHECK_EQ((long long)stats.calls_plain, START);
    CHECK_EQ((long long)stats.bytes_after,
             START * PALL * 4 + (STEPS - START) * 4 * ((PR + PC) * PRANK + 16));
    CHECK_EQ((long long)tac_codec_wire_bytes(c, PALL, &layout),
             4 * ((PR + PC) * PRANK + 16));
    tac_codec_destroy(c);
}

/* ---- nothing is lost ------------------------------------------------------
 */

/* What went in is what came out and what is still owed, whatever the algorithm
 * and wherever it keeps residuals: the mean of theirs, and the result's. */
/* What went in, less what came out, of a call whose gradients are scaled. */
static inline UNWATCHED void owed_add(double *rest, const float *x, size_t n,
                                      int p, int call)
{
    for (size_t i = 0; i < n; i++) {
        rest[i] -= (double)x[i] / 8;
        for (int r = 0; r < p; r++) rest[i] += (double)gradient(r, call, i) / p;
    }
}

static inline void suite_owed(tac_comm *comm, const char *spec)
{
    enum { N = TESTS_SLOW ? 9000 : 40000, CALLS = 10 };
    const int p = tac_comm_size(comm), me = tac_comm_rank(comm);
    float *x = calloc(N, sizeof *x), *owed = calloc(N, sizeof *owed);
    float *result = calloc(N, sizeof *result);
    double *rest = calloc(N, sizeof *rest), worst = 0;
    const tac_codec_part part = {.name = "w", .count = N};
    const tac_codec_layout layout = {1, &part, 8.0};
    tac_codec *c = codec_of(comm, spec);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.codec = c;
    opt.layout = &layout;
    for (int call = 0; call < CALLS; call++) {
        fill_rank(x, N, me, call);
        for (int i = 0; i < N; i++) x[i] *= 8.0f;
        CHECK_OK(reduce_with(comm, NULL, x, N, TAC_AVG, &opt));
        owed_add(rest, x, N, p, call);
    }
    const float *a = state_item(c, "w.residual", N);
    if (a) CHECK_OK(reduce_with(comm, a, owed, N, TAC_AVG, NULL));
    a = strncmp(spec, "topk", 4) ? state_item(c, "w.result", N) : NULL;
    if (a) CHECK_OK(reduce_with(comm, a, result, N, TAC_SUM, NULL));
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(rest[i] - (double)(owed[i] + result[i])));
    CHECK_MSG(worst < 2e-5, "%s: %g is neither sent nor owed", spec, worst);
    tac_codec_destroy(c);
    free(x);
    free(owed);
    free(result);
    free(rest);
}

/* ---- what is not finite ---------------------------------------------------
 */

static inline tac_status hash_item(void *arg, const tac_state_item *item)
{
    uint64_t *h = arg;
    *h = tac_hash_str(*h, item->name);
    if (item->dtype == TAC_F32)
        *h = tac_hash_bytes(*h, item->data,
                            tac_state_item_count(item) * sizeof(float));
    return TAC_OK;
}

/* Of residuals and warm starts. */
static inline uint64_t residual_hash(tac_codec *c)
{
    uint64_t h = TAC_HASH_INIT;
    tac_state_visitor v = {hash_item, &h, NULL};
    CHECK_OK(tac_codec_visit(c, &v));
    return h;
}

static inline void codec_call(tac_comm *comm, tac_codec *c, float *x, int step)
{
    static const size_t shape[] = {PR, PC};
    static const tac_codec_part parts[] = {{"w", 0, PN, 2, shape},
                                           {"b", PN, 16, 0, NULL}};
    static const tac_codec_layout layout = {2, parts, 1.0};
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.codec = c;
    opt.layout = &layout;
    fill_rank(x, PALL, tac_comm_rank(comm), step);
    if (step < 0 && tac_comm_rank(comm) == -step % tac_comm_size(comm))
        x[77] = step % 2 ? INFINITY : NAN;
    CHECK_OK(reduce_with(comm, NULL, x, PALL, TAC_AVG, &opt));
}

static const char *const stateful_specs[] = {
    "int8",
    "int8,stochastic,seed=9",
    "fp4",
    "fp4,stochastic,seed=9",
    "fp16,ef",
    "bf16,ef",
    "topk:0.05",
    "topk:0.05,min=20",
    "topk:0.2,bits=4",
    "topk:0.2,bits=2,chunk=64",
    "powersgd:2,start=0,min-rate=1",
    "powersgd:2,start=0,noef,min-rate=1"};
enum { STATEFUL = 12 };

static inline void suite_not_finite(tac_comm *comm, const char *spec)
{
    float x[PALL];
    tac_codec_stats s;
    tac_codec *c = codec_of(comm, spec);
    for (int step = 0; step < 3; step++) codec_call(comm, c, x, step);
    const uint64_t before = residual_hash(c);
    for (int step = -1; step > -4; step--) {
        codec_call(comm, c, x, step);
        int bad = 0;
        for (int i = 0; i < PALL; i++) bad += !isfinite(x[i]);
        CHECK_MSG(bad > 0, "%s: an infinity or NaN has become finite", spec);
        CHECK_EQ_U64(residual_hash(c), before);
    }
    codec_call(comm, c, x, 4);
    for (int i = 0; i < PALL; i++)
        if (!isfinite(x[i])) {
            CHECK_FAIL("%s: element %d stayed %g", spec, i, (double)x[i]);
            break;
        }
    tac_codec_stats_get(c, &s);
    CHECK_EQ((long long)s.calls_not_finite, 3);
    CHECK_EQ((long long)s.calls, 7);
    tac_codec_destroy(c);
}

/* ---- saved and loaded -----------------------------------------------------
 */

typedef struct saved {
    size_t n;
    struct {
        char name[64];
        size_t bytes;
        void *data;
    } item[64];
} saved;

static inline size_t item_bytes(const tac_state_item *item)
{
    return tac_state_item_count(item) * tac_dtype_size(item->dtype);
}

static inline tac_status save_item(void *arg, const tac_state_item *item)
{
    saved *s = arg;
    const size_t k = s->n++;
    snprintf(s->item[k].name, sizeof s->item[k].name, "%s", item->name);
    s->item[k].bytes = item_bytes(item);
    s->item[k].data = malloc(item_bytes(item));
    memcpy(s->item[k].data, item->data, item_bytes(item));
    return TAC_OK;
}

static inline tac_status load_item(void *arg, const tac_state_item *item)
{
    saved *s = arg;
    for (size_t k = 0; k < s->n; k++)
        if (strcmp(s->item[k].name, item->name) == 0) {
            CHECK_EQ((long long)s->item[k].bytes, (long long)item_bytes(item));
            memcpy(item->data, s->item[k].data, item_bytes(item));
            return TAC_OK;
        }
    CHECK_FAIL("state item %s was not saved", item->name);
    return TAC_OK;
}

static inline void suite_resume(tac_comm *comm, const char *spec)
{
    static const size_t shape[] = {PR, PC};
    const tac_codec_part parts[] = {{"b", 0, 16, 0, NULL},
                                    {"w", 0, PN, 2, shape}};
    const tac_codec_layout known = {2, parts, 1.0};
    float x[PALL], y[PALL];
    saved s = {0};
    tac_state_visitor save = {save_item, &s, NULL},
                      load = {load_item, &s, NULL};
    tac_codec *c = codec_of(comm, spec), *d = codec_of(comm, spec);
    for (int step = 0; step < 5; step++) codec_call(comm, c, x, step);
    CHECK_OK(tac_codec_visit(c, &save));
    CHECK_OK(tac_codec_expect(d, &known));
    CHECK_OK(tac_codec_visit(d, &load));
    CHECK_EQ_U64(residual_hash(d), residual_hash(c));
    for (int step = 5; step < 9; step++) {
        codec_call(comm, c, x, step);
        codec_call(comm, d, y, step);
        CHECK_EQ_MEM(x, y, sizeof x);
    }
    CHECK_EQ_U64(residual_hash(d), residual_hash(c));
    for (size_t k = 0; k < s.n; k++) free(s.item[k].data);
    tac_codec_destroy(c);
    tac_codec_destroy(d);
}

/* ---- other arrangements ---------------------------------------------------
 */

/* Residuals follow their parameters when buckets change. */
static inline void suite_moves(tac_comm *comm, const char *spec)
{
    static const size_t shape[] = {PR, PC};
    const tac_codec_part apart[] = {{"w", 0, PN, 2, shape}, {"b", 0, 16, 0, 0}};
    const tac_codec_part turned[] = {{"b", 0, 16, 0, NULL},
                                     {"w", 16, PN, 2, shape}};
    const tac_codec_layout two[] = {{1, &apart[0], 1.0}, {1, &apart[1], 1.0}};
    const tac_codec_layout one = {2, turned, 1.0};
    float x[PALL], *w, *b, want_w[PN], want_b[16];
    tac_codec *c = codec_of(comm, spec);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.codec = c;
    for (int step = 0; step < 3; step++) codec_call(comm, c, x, step);
    const float *rw = state_item(c, "w.residual", PN);
    const float *rb = state_item(c, "b.residual", 16);
    if (rw) memcpy(want_w, rw, sizeof want_w);
    if (rb) memcpy(want_b, rb, sizeof want_b);
    /* The bias alone: its residual moves, the other stays. */
    opt.layout = &two[1];
    fill_rank(x, 16, tac_comm_rank(comm), 9);
    CHECK_OK(reduce_with(comm, NULL, x, 16, TAC_AVG, &opt));
    rw = state_item(c, "w.residual", PN);
    if (rw) CHECK_EQ_MEM(rw, want_w, sizeof want_w);
    rb = state_item(c, "b.residual", 16);
    if (rb) memcpy(want_b, rb, sizeof want_b);
    /* Both in another order, with a result that leaves residuals alone. */
    opt.layout = &one;
    fill_rank(x, PALL, tac_comm_rank(comm), 10);
    w = x + 16, b = x;
    w[5] = b[3] = INFINITY;
    CHECK_OK(reduce_with(comm, NULL, x, PALL, TAC_AVG, &opt));
    rw = state_item(c, "w.residual", PN);
    if (rw) CHECK_EQ_MEM(rw, want_w, sizeof want_w);
    rb = state_item(c, "b.residual", 16);
    if (rb) CHECK_EQ_MEM(rb, want_b, sizeof want_b);
    tac_codec_destroy(c);
}

/* ---- all of it ------------------------------------------------------------
 */

/* A hash of every result: equal on all ranks and transports. */
static inline uint64_t suite_codec_bits(tac_comm *comm)
{
    uint64_t h = TAC_HASH_INIT;
    float x[PALL];
    for (int k = 0; k < STATEFUL; k++) {
        tac_codec *c = codec_of(comm, stateful_specs[k]);
        for (int step = 0; step < 6; step++) {
            codec_call(comm, c, x, step);
            h = tac_hash_bytes(h, x, sizeof x);
        }
        tac_codec_destroy(c);
    }
    uint64_t all[RANKS_MOST];
    tac_req *req = NULL;
    const tac_status s = tac_allgather(comm, &h, all, 1, TAC_I64, NULL, &req);
    CHECK_OK(s < 0 ? s : tac_wait(req, 0));
    for (int r = 0; r < tac_comm_size(comm); r++) CHECK_EQ_U64(all[r], h);
    return h;
}

static inline uint64_t suite_codecs(tac_comm *comm)
{
    suite_casts(comm);
    suite_promises(comm);
    if (tac_comm_size(comm) > 1) {
        wire_codec(comm, "fp16", &tac__wire_fp16, 0);
        wire_codec(comm, "int8,noef", &tac__wire_int8, 0);
        wire_codec(comm, "int8", &tac__wire_int8, 1);
        wire_codec(comm, "fp4,noef", &tac__wire_fp4, 0);
        wire_codec(comm, "fp4", &tac__wire_fp4, 1);
        wire_codec(comm, "fp16,ef", &tac__wire_fp16, 1);
        wire_codec(comm, "bf16,ef", &tac__wire_bf16, 1);
        suite_topk_cases(comm);
        suite_powersgd(comm);
        suite_owed(comm, "int8");
        suite_owed(comm, "int8,stochastic");
        suite_owed(comm, "fp4");
        suite_owed(comm, "fp4,stochastic");
        suite_owed(comm, "fp16,ef");
        suite_owed(comm, "topk:0.02");
        suite_owed(comm, "topk:0.02,bits=8");
        suite_owed(comm, "topk:0.015625,bits=2,chunk=4096");
        for (int k = 0; k < STATEFUL; k++) {
            suite_not_finite(comm, stateful_specs[k]);
            suite_resume(comm, stateful_specs[k]);
            if (k < STATEFUL - 1) suite_moves(comm, stateful_specs[k]);
        }
    }
    return suite_codec_bits(comm);
}

#endif
