/* comm_algorithms.h: what every algorithm of the table must do, by name: exact
 * results for every dtype, op and count, in and out of place; the order of its
 * additions and the number of its roundings; wire formats and error feedback;
 * the bytes it sends between hosts. All ranks call these with their
 * communicator. */
#ifndef COMM_ALGORITHMS_H
#define COMM_ALGORITHMS_H

#include "comm_suite.h"
#include "levels.h"

/* ---- which ------------------------------------------------------------------
 */

static inline int alg_fits(const tac_comm *c, const tac__alg *a, const shape *s)
{
    const tac_req like = {.coll = s->coll,
                          .comm = (tac_comm *)(uintptr_t)c,
                          .dtype = s->dtype,
                          .esize = tac_dtype_size(s->dtype),
                          .op = s->op,
                          .count = s->count,
                          .prescale = 1,
                          .postscale = 1};
    return a->coll == s->coll && !(c->config.deterministic && a->reorders) &&
           a->applicable(c, &like);
}

/* A sparse half of all shapes would do; small counts get all of them. */
static inline void alg_shapes(env *e, const tac__alg *a, unsigned thin)
{
    static const size_t counts[] = {0, 1, 3, 17, 1000, 4095, 4097};
    unsigned n = 0;
    for (int t = 0; t < TAC_DTYPE_COUNT; t++)
        for (int op = 0; op < TAC_OP_COUNT; op++)
            for (int k = 0; k < 14; k++) {
                shape s = {.coll = a->coll,
                           .dtype = (tac_dtype)t,
                           .op = (tac_op)op,
                           .count = counts[k / 2],
                           .in_place = k & 1,
                           .algorithm = a->name,
                           .root = (int)(n % (unsigned)e->p)};
                const int moves = a->coll == TAC_COLL_ALLGATHER ||
                                  a->coll == TAC_COLL_BROADCAST;
                if ((moves && op > 0) || a->coll == TAC_COLL_BARRIER) continue;
                if (n++ % thin && !(t == TAC_F32 && op == TAC_SUM)) continue;
                if (alg_fits(e->comm, a, &s)) run_shape(e, &s);
            }
}

/* `thin` leaves out all but every thin-th shape. */
static inline void alg_all(env *e, unsigned thin)
{
    for (size_t i = 0; tac__algs[i]; i++) alg_shapes(e, tac__algs[i], thin);
}

/* ---- order ------------------------------------------------------------------
 */

typedef float alg_order_fn(const env *e, size_t n, size_t i);

static inline UNWATCHED float order_ranks(const env *e, size_t n, size_t i)
{
    (void)n;
    volatile float acc = wild(0, i);
    for (int r = 1; r < e->p; r++) acc = acc + wild(r, i);
    return acc;
}

/* From the rank that the element's slice begins at. */
static inline UNWATCHED float order_ring(const env *e, size_t n, size_t i)
{
    const size_t p = (size_t)e->p, even = (n + p - 1) / p;
    const size_t slice = i / ((even + 15) / 16 * 16);
    volatile float acc = wild((int)slice, i);
    for (size_t k = 1; k < p; k++) acc = acc + wild((int)((slice + k) % p), i);
    return acc;
}

/* Even neighbours of the first extra ones are added to the odd. */
static inline UNWATCHED int fold_leaves(const env *e, size_t i, float *leaf)
{
    int p2 = 1, n = 0;
    while (p2 * 2 <= e->p) p2 *= 2;
    const int extra = e->p - p2;
    for (int r = 0; r < e->p; r++) {
        if (r >= 2 * extra) {
            leaf[n++] = wild(r, i);
        } else if (r % 2) {
            volatile float acc = wild(r - 1, i) + wild(r, i);
            leaf[n++] = acc;
        }
    }
    return p2;
}

static inline UNWATCHED float order_neighbours(const env *e, size_t n, size_t i)
{
    float leaf[64];
    (void)n;
    for (int m = fold_leaves(e, i, leaf); m > 1; m /= 2)
        for (int k = 0; k < m / 2; k++) {
            volatile float acc = leaf[2 * k] + leaf[2 * k + 1];
            leaf[k] = acc;
        }
    return leaf[0];
}

