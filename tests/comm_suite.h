/* comm_suite.h: what every communicator must do, whatever its transport.
 *
 * All ranks call suite_run with their communicator; each checks its own results
 * against an oracle that it computes alone from the ranks' inputs, which are a
 * function of (rank, index). Integers and small multiples of a power of two are
 * compared exactly; random floats with a scalar loop in rank order, bit by bit.
 * Outputs are poisoned first and have guards behind them. Used by the batteries
 * with thread ranks and with forked ranks, and under mpirun. */
#ifndef COMM_SUITE_H
#define COMM_SUITE_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "comm_elements.h"
#include "comm_impl.h"
#include "tac_check.h"
#include "tac_sanitized.h"
#include "tacit/clock.h"
#include "tacit/comm.h"
#include "tacit/half.h"
#include "tacit/hash.h"
#include "tacit/rng.h"

enum { GUARD = 64, POISON = 0xA5 };

/* ---- buffers ----------------------------------------------------------------
 */

typedef enum memory { PLAIN = 0, SYMMETRIC, MIXED, MEMORIES } memory;

/* What a rank has to run the suite: arrays large enough for every case. */
typedef struct env {
    tac_comm *comm;
    int rank, p;
    size_t bytes;
    char *plain[2], *symmetric[2]; /* source, destination */
} env;

static inline UNWATCHED uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* Rank r's element i: small integers; 1 and 2 (and -1) for products, so that
 * every dtype holds the result exactly. */
static inline UNWATCHED double value(int r, size_t i, tac_op op, tac_dtype t)
{
    const uint32_t h =
        ((uint32_t)i * 2654435761u + (uint32_t)r * 2246822519u) >> 12;
    if (op == TAC_PROD) {
        const double x = r == 0 ? 1 : (double)(1 + (h & 1));
        return t == TAC_U8 || (h & 2) ? x : -x;
    }
    return t == TAC_U8 ? (double)(h % 8) : (double)(h % 15) - 7.0;
}

/* The reduction over ranks of element i, as the header defines it. */
static inline UNWATCHED double reduced(int p, size_t i, tac_op op, tac_dtype t)
{
    double acc = value(0, i, op, t);
    for (int r = 1; r < p; r++) {
        const double x = value(r, i, op, t);
        switch (op) {
        case TAC_PROD: acc *= x; break;
        case TAC_MIN: acc = x < acc ? x : acc; break;
        case TAC_MAX: acc = x > acc ? x : acc; break;
        default: acc += x; break;
        }
    }
    if (op != TAC_AVG) return acc;
    if (t == TAC_F64) return acc / p;
    if (tac_dtype_is_float(t)) return (double)((float)acc / (float)p);
    return (double)((int64_t)acc / p); /* toward zero */
}

static inline char *buffer(env *e, memory m, int which)
{
    const int sym = m == SYMMETRIC || (m == MIXED && e->rank % 2 == 0);
    return sym ? e->symmetric[which] : e->plain[which];
}

static inline UNWATCHED void fill(const env *e, char *x, size_t n, tac_dtype t,
                                  tac_op op)
{
    for (size_t i = 0; i < n; i++)
        put_unwatched(x, t, i, value(e->rank, i, op, t));
    watch_write(x, n * tac_dtype_size(t));
}

static inline void poison(char *x, size_t bytes)
{
    memset(x, POISON, bytes + GUARD);
}

static inline UNWATCHED int guarded(const char *x, size_t bytes)
{
    watch_read(x + bytes, GUARD);
    for (size_t i = 0; i < GUARD; i++)
        if ((unsigned char)x[bytes + i] != POISON) return 0;
    return 1;
}

/* The request by address: it is written while the arguments are evaluated. */
static inline tac_status finish(tac_status s, tac_req **req)
{
    return s < 0 ? s : tac_wait(*req, 0);
}

/* ---- reductions
 * --------------------------------------------------------------- */

typedef struct shape {
    tac_coll coll;
    tac_dtype dtype;
    tac_op op;
    size_t count;
    int in_place;
    memory memory;
    const char *algorithm;
    int root;
} shape;

