/* comm_rows.h: the behaviours that peers' own test suites hold them to, on any
 * healthy communicator: rows of the table in reference/comm.md, section 5,
 * whose numbers are in the names. All ranks call rows_run. Each oracle is
 * computed here from the ranks' inputs. (What has to end poisoned is in the
 * programs themselves.) */
#ifndef COMM_ROWS_H
#define COMM_ROWS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm_elements.h"
#include "comm_impl.h"
#include "tac_check.h"
#include "tacit/comm.h"
#include "tacit/half.h"
#include "tacit/reducer.h"

enum { ROW_POISON = 0xA5 };

static inline tac_status row_wait(tac_status s, tac_req **req)
{
    return s < 0 ? s : tac_wait(*req, 0);
}

/* ---- elements of any dtype ------------------------------------------------
 */

/* What a dtype makes of a value that it is given. */
static inline UNWATCHED double row_round(tac_dtype t, double v)
{
    uint64_t x = 0;
    put_unwatched(&x, t, 0, v);
    return get_unwatched(&x, t, 0);
}

static inline UNWATCHED double row_reduce(tac_op op, double a, double b)
{
    switch (op) {
    case TAC_MIN: return b < a ? b : a;
    case TAC_MAX: return b > a ? b : a;
    case TAC_PROD: return a * b;
    default: return a + b;
    }
}

/* The mean as the header defines it. */
static inline UNWATCHED double row_mean(tac_dtype t, double sum, int p)
{
    if (t == TAC_F64) return sum / p;
    if (tac_dtype_is_float(t)) return (double)((float)sum / (float)p);
    return (double)((int64_t)sum / p);
}

/* The next algorithm of `coll` that can run here, by name; NULL after the last.
 * *at starts at 0. The first is always "any": an empty name. */
static inline const char *row_algorithm(const tac_comm *c, tac_coll coll,
                                        size_t *at)
{
    const tac_req like = {.comm = (tac_comm *)(uintptr_t)c,
                          .coll = coll,
                          .count = 1000,
                          .esize = 4,
                          .bytes_logical = 4000};
    if (*at == 0) {
        *at = 1;
        return "";
    }
    for (; tac__algs[*at - 1]; ++*at) {
        const tac__alg *a = tac__algs[*at - 1];
        if (a->coll != coll || !a->applicable(c, &like)) continue;
        ++*at;
        return a->name;
    }
    return NULL;
}

/* ---- row 1 ----------------------------------------------------------------
 */

/* Rank r fills x[k] = k P + r; the sum is exactly k P^2 + P (P - 1) / 2: every
 * algorithm, in place and not. */
static inline void row_1_exact_sums(tac_comm *c)
{
    static const size_t counts[] = {0, 1, 10, 64, 100, 1000, 10000};
    const int64_t p = tac_comm_size(c), me = tac_comm_rank(c);
    int64_t *src = malloc(10000 * 8), *dst = malloc(10000 * 8);
    size_t at = 0;
    if (!CHECK(src && dst)) return;
    for (const char *name; (name = row_algorithm(c, TAC_COLL_ALLREDUCE, &at));)
        for (size_t k = 0; k < 14; k++) {
            const size_t n = counts[k / 2], in_place = k % 2;
            tac_coll_opt opt = TAC_COLL_OPT_INIT;
            tac_req *req = NULL;
            size_t bad = 0;
            opt.algorithm = *name ? name : NULL;
            for (size_t i = 0; i < n; i++) src[i] = (int64_t)i * p + me;
            memset(dst, ROW_POISON, 80000);
            if (in_place) memcpy(dst, src, n * 8);
            CHECK_OK(row_wait(tac_allreduce(c, in_place ? dst : src, dst, n,
                                            TAC_I64, TAC_SUM, &opt, &req),
                              &req));
            for (size_t i = 0; i < n; i++)
                bad += dst[i] != (int64_t)i * p * p + p * (p - 1) / 2;
            CHECK_MSG(bad == 0, "row 1: %s, %zu elements: %zu wrong", name, n,
                      bad);
        }
    free(src);
    free(dst);
}

/* ---- row 12 ---------------------------------------------------------------
 */

/* -100..100, small enough for u8 where the sum has to be exact. */
static inline UNWATCHED double row_12_value(int rank, size_t i, tac_dtype t)
{
    const uint32_t h = ((uint32_t)i * 2654435761u + (uint32_t)rank * 97u) >> 8;
    return t == TAC_U8 ? (double)(h % 8) : (double)(h % 201) - 100;
}