static inline UNWATCHED float order_halves(const env *e, size_t n, size_t i)
{
    float leaf[64];
    (void)n;
    for (int m = fold_leaves(e, i, leaf) / 2; m > 0; m /= 2)
        for (int k = 0; k < m; k++) {
            volatile float acc = leaf[k] + leaf[k + m];
            leaf[k] = acc;
        }
    return leaf[0];
}

/* Hosts by their lowest rank, ranks of a host in order. */
static inline UNWATCHED float order_hosts(const env *e, size_t n, size_t i)
{
    const tac__hello *peers = e->comm->peers;
    volatile float all = 0;
    int hosts = 0;
    (void)n;
    for (int r = 0; r < e->p; r++) {
        int first = 1;
        for (int q = 0; q < r; q++) first &= peers[q].host != peers[r].host;
        if (!first) continue;
        volatile float acc = wild(r, i);
        for (int q = r + 1; q < e->p; q++)
            if (peers[q].host == peers[r].host) acc = acc + wild(q, i);
        all = hosts++ ? all + acc : acc;
    }
    return all;
}

static inline alg_order_fn *order_of(const char *name)
{
    if (strcmp(name, "ring") == 0) return order_ring;
    if (strcmp(name, "recursive_doubling") == 0) return order_neighbours;
    if (strcmp(name, "rabenseifner") == 0) return order_halves;
    if (strcmp(name, "hierarchical") == 0) return order_hosts;
    return order_ranks;
}

static inline UNWATCHED size_t order_wrong(const env *e, const float *x,
                                           size_t n, alg_order_fn *order)
{
    size_t bad = 0;
    watch_read(x, n * sizeof *x);
    for (size_t i = 0; i < n; i++) bad += x[i] != order(e, n, i);
    return bad;
}

/* Sums of floats in which the order shows, bit for bit. */
static inline void alg_order(env *e)
{
    enum { N = 3001 };
    float *x = (void *)e->plain[0];
    for (size_t a = 0; tac__algs[a]; a++) {
        const shape s = {.coll = TAC_COLL_ALLREDUCE,
                         .dtype = TAC_F32,
                         .count = N,
                         .algorithm = tac__algs[a]->name};
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        if (!alg_fits(e->comm, tac__algs[a], &s)) continue;
        /* Between many hosts its cross algorithm has an order of its own. */
        if (strcmp(s.algorithm, "hierarchical") == 0 && e->comm->hosts > 2)
            continue;
        opt.algorithm = s.algorithm;
        bits_fill(e->plain[0], N, TAC_F32, e->rank);
        CHECK_OK(finish(
            tac_allreduce(e->comm, x, x, N, TAC_F32, TAC_SUM, &opt, &req),
            &req));
        const size_t bad = order_wrong(e, x, N, order_of(s.algorithm));
        CHECK_MSG(bad == 0, "%s: %zu of %d wrong bits on rank %d of %d",
                  s.algorithm, bad, N, e->rank, e->p);
    }
}

/* ---- rounding ---------------------------------------------------------------
 */

/* 2^11, odd multiples of 2^-11, and -2^11 at the end: exact in f32 in any
 * order, lost if anything is rounded to 16 bits on its way. */
static inline UNWATCHED float adversarial(const env *e, int r, size_t i)
{
    const int top = (int)(i % (size_t)(e->p - 1));
    if (r == e->p - 1) return -2048.0f;
    if (r == top) return 2048.0f;
    return (float)(int)(2 * ((i + (size_t)r) % 3) + 1) * 0x1p-11f;
}

static inline UNWATCHED void rounding_fill(const env *e, void *x, size_t n,
                                           tac_dtype t)
{
    for (size_t i = 0; i < n; i++)
        put_unwatched(x, t, i, (double)adversarial(e, e->rank, i));
    watch_write(x, n * sizeof(uint16_t));
}