static inline void describe(const env *e, const shape *s, char *buf, size_t n)
{
    snprintf(buf, n, "%s %s %s %s x %zu, %s, memory %d, %s, rank %d of %d",
             tac_comm_transport_name(e->comm), tac_coll_name(s->coll),
             tac_op_name(s->op), tac_dtype_name(s->dtype), s->count,
             s->in_place ? "in place" : "out of place", (int)s->memory,
             s->algorithm ? s->algorithm : "any algorithm", e->rank, e->p);
}

static inline UNWATCHED int same_bytes(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i == n;
}

/* First index where x differs from the oracle; n if none does. */
static inline UNWATCHED size_t first_wrong(const env *e, const shape *s,
                                           const char *x, size_t n,
                                           size_t offset)
{
    char want[8], zero[8] = {0};
    const size_t es = tac_dtype_size(s->dtype);
    watch_read(x, n * es);
    for (size_t i = 0; i < n; i++) {
        put_unwatched(want, s->dtype, 0,
                      reduced(e->p, i + offset, s->op, s->dtype));
        /* 0 and -0 are equal */
        if (!same_bytes(want, x + i * es, es) &&
            !(same_bytes(want, zero, es) && get_unwatched(x, s->dtype, i) == 0))
            return i;
    }
    return n;
}

static inline void check_shape(env *e, const shape *s, tac_status st,
                               const char *x, size_t n, size_t offset,
                               int guard_ok)
{
    char text[256];
    const size_t bad = st == TAC_OK ? first_wrong(e, s, x, n, offset) : 0;
    if (st == TAC_OK && bad == n && guard_ok) {
        CHECK(1);
        return;
    }
    describe(e, s, text, sizeof text);
    CHECK_FAIL("%s: %s, first wrong element %zu of %zu, guards %s", text,
               tac_status_name(st), bad, n, guard_ok ? "whole" : "broken");
}

static inline void run_allreduce(env *e, const shape *s)
{
    const size_t bytes = s->count * tac_dtype_size(s->dtype);
    char *dst = buffer(e, s->memory, 1);
    char *src = s->in_place ? dst : buffer(e, s->memory, 0);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    opt.algorithm = s->algorithm;
    poison(dst, bytes);
    fill(e, src, s->count, s->dtype, s->op);
    const tac_status st =
        finish(tac_allreduce(e->comm, s->in_place && s->count % 2 ? NULL : src,
                             dst, s->count, s->dtype, s->op, &opt, &req),
               &req);
    check_shape(e, s, st, dst, s->count, 0, guarded(dst, bytes));
}

static inline void run_reduce_scatter(env *e, const shape *s)
{
    const size_t bytes = s->count * tac_dtype_size(s->dtype);
    char *src = buffer(e, s->memory, 0);
    char *dst =
        s->in_place ? src + bytes * (size_t)e->rank : buffer(e, s->memory, 1);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    opt.algorithm = s->algorithm;
    poison(dst, bytes);
    poison(src, bytes * (size_t)e->p);
    fill(e, src, s->count * (size_t)e->p, s->dtype, s->op);
    const tac_status st =
        finish(tac_reduce_scatter(e->comm, src, dst, s->count, s->dtype, s->op,
                                  &opt, &req),
               &req);
    check_shape(e, s, st, dst, s->count, s->count * (size_t)e->rank,
                s->in_place ? guarded(src, bytes * (size_t)e->p)
                            : guarded(dst, bytes));
}

/* ---- copies
 * -------------------------------------------------------------------- */

static inline UNWATCHED unsigned char byte_of(int r, size_t i)
{
    return (unsigned char)mix((uint64_t)i * 64 + (uint64_t)r + 77);
}

static inline UNWATCHED void fill_bytes(char *x, size_t bytes, int r)
{
    for (size_t i = 0; i < bytes; i++) x[i] = (char)byte_of(r, i);
    watch_write(x, bytes);
}

static inline UNWATCHED size_t wrong_bytes(const char *x, size_t bytes, int r)
{
    size_t bad = 0;
    watch_read(x, bytes);
    for (size_t i = 0; i < bytes; i++)
        bad += (unsigned char)x[i] != byte_of(r, i);
    return bad;
}