/* Sums of integers that small are exact in every dtype but bf16 and f16, which
 * round once. */
static inline UNWATCHED double row_12_want(int p, size_t i, tac_dtype t,
                                           tac_op op, double pre, double post)
{
    double acc = 0;
    for (int r = 0; r < p; r++) {
        double x = row_12_value(r, i, t) * pre;
        if (!tac_dtype_is_float(t)) x = trunc(x);
        acc = r ? row_reduce(op, acc, x) : x;
    }
    if (op == TAC_AVG) acc = row_mean(t, acc, p);
    acc *= post;
    return row_round(t, tac_dtype_is_float(t) ? acc : trunc(acc));
}

static inline UNWATCHED void row_12_fill(void *x, size_t n, tac_dtype t, int r)
{
    for (size_t i = 0; i < n; i++)
        put_unwatched(x, t, i, row_12_value(r, i, t));
    watch_write(x, n * tac_dtype_size(t));
}

static inline UNWATCHED size_t row_12_wrong(const void *x, size_t n, int p,
                                            tac_dtype t, tac_op op, double pre,
                                            double post)
{
    size_t bad = 0;
    watch_read(x, n * tac_dtype_size(t));
    for (size_t i = 0; i < n; i++)
        bad += get_unwatched(x, t, i) != row_12_want(p, i, t, op, pre, post);
    return bad;
}

static inline void row_12_one(tac_comm *c, void *src, void *dst, size_t n,
                              tac_dtype t, tac_op op, double pre, double post)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    opt.prescale = pre;
    opt.postscale = post;
    row_12_fill(src, n, t, tac_comm_rank(c));
    memset(dst, ROW_POISON, n * tac_dtype_size(t));
    CHECK_OK(row_wait(tac_allreduce(c, src, dst, n, t, op, &opt, &req), &req));
    const size_t bad = row_12_wrong(dst, n, tac_comm_size(c), t, op, pre, post);
    CHECK_MSG(bad == 0, "row 12: %s of %s, %g x %g, %zu elements: %zu wrong",
              tac_op_name(op), tac_dtype_name(t), pre, post, n, bad);
}

/* All dtypes, 17, 17^2 and 17^3 elements; min and max exact; scales, integers
 * in f64 and f16 in f32. */
static inline void row_12_dtypes(tac_comm *c)
{
    static const tac_op ops[] = {TAC_SUM, TAC_AVG, TAC_MIN, TAC_MAX};
    void *src = malloc(4913 * 8), *dst = malloc(4913 * 8);
    if (!CHECK(src && dst)) return;
    for (int t = 0; t < TAC_DTYPE_COUNT; t++) {
        for (int o = 0; o < 4; o++)
            for (size_t n = 17; n <= 4913; n *= 17)
                row_12_one(c, src, dst, n, (tac_dtype)t, ops[o], 1, 1);
        if (t == TAC_U8) continue; /* wraps */
        row_12_one(c, src, dst, 289, (tac_dtype)t, TAC_SUM, 0.5, 1);
        row_12_one(c, src, dst, 289, (tac_dtype)t, TAC_SUM, 1, 0.25);
        row_12_one(c, src, dst, 289, (tac_dtype)t, TAC_SUM, 2, 0.5);
    }
    free(src);
    free(dst);
}

/* Rank 0 goes on when all others have called this. */
static inline void row_12_gate(tac_comm *c)
{
    const int rank = tac_comm_rank(c), p = tac_comm_size(c);
    float x = 0;
    tac_req *req = NULL;
    for (int r = 1; r < p; r++) {
        if (rank == 0)
            CHECK_OK(tac_recv(c, &x, 1, TAC_F32, r, NULL, &req));
        else if (rank == r)
            CHECK_OK(tac_send(c, &x, 1, TAC_F32, 0, NULL, &req));
        CHECK_OK(tac_wait(req, 0));
        req = NULL;
    }
}

/* Many under way: at least one is seen unfinished, because rank 0 enters the
 * last one only when the others have looked; all end well. */