static inline UNWATCHED size_t rounding_wrong(const env *e, const uint16_t *x,
                                              size_t n, tac_dtype t)
{
    size_t bad = 0;
    watch_read(x, n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        uint16_t want;
        double sum = 0;
        for (int r = 0; r < e->p; r++) sum += (double)adversarial(e, r, i);
        put_unwatched(&want, t, 0, sum);
        bad += want != x[i];
    }
    return bad;
}

/* Of 16-bit elements: one rounding, wherever the additions are made. */
static inline void alg_rounding(env *e)
{
    enum { N = 700 };
    uint16_t *x = (void *)e->plain[0], *y = (void *)e->plain[1];
    if (e->p < 2) return;
    for (size_t a = 0; tac__algs[a]; a++)
        for (int t = 0; t < TAC_DTYPE_COUNT; t++) {
            const shape s = {.coll = TAC_COLL_ALLREDUCE,
                             .dtype = (tac_dtype)t,
                             .count = N,
                             .algorithm = tac__algs[a]->name};
            tac_coll_opt opt = TAC_COLL_OPT_INIT;
            tac_req *req = NULL;
            if ((t != TAC_F16 && t != TAC_BF16) ||
                !alg_fits(e->comm, tac__algs[a], &s) ||
                strcmp(s.algorithm, "hierarchical") == 0)
                continue;
            opt.algorithm = s.algorithm;
            rounding_fill(e, x, N, s.dtype);
            CHECK_OK(finish(
                tac_allreduce(e->comm, x, y, N, s.dtype, TAC_SUM, &opt, &req),
                &req));
            const size_t bad = rounding_wrong(e, y, N, s.dtype);
            CHECK_MSG(bad == 0, "%s %s: %zu of %d wrong on rank %d of %d",
                      s.algorithm, tac_dtype_name(s.dtype), bad, N, e->rank,
                      e->p);
        }
}

/* Averages near both ends of f16, on every path. */
static inline void alg_averages(env *e)
{
    static const uint16_t bits[] = {1, 0x7bff, 0x7800, 0x7753, 0x0400, 0xfbff};
    enum { N = 6 };
    for (size_t a = 0; tac__algs[a]; a++) {
        const shape s = {.coll = TAC_COLL_ALLREDUCE,
                         .dtype = TAC_F16,
                         .op = TAC_AVG,
                         .count = N,
                         .algorithm = tac__algs[a]->name};
        tac_coll_opt opt = TAC_COLL_OPT_INIT;
        tac_req *req = NULL;
        uint16_t y[N] = {0};
        if (!alg_fits(e->comm, tac__algs[a], &s)) continue;
        opt.algorithm = s.algorithm;
        CHECK_OK(finish(
            tac_allreduce(e->comm, bits, y, N, TAC_F16, TAC_AVG, &opt, &req),
            &req));
        for (size_t i = 0; i < N; i++)
            CHECK_MSG(y[i] == bits[i], "%s: average of %04x is %04x",
                      s.algorithm, bits[i], y[i]);
    }
}

/* ---- wire formats -----------------------------------------------------------
 */

static inline tac_status alg_submit(env *e, const char *name, const void *src,
                                    void *dst, size_t n, tac_op op,
                                    const tac__wire *wire,
                                    const tac__feedback *f)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    tac_req want = {.coll = TAC_COLL_ALLREDUCE,
                    .src = src,
                    .dst = dst,
                    .count = n,
                    .dtype = TAC_F32,
                    .op = op,
                    .wire = wire,
                    .bytes_logical = n * 4};
    if (f) want.feedback = *f;
    opt.algorithm = name;
    return finish(tac__coll_submit(e->comm, &want, &opt, &req), &req);
}

static inline int alg_takes(env *e, const tac__alg *a, const tac__wire *wire,
                            const tac__feedback *f)
{
    tac_req like = {.coll = TAC_COLL_ALLREDUCE,
                    .comm = e->comm,
                    .dtype = TAC_F32,
                    .esize = 4,
                    .count = 1000,
                    .prescale = 1,
                    .postscale = 1,
                    .wire = wire};
    if (f) like.feedback = *f;
    return a->coll == TAC_COLL_ALLREDUCE &&
           !(e->comm->config.deterministic && a->reorders) &&
           a->applicable(e->comm, &like);
}