static inline void check_bytes(env *e, const shape *s, tac_status st,
                               const char *x, int blocks, size_t bytes)
{
    char text[256];
    size_t bad = 0;
    for (int b = 0; b < blocks && st == TAC_OK; b++)
        bad += wrong_bytes(
            x + (size_t)b * bytes, bytes,
            blocks > 1 || s->coll == TAC_COLL_ALLGATHER ? b : s->root);
    if (st == TAC_OK && bad == 0 && guarded(x, bytes * (size_t)blocks)) {
        CHECK(1);
        return;
    }
    describe(e, s, text, sizeof text);
    CHECK_FAIL("%s: %s, %zu wrong bytes, guards %s", text, tac_status_name(st),
               bad, guarded(x, bytes * (size_t)blocks) ? "whole" : "broken");
}

static inline void run_allgather(env *e, const shape *s)
{
    const size_t bytes = s->count * tac_dtype_size(s->dtype);
    char *dst = buffer(e, s->memory, 1), *src = buffer(e, s->memory, 0);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    opt.algorithm = s->algorithm;
    if (s->in_place) src = dst + bytes * (size_t)e->rank;
    poison(dst, bytes * (size_t)e->p);
    fill_bytes(src, bytes, e->rank);
    const tac_status st =
        finish(tac_allgather(e->comm, s->in_place && s->count % 2 ? NULL : src,
                             dst, s->count, s->dtype, &opt, &req),
               &req);
    check_bytes(e, s, st, dst, e->p, bytes);
}

static inline void run_broadcast(env *e, const shape *s)
{
    const size_t bytes = s->count * tac_dtype_size(s->dtype);
    char *buf = buffer(e, s->memory, 1);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    opt.algorithm = s->algorithm;
    poison(buf, bytes);
    if (e->rank == s->root) fill_bytes(buf, bytes, s->root);
    const tac_status st = finish(
        tac_broadcast(e->comm, buf, s->count, s->dtype, s->root, &opt, &req),
        &req);
    check_bytes(e, s, st, buf, 1, bytes);
}

static inline void run_shape(env *e, const shape *s)
{
    tac_req *req = NULL;
    switch (s->coll) {
    case TAC_COLL_ALLREDUCE: run_allreduce(e, s); return;
    case TAC_COLL_REDUCE_SCATTER: run_reduce_scatter(e, s); return;
    case TAC_COLL_ALLGATHER: run_allgather(e, s); return;
    case TAC_COLL_BROADCAST: run_broadcast(e, s); return;
    default: CHECK_OK(finish(tac_barrier(e->comm, NULL, &req), &req)); return;
    }
}

/* ---- the plan
 * -------------------------------------------------------------------- */

enum { COUNTS = 7, BIG = TESTS_SLOW ? 20011 : 100003 };
static const size_t suite_counts[COUNTS] = {0, 1, 3, 17, 4095, 4096, BIG};

/* Every collective, dtype, op and count; memory and place vary along, so that
 * each combination of the small ones comes up. */
static inline void suite_all(env *e)
{
    unsigned n = 0;
    for (int coll = 0; coll < TAC_COLL_COUNT; coll++)
        for (int t = 0; t < TAC_DTYPE_COUNT; t++)
            for (int op = 0; op < TAC_OP_COUNT; op++)
                for (int k = 0; k < COUNTS; k++) {
                    shape s = {.coll = (tac_coll)coll,
                               .dtype = (tac_dtype)t,
                               .op = (tac_op)op,
                               .count = suite_counts[k]};
                    const int big = s.count == BIG;
                    const int once = s.count > (TESTS_SLOW ? 100 : 4096);
                    const int modes = 2 * MEMORIES;
                    s.root = (int)(n % (unsigned)e->p);
                    /* The big blocks of p ranks only for two dtypes. */
                    if (big && (coll != TAC_COLL_ALLREDUCE || TESTS_SLOW) &&
                        t != TAC_F32 && t != TAC_BF16)
                        continue;
                    if (coll >= TAC_COLL_ALLGATHER && op > 0) continue;
                    for (int m = 0; m < modes; m++) {
                        if (once && m != (int)(n % (unsigned)modes)) continue;
                        s.in_place = m & 1;
                        s.memory = (memory)(m / 2);
                        run_shape(e, &s);
                    }
                    n++;
                }
}