static inline void row_12_async(tac_comm *c)
{
    enum { N = 40, COUNT = 5000 };
    static _Thread_local float x[N][COUNT];
    tac_req *req[N];
    int unfinished = 0;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < COUNT; i++) x[k][i] = (float)(k + i % 7);
        if (k == N - 1 && tac_comm_rank(c) == 0) row_12_gate(c);
        if (!CHECK_OK(tac_allreduce(c, NULL, x[k], COUNT, TAC_F32, TAC_SUM,
                                    NULL, &req[k])))
            return;
    }
    for (int k = N - 1; k >= 0; k--) {
        int done = 0;
        CHECK_OK(tac_test(req[k], &done));
        unfinished += !done;
    }
    if (tac_comm_rank(c) != 0) row_12_gate(c);
    for (int k = 0; k < N; k++) {
        CHECK_OK(tac_wait(req[k], 0));
        CHECK_EQ_F64(x[k][13], (float)(k + 13 % 7) * (float)tac_comm_size(c));
    }
    if (tac_comm_rank(c) != 0) CHECK(unfinished > 0);
}

/* ---- row 14 ---------------------------------------------------------------
 */

static inline UNWATCHED double row_14_want(int p, size_t i, tac_dtype t,
                                           tac_op op, double pre)
{
    double acc = 0;
    for (int r = 0; r < p; r++) {
        const double x = (double)((i + (size_t)r + 1) % 8) * pre;
        acc = r ? row_reduce(op, acc, x) : x;
    }
    return row_round(t, op == TAC_AVG ? row_mean(t, acc, p) : acc);
}

/* Products of more than a few ranks are not exact in 16 bits. */
static inline int row_14_exact(int p, tac_dtype t, tac_op op)
{
    return op != TAC_PROD || p <= (tac_dtype_size(t) > 2 ? 6 : 2);
}

static inline void row_14_one(tac_comm *c, void *src, void *dst, size_t n,
                              tac_dtype t, tac_op op, double pre)
{
    const int in_place = src == dst;
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    size_t bad = 0;
    opt.prescale = pre;
    if (!in_place) memset(dst, ROW_POISON, n * tac_dtype_size(t));
    for (size_t i = 0; i < n; i++)
        put(src, t, i, (double)((i + (size_t)tac_comm_rank(c) + 1) % 8));
    CHECK_OK(row_wait(tac_allreduce(c, src, dst, n, t, op, &opt, &req), &req));
    for (size_t i = 0; i < n; i++)
        bad += get(dst, t, i) != row_14_want(tac_comm_size(c), i, t, op, pre);
    CHECK_MSG(bad == 0, "row 14: %s of %s x %zu, %s, %g: #wrong %zu",
              tac_op_name(op), tac_dtype_name(t), n,
              in_place ? "in place" : "out of place", pre, bad);
}

/* (i + r + 1) % 8, every dtype and op, in and out of place, posted again and
 * again, on two teams; the number of wrong elements is 0. */
static inline void row_14_fill(tac_comm *c)
{
    enum { N = 1025 };
    void *src = malloc(N * 8), *dst = malloc(N * 8);
    tac_comm *team[2] = {c, NULL};
    if (!CHECK(src && dst) || !CHECK_OK(tac_comm_split(c, 0, 0, &team[1])))
        return;
    for (int t = 0; t < TAC_DTYPE_COUNT; t++)
        for (int op = 0; op < TAC_OP_COUNT; op++) {
            if (!row_14_exact(tac_comm_size(c), (tac_dtype)t, (tac_op)op) ||
                t == TAC_U8)
                continue;
            for (int again = 0; again < 4; again++)
                row_14_one(team[again % 2], src, again & 2 ? src : dst, N,
                           (tac_dtype)t, (tac_op)op, 1);
            if (op != TAC_PROD)
                row_14_one(c, src, dst, N, (tac_dtype)t, (tac_op)op, 2);
        }
    tac_comm_destroy(team[1]);
    free(src);
    free(dst);
}

/* ---- row 15 ---------------------------------------------------------------
 */

/* A (1, 3) tensor of rank + 1, exactly the sum. */
static inline void row_15_small_tensor(tac_comm *c)
{
    static const tac_dtype types[] = {TAC_F32, TAC_BF16, TAC_F16};
    const int p = tac_comm_size(c);
    for (int k = 0; k < 3; k++) {
        uint32_t x[3];
        tac_req *req = NULL;
        for (size_t i = 0; i < 3; i++)
            put(x, types[k], i, tac_comm_rank(c) + 1);
        CHECK_OK(row_wait(
            tac_allreduce(c, NULL, x, 3, types[k], TAC_SUM, NULL, &req), &req));
        for (size_t i = 0; i < 3; i++)
            CHECK_EQ_F64(get(x, types[k], i), p * (p + 1) / 2);
    }
}

#endif