/* The same bits on all ranks: their hashes are gathered. */
static inline void alg_same_bits(env *e, const char *what, const void *x,
                                 size_t bytes)
{
    uint64_t all[64], mine = tac_hash_bytes(TAC_HASH_INIT, x, bytes);
    tac_req *req = NULL;
    CHECK_OK(finish(tac_allgather(e->comm, &mine, all, 8, TAC_U8, NULL, &req),
                    &req));
    for (int r = 0; r < e->p; r++)
        CHECK_MSG(all[r] == mine, "%s: ranks %d and %d differ", what, r,
                  e->rank);
}

static inline UNWATCHED float wire_value(int r, size_t i)
{
    return (float)value(r, i, TAC_SUM, TAC_F32) * 0.37f;
}

static inline UNWATCHED void wire_fill(float *x, float *y, size_t n, int r)
{
    for (size_t i = 0; i < n; i++) x[i] = y[i] = wire_value(r, i);
    watch_write(x, n * sizeof *x);
    watch_write(y, n * sizeof *y);
}

/* The largest error of an average; NaN if one is. */
static inline UNWATCHED double wire_worst(const float *y, size_t n, int p)
{
    double worst = 0;
    watch_read(y, n * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        double want = 0;
        for (int r = 0; r < p; r++) want += (double)wire_value(r, i);
        const double off = fabs((double)y[i] - want / p);
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

/* Within the error that so many roundings may have. */
static inline void alg_wire(env *e, const char *name, const tac__wire *wire,
                            size_t n, int in_place)
{
    float *x = (void *)e->plain[0], *y = (void *)e->plain[1];
    const double eps = wire == &tac__wire_fp4    ? 1.0 / 3
                       : wire == &tac__wire_int8 ? 1.0 / 127
                                                 : 0x1p-8;
    const double size = n > 0 ? 7 * 0.37 : 0;
    char what[64];
    snprintf(what, sizeof what, "%s %s x %zu", name, wire->name, n);
    wire_fill(x, y, n, e->rank);
    CHECK_OK(alg_submit(e, name, in_place ? y : x, y, n, TAC_AVG, wire, NULL));
    const double worst = wire_worst(y, n, e->p);
    if (tac_comm_error(e->comm, NULL, 0) < 0) {
        char text[TAC__ERROR];
        tac_comm_error(e->comm, text, sizeof text);
        printf("%s: %s\n", what, text);
    }
    CHECK_MSG(worst <= size * eps * (e->p + 1) && worst == worst,
              "%s: error %g of %g", what, worst, size);
    alg_same_bits(e, what, y, n * 4);
    {
        char text[TAC__ERROR];
        if (tac_comm_error(e->comm, text, sizeof text) < 0) {
            printf("%s: %s\n", what, text);
            exit(9);
        }
    }
}

static inline void alg_wires(env *e)
{
    static const size_t counts[] = {0, 1, 255, 1025, 20011};
    const tac__wire *const wires[] = {&tac__wire_fp16, &tac__wire_bf16,
                                      &tac__wire_int8, &tac__wire_fp4};
    for (size_t a = 0; tac__algs[a]; a++)
        for (int w = 0; w < 4; w++)
            for (int k = 0; k < 5; k++)
                if (alg_takes(e, tac__algs[a], wires[w], NULL))
                    alg_wire(e, tac__algs[a]->name, wires[w], counts[k], k % 2);
}

static inline UNWATCHED float feedback_value(int r, size_t i)
{
    return (float)(mix(i * 64 + (uint64_t)r) % 10007) * 1e-3f;
}

static inline UNWATCHED void feedback_fill(float *x, size_t n, int r)
{
    for (size_t i = 0; i < n; i++) x[i] = feedback_value(r, i);
    watch_write(x, n * sizeof *x);
}

/* Adds the errors of one step, a share of them to mean[i]; returns the sum of
 * their sizes. */
static inline UNWATCHED double feedback_add(double *mean, const float *y,
                                            size_t n, int p, int steps)
{
    double size = 0;
    watch_read(y, n * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        double want = 0;
        for (int r = 0; r < p; r++) want += (double)feedback_value(r, i);
        mean[i] += ((double)y[i] - want) / steps;
        size += fabs((double)y[i] - want);
    }
    return size;
}

/* What is lost in one step is sent in the next: the mean of many results comes
 * closer to the truth than one. */
static inline void alg_feedback(env *e)
{
    enum { N = 5000, STEPS = 16 };
    float *x = (void *)e->plain[0], *y = (void *)e->plain[1];
    float *lost[2] = {calloc(N, 4), calloc(N, 4)};
    float *sums[2] = {calloc(N, 4), calloc(N, 4)};
    double *mean = calloc(N, sizeof *mean);
    for (size_t a = 0; tac__algs[a]; a++) {
        const char *name = tac__algs[a]->name;
        tac__feedback f = {lost[0], lost[1], sums[0], sums[1], 1, {0, 0}};
        double once = 0, all = 0;
        if (e->p == 1 || !alg_takes(e, tac__algs[a], &tac__wire_int8, &f))
            continue;
        for (int k = 0; k < 2; k++) {
            memset(lost[k], 0, N * 4);
            memset(sums[k], 0, N * 4);
        }
        memset(mean, 0, N * sizeof *mean);
        feedback_fill(x, N, e->rank);
        for (int step = 0; step < STEPS; step++) {
            f.old = lost[step % 2], f.next = lost[1 - step % 2];
            f.sum_old = sums[step % 2], f.sum_next = sums[1 - step % 2];
            CHECK_OK(
                alg_submit(e, name, x, y, N, TAC_SUM, &tac__wire_int8, &f));
            const double off = feedback_add(mean, y, N, e->p, STEPS);
            if (step == 0) once = off;
        }
        for (size_t i = 0; i < N; i++) all += fabs(mean[i]);
        CHECK_MSG(all < once / 4, "%s: error of the mean %g, of one %g", name,
                  all / N, once / N);
    }
    for (int k = 0; k < 2; k++) {
        free(lost[k]);
        free(sums[k]);
    }
    free(mean);
}

/* ---- bytes ------------------------------------------------------------------
 */

static inline uint64_t sent_by_all(env *e, const char *name, size_t n)
{
    tac_comm_stats s;
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    uint64_t sum = 0;
    float *x = (void *)e->plain[0];
    opt.algorithm = name;
    tac_comm_stats_reset(e->comm);
    CHECK_OK(finish(
        tac_allreduce(e->comm, x, x, n, TAC_F32, TAC_SUM, &opt, &req), &req));
    tac_comm_stats_get(e->comm, &s);
    sum = s.op[TAC_COLL_ALLREDUCE].bytes_between_hosts;
    int64_t mine = (int64_t)sum, total = 0;
    CHECK_OK(finish(
        tac_allreduce(e->comm, &mine, &total, 1, TAC_I64, TAC_SUM, NULL, &req),
        &req));
    return (uint64_t)total;
}

/* Exactly what all ranks together send across, for equal hosts of `k` ranks in
 * blocks and a count that divides evenly. */
static inline void alg_bytes(env *e, int k)
{
    const uint64_t p = (uint64_t)e->p, h = p / (uint64_t)k;
    const size_t n = (size_t)p * 16384;
    const uint64_t bytes = n * 4;
    memset(e->plain[0], 0, n * 4);
    CHECK_EQ_U64(sent_by_all(e, "direct", n),
                 2 * bytes / p * p * (p - (uint64_t)k));
    CHECK_EQ_U64(sent_by_all(e, "ring", n), 2 * bytes / p * (p - 1) * h);
    if (e->comm->levels)
        CHECK_EQ_U64(sent_by_all(e, "hierarchical", n), 2 * bytes * (h - 1));
}

#endif