/* Every line of the table that fits, by name. */
static inline void suite_algorithms(env *e)
{
    for (size_t a = 0; tac__algs[a]; a++) {
        const tac_req like = {.coll = tac__algs[a]->coll};
        if (!tac__algs[a]->applicable(e->comm, &like)) continue;
        for (int m = 0; m < 2 * MEMORIES; m++) {
            shape s = {.coll = tac__algs[a]->coll,
                       .dtype = TAC_F32,
                       .count = 5000 + (size_t)m,
                       .in_place = m & 1,
                       .memory = (memory)(m / 2),
                       .algorithm = tac__algs[a]->name,
                       .root = m % e->p};
            run_shape(e, &s);
        }
    }
}

static inline void suite_random(env *e, int rounds)
{
    const tac_rng_key key = {11, TAC_STREAM_USER, 0};
    uint64_t at = 0;
    for (int i = 0; i < rounds; i++) {
        shape s = {0};
        s.coll = (tac_coll)tac_rng_below(&key, at++, TAC_COLL_COUNT);
        s.dtype = (tac_dtype)tac_rng_below(&key, at++, TAC_DTYPE_COUNT);
        s.op = (tac_op)tac_rng_below(&key, at++, TAC_OP_COUNT);
        s.count = tac_rng_below(&key, at++, 3000);
        s.in_place = (int)tac_rng_below(&key, at++, 2);
        s.memory = (memory)tac_rng_below(&key, at++, MEMORIES);
        s.root = (int)tac_rng_below(&key, at++, (uint64_t)e->p);
        run_shape(e, &s);
    }
}

static inline UNWATCHED void gloo_fill(int64_t *x, size_t n, const env *e)
{
    for (size_t k = 0; k < n; k++) x[k] = (int64_t)k * e->p + e->rank;
    watch_write(x, n * sizeof *x);
}

static inline UNWATCHED size_t gloo_wrong(const int64_t *x, size_t n, int64_t p)
{
    size_t bad = 0;
    watch_read(x, n * sizeof *x);
    for (size_t k = 0; k < n; k++)
        bad += x[k] != (int64_t)k * p * p + p * (p - 1) / 2;
    return bad;
}

/* x[k] = k p + r; the sum is k p^2 + p (p - 1) / 2. */
static inline void suite_gloo(env *e)
{
    static const size_t counts[] = {0, 1, 10, 100, 1000, 10000};
    for (size_t c = 0; c < 6; c++)
        for (int in_place = 0; in_place < 2; in_place++) {
            int64_t *dst = (void *)e->plain[1];
            int64_t *src = in_place ? dst : (void *)e->plain[0];
            tac_req *req = NULL;
            poison((char *)dst, counts[c] * 8);
            gloo_fill(src, counts[c], e);
            CHECK_OK(finish(tac_allreduce(e->comm, src, dst, counts[c], TAC_I64,
                                          TAC_SUM, NULL, &req),
                            &req));
            CHECK_EQ((long long)gloo_wrong(dst, counts[c], e->p), 0);
            CHECK(guarded((char *)dst, counts[c] * 8));
        }
}

/* ---- scales
 * -------------------------------------------------------------------- */

static inline double scaled_oracle(int p, tac_dtype t, tac_op op, double pre,
                                   double post)
{
    const int real = tac_dtype_is_float(t);
    double acc = 0;
    for (int r = 0; r < p; r++) {
        const double x = (r + 1) * pre;
        acc += real ? x : (double)(int64_t)x;
    }
    if (op == TAC_AVG) acc = real ? acc / p : (double)((int64_t)acc / p);
    return real ? acc * post : (double)(int64_t)(acc * post);
}

/* Scales that every dtype takes exactly, over a power of two of ranks; integers
 * are truncated where the header says. */
static inline void suite_scales(env *e)
{
    static const double scales[][2] = {
        {0.5, 1}, {1, 0.25}, {2.5, 1}, {0.5, 3}, {2.5, 0.4}};
    for (size_t k = 0; k < 5; k++)
        for (int t = 0; t < TAC_DTYPE_COUNT; t++)
            for (int avg = 0; avg < 2; avg++) {
                tac_coll_opt opt = TAC_COLL_OPT_INIT;
                tac_req *req = NULL;
                char got[32 * 8], scratch[32 * 8];
                const tac_op op = avg ? TAC_AVG : TAC_SUM;
                opt.prescale = scales[k][0];
                opt.postscale = scales[k][1];
                for (size_t i = 0; i < 32; i++)
                    put(scratch, (tac_dtype)t, i, e->rank + 1);
                memset(got, POISON, sizeof got);
                CHECK_OK(finish(tac_allreduce(e->comm, scratch, got, 32,
                                              (tac_dtype)t, op, &opt, &req),
                                &req));
                const double want = scaled_oracle(e->p, (tac_dtype)t, op,
                                                  scales[k][0], scales[k][1]);
                const double tol = t == TAC_F64 ? 1e-12
                                   : tac_dtype_is_float((tac_dtype)t)
                                       ? fabs(want) / (t == TAC_F32 ? 4e6 : 250)
                                       : 0;
                for (size_t i = 0; i < 32; i += 31)
                    CHECK_NEAR(get(got, (tac_dtype)t, i), want, tol);
            }
}

/* Integers wrap, averages do not; halves neither overflow nor underflow. */
static inline void suite_edges(env *e)
{
    tac_req *req = NULL;
    uint8_t b[3] = {200, 255, 1}, out[3] = {9, 9, 9};
    CHECK_OK(finish(
        tac_allreduce(e->comm, b, out, 3, TAC_U8, TAC_SUM, NULL, &req), &req));
    CHECK_EQ(out[0], (uint8_t)(200 * e->p));
    CHECK_EQ(out[1], (uint8_t)(255 * e->p));
    CHECK_OK(finish(
        tac_allreduce(e->comm, b, out, 3, TAC_U8, TAC_AVG, NULL, &req), &req));
    CHECK_EQ(out[0], 200);
    CHECK_EQ(out[1], 255);
    int64_t big[2] = {INT64_MAX, -7}, sum[2] = {0, 0};
    CHECK_OK(finish(
        tac_allreduce(e->comm, big, sum, 2, TAC_I64, TAC_SUM, NULL, &req),
        &req));
    CHECK_EQ(sum[0], (int64_t)((uint64_t)INT64_MAX * (uint64_t)e->p));
    CHECK_EQ(sum[1], -7 * e->p);
    uint16_t h[4] = {tac_f32_to_f16(32768), tac_f32_to_f16(30000), 1,
                     tac_f32_to_f16(65504)};
    uint16_t avg[4] = {0};
    CHECK_OK(finish(
        tac_allreduce(e->comm, h, avg, 4, TAC_F16, TAC_AVG, NULL, &req), &req));
    for (int i = 0; i < 4; i++) CHECK_EQ_U64(avg[i], h[i]);
    float nan[3] = {e->rank == e->p - 1 ? NAN : 1, 2, 3}, top[3] = {0};
    CHECK_OK(finish(
        tac_allreduce(e->comm, nan, top, 3, TAC_F32, TAC_MAX, NULL, &req),
        &req));
    CHECK(top[0] != top[0]);
    CHECK_EQ_F64(top[1], 2);
}

/* ---- bits
 * ----------------------------------------------------------------------- */

/* Rank r's float i: 24 random bits and exponents from 2^-20 to 2^20, so that
 * the order of a sum shows. */
static inline UNWATCHED float wild(int r, size_t i)
{
    const uint64_t h = mix((uint64_t)i * 64 + (uint64_t)r + 12345);
    const float m = (float)(int64_t)(h & 0xffffff) - 8388608.0f;
    return ldexpf(m, (int)(h >> 32) % 40 - 40);
}

static inline UNWATCHED void bits_fill(char *x, size_t n, tac_dtype t, int r)
{
    for (size_t i = 0; i < n; i++) put_unwatched(x, t, i, (double)wild(r, i));
    watch_write(x, n * tac_dtype_size(t));
}

/* Elements that are not the bits of a scalar loop in rank order. */
static inline UNWATCHED size_t bits_wrong(const char *x, size_t n, tac_dtype t,
                                          int p)
{
    char want[8];
    size_t bad = 0;
    watch_read(x, n * tac_dtype_size(t));
    for (size_t i = 0; i < n; i++) {
        volatile float acc = 0;
        for (int r = 0; r < p; r++) {
            put_unwatched(want, t, 0, (double)wild(r, i));
            const float y = (float)get_unwatched(want, t, 0);
            acc = r ? acc + y : y;
        }
        put_unwatched(want, t, 0, (double)acc);
        bad += !same_bytes(want, x + i * tac_dtype_size(t), tac_dtype_size(t));
    }
    return bad;
}

/* Sums of such floats: the bits of a scalar loop in rank order, which is what
 * shared memory and "direct" give. Returns a hash of all results, to compare
 * transports and chunk sizes by. */
static inline uint64_t suite_bits(env *e)
{
    static const size_t counts[] = {5, 1000, TESTS_SLOW ? 9001 : 70001};
    static const tac_dtype dtypes[] = {TAC_F32, TAC_F16, TAC_BF16};
    uint64_t h = TAC_HASH_INIT;
    for (int k = 0; k < 9; k++) {
        const size_t n = counts[k % 3];
        const tac_dtype t = dtypes[k / 3];
        char *src = e->plain[0], *dst = e->plain[1];
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        if (!e->comm->domain && e->p > 1) opt.algorithm = "direct";
        bits_fill(src, n, t, e->rank);
        poison(dst, n * 4);
        CHECK_OK(finish(
            tac_allreduce(e->comm, src, dst, n, t, TAC_SUM, &opt, &req), &req));
        CHECK_EQ((long long)bits_wrong(dst, n, t, e->p), 0);
        h = tac_hash_bytes(h, dst, n * tac_dtype_size(t));
    }
    return h;
}

/* The same of every allreduce algorithm that adds in rank order, by name. */
static inline void suite_bits_by_name(env *e)
{
    enum { N = 3001 };
    for (size_t a = 0; tac__algs[a]; a++) {
        const tac_req like = {.coll = TAC_COLL_ALLREDUCE};
        if (tac__algs[a]->coll != TAC_COLL_ALLREDUCE ||
            tac__algs[a]->reorders || !tac__algs[a]->applicable(e->comm, &like))
            continue;
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        char *x = e->plain[0];
        opt.algorithm = tac__algs[a]->name;
        bits_fill(x, N, TAC_F32, e->rank);
        CHECK_OK(finish(
            tac_allreduce(e->comm, x, x, N, TAC_F32, TAC_SUM, &opt, &req),
            &req));
        const size_t bad = bits_wrong(x, N, TAC_F32, e->p);
        CHECK_MSG(bad == 0, "%s: %zu wrong bits", opt.algorithm, bad);
    }
}

/* ---- several at a time
 * ----------------------------------------------------------- */

enum { FLIGHTS = 6 };

static inline void suite_outstanding(env *e)
{
    tac_req *req[FLIGHTS];
    int32_t x[FLIGHTS][33];
    for (int k = 0; k < FLIGHTS; k++) {
        for (int i = 0; i < 33; i++) x[k][i] = (e->rank + 1) * (k + 1) + i;
        CHECK_OK(tac_allreduce(e->comm, NULL, x[k], 33, TAC_I32, TAC_SUM, NULL,
                               &req[k]));
    }
    int done = 0;
    tac_status s = TAC_OK;
    while (!done && s == TAC_OK) {
        s = tac_test(req[FLIGHTS - 1], &done);
        sched_yield();
    }
    CHECK_OK(s);
    for (int k = FLIGHTS - 1; k >= 0; k--) CHECK_OK(tac_wait(req[k], 0));
    for (int k = 0; k < FLIGHTS; k++)
        for (int i = 0; i < 33; i += 16)
            CHECK_EQ(x[k][i], (k + 1) * e->p * (e->p + 1) / 2 + i * e->p);
}

static inline UNWATCHED void set_all(float *x, size_t n, float v)
{
    for (size_t i = 0; i < n; i++) x[i] = v;
    watch_write(x, n * sizeof *x);
}

/* Two communicators, waited for in opposite orders by odd and even ranks. */
static inline void suite_two_comms(env *e)
{
    enum { N = 20000 };
    tac_comm *other = NULL;
    if (!CHECK_OK(tac_comm_split(e->comm, 0, 0, &other))) return;
    float *a = (void *)e->plain[0], *b = (void *)e->plain[1];
    for (int round = 0; round < 10; round++) {
        tac_req *ra = NULL, *rb = NULL;
        set_all(a, N, 1);
        set_all(b, N, (float)e->rank);
        CHECK_OK(tac_allreduce(e->comm, a, a, N, TAC_F32, TAC_SUM, NULL, &ra));
        CHECK_OK(tac_allreduce(other, b, b, N, TAC_F32, TAC_MAX, NULL, &rb));
        if (e->rank % 2) {
            CHECK_OK(tac_wait(ra, 0));
            CHECK_OK(tac_wait(rb, 0));
        } else {
            CHECK_OK(tac_wait(rb, 0));
            CHECK_OK(tac_wait(ra, 0));
        }
        CHECK_EQ_F64(a[N - 1], e->p);
        CHECK_EQ_F64(b[N - 1], e->p - 1);
    }
    tac_comm_destroy(other);
}

static inline void check_group(tac_comm *c, int rank, int size, int sum)
{
    tac_req *req = NULL;
    int32_t x = rank;
    CHECK_EQ(tac_comm_rank(c), rank);
    CHECK_EQ(tac_comm_size(c), size);
    CHECK_OK(finish(tac_allreduce(c, NULL, &x, 1, TAC_I32, TAC_SUM, NULL, &req),
                    &req));
    CHECK_EQ(x, sum);
}

static inline void suite_split(env *e)
{
    tac_comm *half = NULL, *none = (tac_comm *)(void *)e, *alone = NULL;
    const int odd = e->rank % 2, size = (e->p + !odd) / 2;
    const int place = size - 1 - e->rank / 2; /* by key, backwards */
    if (!CHECK_OK(tac_comm_split(e->comm, odd, -e->rank, &half))) return;
    check_group(half, place, size, size * (size - 1) / 2);
    CHECK_OK(tac_comm_split(e->comm, e->rank == 0 ? -1 : 3, 0, &none));
    CHECK((none == NULL) == (e->rank == 0));
    if (none)
        check_group(none, e->rank - 1, e->p - 1, (e->p - 1) * (e->p - 2) / 2);
    CHECK_OK(tac_comm_split(half, place, 0, &alone)); /* a child's child */
    check_group(alone, 0, 1, 0);
    CHECK_EQ_STR(tac_comm_transport_name(alone), "self");
    tac_comm_destroy(half); /* before its child */
    check_group(alone, 0, 1, 0);
    tac_comm_destroy(alone);
    tac_comm_destroy(none);
}

/* ---- what must be refused
 * ---------------------------------------------------------- */

static inline void suite_arguments(env *e)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float x[8] = {0};
    tac_comm *c = e->comm;
    CHECK_STATUS(tac_allreduce(c, x, NULL, 4, TAC_F32, TAC_SUM, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_allreduce(c, x, x + 1, 4, TAC_F32, TAC_SUM, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(
        tac_allreduce(c, x, x, SIZE_MAX / 2, TAC_F32, TAC_SUM, NULL, &req),
        TAC_ERR_ARG);
    CHECK_STATUS(tac_allreduce(c, x, x, 4, (tac_dtype)99, TAC_SUM, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_allreduce(c, x, x, 4, TAC_F32, (tac_op)9, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_broadcast(c, x, 4, TAC_F32, e->p, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_allreduce(c, x, x, 4, TAC_F32, TAC_SUM, NULL, NULL),
                 TAC_ERR_ARG);
    opt.wire_dtype = TAC_I32;
    CHECK_STATUS(tac_allreduce(c, x, x, 4, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    opt.wire_dtype = TAC_WIRE_SAME;
    opt.algorithm = "telepathy";
    CHECK_STATUS(tac_allreduce(c, x, x, 4, TAC_F32, TAC_SUM, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    CHECK(req == NULL);
    CHECK_OK(tac_wait(NULL, 0));
    CHECK_OK(tac_comm_error(c, NULL, 0));
}

/* More memory than there is: refused on all ranks, nothing is poisoned. */
static inline void suite_memory(env *e)
{
    void *p = e, *q = NULL;
    CHECK_STATUS(tac_mem_alloc(e->comm, (size_t)1 << 50, &p), TAC_ERR_NOMEM);
    CHECK(p == e);
    if (e->p > 1)
        CHECK_STATUS(tac_mem_alloc(e->comm, e->rank ? 100 : 101, &p),
                     TAC_ERR_MISMATCH);
    CHECK_OK(tac_mem_alloc(e->comm, 0, &q));
    tac_mem_free(e->comm, q);
    CHECK_OK(tac_mem_alloc(e->comm, 1000, &q));
    CHECK(((uintptr_t)q & 63u) == 0);
    for (int i = 0; i < 1000; i += 333) CHECK_EQ(((char *)q)[i], 0);
    tac_mem_free(e->comm, q);
    tac_mem_free(e->comm, NULL);
    CHECK_OK(tac_comm_error(e->comm, NULL, 0));
}

/* ---- statistics
 * --------------------------------------------------------------------- */

static inline void suite_stats(env *e)
{
    tac_comm_stats s;
    tac_req *req = NULL;
    float *x = (void *)e->plain[0];
    memset(x, 0, 4000);
    tac_comm_stats_reset(e->comm);
    for (int i = 0; i < 3; i++)
        CHECK_OK(finish(
            tac_allreduce(e->comm, x, x, 1000, TAC_F32, TAC_SUM, NULL, &req),
            &req));
    CHECK_OK(finish(tac_barrier(e->comm, NULL, &req), &req));
    tac_comm_stats_get(e->comm, &s);
    const tac_comm_op_stats *a = &s.op[TAC_COLL_ALLREDUCE];
    CHECK_EQ((long long)a->calls, 3);
    CHECK_EQ((long long)a->bytes_logical, 12000);
    CHECK_EQ((long long)a->bytes_wire, 12000);
    CHECK((a->bytes_between_hosts == 0) == (tac_comm_hosts(e->comm) == 1));
    CHECK_EQ((long long)s.op[TAC_COLL_BARRIER].calls, 1);
    CHECK_EQ((long long)s.total.calls, 4);
    CHECK(a->busy_s > 0 && a->wait_s >= 0 && a->wait_s <= a->busy_s + 1e-6);
    CHECK(a->cpu_s >= 0 && s.op[TAC_COLL_BROADCAST].calls == 0);
}

/* ---- all of it
 * ----------------------------------------------------------------------- */

static inline int env_open(env *e, tac_comm *comm)
{
    *e = (env){
        .comm = comm, .rank = tac_comm_rank(comm), .p = tac_comm_size(comm)};
    e->bytes = (size_t)BIG * 8 * (size_t)e->p + GUARD;
    for (int i = 0; i < 2; i++) {
        void *p = NULL;
        e->plain[i] = malloc(e->bytes);
        if (!CHECK_OK(tac_mem_alloc(comm, e->bytes, &p))) return 0;
        e->symmetric[i] = p;
        if (!CHECK(e->plain[i] != NULL)) return 0;
    }
    return 1;
}

static inline void env_close(env *e)
{
    for (int i = 0; i < 2; i++) {
        free(e->plain[i]);
        tac_mem_free(e->comm, e->symmetric[i]);
    }
}

/* Returns the hash of suite_bits. */
static inline uint64_t suite_run(tac_comm *comm, int random_rounds)
{
    env e;
    uint64_t bits = 0;
    if (!env_open(&e, comm)) return 0;
    suite_all(&e);
    suite_algorithms(&e);
    suite_bits_by_name(&e);
    suite_random(&e, random_rounds);
    suite_gloo(&e);
    suite_scales(&e);
    suite_edges(&e);
    bits = suite_bits(&e);
    suite_outstanding(&e);
    suite_two_comms(&e);
    suite_split(&e);
    suite_arguments(&e);
    suite_memory(&e);
    suite_stats(&e);
    env_close(&e);
    return bits;
}

/* Some of it, where there are many ranks: returns the same. */
static inline uint64_t suite_run_brief(tac_comm *comm, int random_rounds)
{
    env e;
    if (!env_open(&e, comm)) return 0;
    suite_algorithms(&e);
    suite_bits_by_name(&e);
    suite_random(&e, random_rounds);
    suite_split(&e);
    const uint64_t bits = suite_bits(&e);
    env_close(&e);
    return bits;
}

/* The bits only: another transport or chunk size has to give the same. */
static inline uint64_t suite_run_bits(tac_comm *comm)
{
    env e;
    if (!env_open(&e, comm)) return 0;
    const uint64_t bits = suite_bits(&e);
    env_close(&e);
    return bits;
}

#endif
