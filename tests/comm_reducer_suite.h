/* comm_reducer_suite.h: what a reducer must do, over any communicator.
 *
 * Every function is called by all ranks of `e->comm`, in the same order; each
 * rank checks its own results against a closed form or a float64 oracle that
 * it computes alone. Used by tests/battery (ranks are threads) and tests/mpi.
 *
 * Exactness: values are multiples of the number of ranks and small, so that
 * sums and averages are integers that every dtype represents. */
#ifndef COMM_REDUCER_SUITE_H
#define COMM_REDUCER_SUITE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm_elements.h"
#include "tac_check.h"
#include "tacit/half.h"
#include "tacit/hash.h"
#include "tacit/reducer.h"
#include "tacit/rng.h"
#include "agree.h"
#include "reducer_impl.h"

enum { MAXP = 16, TIMEOUT_MS = 20000 };

typedef struct env {
    tac_comm *comm;
    tac_context *ctx;
    int rank, world;
} env;

typedef enum memory { OURS = 0, THEIRS, THEIRS_SYMMETRIC, MEMORIES } memory;

static inline env env_make(tac_comm *comm)
{
    return (env){comm, tac_comm_context(comm), tac_comm_rank(comm),
                 tac_comm_size(comm)};
}

/* ---- random choices that all ranks (or each its own) make -----------------
 */

typedef struct dice {
    tac_rng_key key;
    uint64_t at;
} dice;

static inline dice dice_make(uint64_t seed)
{
    return (dice){{seed, TAC_STREAM_USER, 0}, 0};
}

static inline size_t roll(dice *d, size_t bound)
{
    return (size_t)tac_rng_below(&d->key, d->at++, bound);
}

static inline void shuffle(dice *d, size_t *order, size_t n)
{
    for (size_t i = 0; i < n; ++i) order[i] = i;
    for (size_t i = n; i > 1; --i) {
        const size_t j = roll(d, i), t = order[j];
        order[j] = order[i - 1];
        order[i - 1] = t;
    }
}

/* ---- a model: a list of parameters and perhaps an arena -------------------
 */

typedef struct model {
    size_t n;
    tac_param_desc d[MAXP];
    char names[MAXP][32];
    memory where;
    void *arena;
    size_t arena_bytes;
    tac_reducer_config config;
} model;

static inline void model_arena(env *e, model *m)
{
    size_t at = 0, place[MAXP];
    for (size_t i = 0; i < m->n; ++i) {
        place[i] = at;
        at += (m->d[i].count * tac_dtype_size(m->d[i].dtype) + 63) / 64 * 64;
    }
    m->arena_bytes = at ? at : 64;
    if (m->where == THEIRS_SYMMETRIC)
        CHECK_OK(tac_mem_alloc(e->comm, m->arena_bytes, &m->arena));
    else
        m->arena = aligned_alloc(64, m->arena_bytes);
    memset(m->arena, 0, m->arena_bytes);
    for (size_t i = 0; i < m->n; ++i)
        m->d[i].grad = m->d[i].count ? (char *)m->arena + place[i] : NULL;
    m->config.arena = m->arena;
    m->config.arena_bytes = m->arena_bytes;
}

static inline void model_make(env *e, model *m, memory where, size_t n,
                              const size_t *counts, const tac_dtype *dtypes)
{
    memset(m, 0, sizeof *m);
    m->config = (tac_reducer_config)TAC_REDUCER_CONFIG_INIT;
    m->where = where;
    m->n = n;
    for (size_t i = 0; i < n; ++i) {
        snprintf(m->names[i], sizeof m->names[i], "p%zu.grad", i);
        m->d[i] = (tac_param_desc){.name = m->names[i],
                                   .count = counts[i],
                                   .dtype = dtypes ? dtypes[i] : TAC_F32};
    }
    if (where != OURS) model_arena(e, m);
}

static inline void model_free(env *e, model *m)
{
    if (m->where == THEIRS_SYMMETRIC)
        tac_mem_free(e->comm, m->arena);
    else
        free(m->arena);
}

static inline void *grad(tac_reducer *r, size_t i)
{
    void *p = NULL;
    CHECK_OK(tac_reducer_grad_ptr(r, i, &p));
    return p;
}

static inline tac_reducer *make(env *e, const model *m)
{
    tac_reducer *r = NULL;
    CHECK_OK(tac_reducer_create(e->comm, m->d, m->n, &m->config, &r));
    return r;
}

/* Element k of parameter i on `rank` in micro-step `step`: a small multiple of
 * the number of ranks. */
static inline UNWATCHED double value(const env *e, int rank, int step, size_t i,
                                     size_t k)
{
    const int small =
        (int)((k * 7 + i * 3 + (size_t)rank * 5 + (size_t)step * 11) % 9) - 4;
    return (double)(small * e->world);
}

static inline UNWATCHED double mean_value(const env *e, int step, size_t i,
                                          size_t k)
{
    double sum = 0;
    for (int q = 0; q < e->world; ++q) sum += value(e, q, step, i, k);
    return sum / e->world;
}

static inline UNWATCHED void fill(env *e, tac_reducer *r, const model *m,
                                  int step, size_t i)
{
    void *g = grad(r, i);
    for (size_t k = 0; k < m->d[i].count; ++k)
        put_unwatched(g, m->d[i].dtype, k, value(e, e->rank, step, i, k));
    watch_write(g, m->d[i].count * tac_dtype_size(m->d[i].dtype));
}

/* All means are right; says where the first is not. */
static inline UNWATCHED int means(env *e, tac_reducer *r, const model *m,
                                  int step)
{
    for (size_t i = 0; i < m->n; ++i) {
        const void *g = grad(r, i);
        watch_read(g, m->d[i].count * tac_dtype_size(m->d[i].dtype));
        for (size_t k = 0; k < m->d[i].count; ++k) {
            const double got = get_unwatched(g, m->d[i].dtype, k),
                         want = mean_value(e, step, i, k);
            if (got == want) continue;
            return CHECK_MSG(0, "rank %d of %d, p%zu[%zu] %s: %g, not %g",
                             e->rank, e->world, i, k,
                             tac_dtype_name(m->d[i].dtype), got, want);
        }
    }
    return CHECK(1);
}

/* One step with sync in the order given (NULL: as listed). */
static inline tac_status one_step(env *e, tac_reducer *r, const model *m,
                                  int step, const size_t *order)
{
    TAC_TRY(tac_reducer_begin(r, 1, 1.0));
    for (size_t k = 0; k < m->n; ++k) {
        const size_t i = order ? order[k] : k;
        fill(e, r, m, step, i);
        TAC_TRY(tac_reducer_ready(r, i, NULL));
    }
    return tac_reducer_finish(r, TIMEOUT_MS);
}

static inline const char *last_error(env *e, char *buf, size_t bytes)
{
    (void)tac_context_error(e->ctx, buf, bytes);
    return buf;
}

static inline int error_has(env *e, const char *part)
{
    char text[2048];
    last_error(e, text, sizeof text);
    return CHECK_MSG(strstr(text, part) != NULL,
                     "rank %d: \"%s\" not in \"%s\"", e->rank, part, text);
}

/* Do all ranks have the same bits? */
static inline void same_everywhere(env *e, uint64_t hash)
{
    uint64_t all[64] = {0};
    CHECK_OK(tac__comm_exchange(e->comm, &hash, all, sizeof hash));
    for (int q = 0; q < e->world; ++q) CHECK_EQ_U64(all[q], all[0]);
}

static inline uint64_t hash_grads(tac_reducer *r, const model *m)
{
    uint64_t h = TAC_HASH_INIT;
    for (size_t i = 0; i < m->n; ++i)
        h = tac_hash_bytes(h, grad(r, i),
                           m->d[i].count * tac_dtype_size(m->d[i].dtype));
    return h;
}

/* ---- the tests ------------------------------------------------------------
 */

static const size_t odd_counts[] = {7, 0, 1, 33, 64, 5, 0, 129, 2, 1000};
enum { ODD = 10 };

static inline void test_means(env *e)
{
    static const tac_dtype types[ODD] = {TAC_F32, TAC_F32,  TAC_F16, TAC_F64,
                                         TAC_F32, TAC_BF16, TAC_I32, TAC_I32,
                                         TAC_F32, TAC_F32};
    for (int where = 0; where < MEMORIES; ++where) {
        model m;
        model_make(e, &m, (memory)where, ODD, odd_counts, types);
        m.config.first_bucket_bytes = 100;
        m.config.bucket_bytes = 300;
        tac_reducer *r = make(e, &m);
        if (!r) return;
        for (int step = 0; step < 4; ++step) {
            size_t order[MAXP];
            dice d = dice_make((uint64_t)(100 * step + e->rank));
            shuffle(&d, order, m.n);
            CHECK_OK(one_step(e, r, &m, step, order));
            means(e, r, &m, step);
        }
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* Sums that overflow or round if anything but FP32 accumulates, or if a 16-bit
 * value is rounded on the way. */
static inline void test_exact_means(env *e)
{
    static const tac_dtype types[] = {TAC_F32, TAC_F16, TAC_BF16, TAC_F32};
    static const size_t counts[] = {37, 37, 37, 1};
    const double values[] = {30000.0, 32768.0};
    for (int v = 0; v < 2; ++v)
        for (int where = 0; where < MEMORIES; ++where) {
            model m;
            model_make(e, &m, (memory)where, 4, counts, types);
            tac_reducer *r = make(e, &m);
            CHECK_OK(tac_reducer_begin(r, 1, 1.0));
            for (size_t i = 0; i < 4; ++i) {
                const double x = types[i] == TAC_BF16 ? 32768.0 : values[v];
                void *g = grad(r, i);
                for (size_t k = 0; k < counts[i]; ++k) put(g, types[i], k, x);
                CHECK_OK(tac_reducer_ready(r, i, NULL));
            }
            CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
            for (size_t i = 0; i < 4; ++i) {
                const double x = types[i] == TAC_BF16 ? 32768.0 : values[v];
                int ok = 1;
                for (size_t k = 0; k < counts[i]; ++k)
                    ok &= get(grad(r, i), types[i], k) == x;
                CHECK_MSG(ok, "mean of %g as %s", x, tac_dtype_name(types[i]));
            }
            tac_reducer_destroy(r);
            model_free(e, &m);
        }
}

static inline double noise(int rank, size_t i, size_t k)
{
    const tac_rng_key key = {5, TAC_STREAM_USER, (uint64_t)rank * 100 + i};
    return tac_rng_uniform(&key, k) * 2e-3 - 1e-3;
}

enum {
    BITS = 7,
    BITS_BIG = TESTS_TSAN ? 29001 : 290001, /* more than a bucket */
    BITS_BUCKET = TESTS_TSAN ? 104857 : 1 << 20,
    BITS_TOTAL = 3000 + 1 + BITS_BIG + 17 + 5003 + 64
};
static const size_t bits_counts[BITS] = {3000, 1, BITS_BIG, 17, 0, 5003, 64};

/* One step of `r` with the gradients in `mine`, in random order; the result is
 * copied to `out`. */
static inline void bits_step(env *e, tac_reducer *r, const float *mine,
                             float *out, uint64_t seed)
{
    size_t order[BITS], at[BITS + 1] = {0};
    dice d = dice_make(seed + (uint64_t)e->rank);
    shuffle(&d, order, BITS);
    for (size_t i = 0; i < BITS; ++i) at[i + 1] = at[i] + bits_counts[i];
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    for (size_t j = 0; j < BITS; ++j) {
        const size_t i = order[j];
        if (bits_counts[i])
            memcpy(grad(r, i), mine + at[i], bits_counts[i] * sizeof *mine);
        CHECK_OK(tac_reducer_ready(r, i, NULL));
    }
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    for (size_t i = 0; i < BITS; ++i)
        if (bits_counts[i])
            memcpy(out + at[i], grad(r, i), bits_counts[i] * sizeof *out);
}

/* The float64 mean of a sample of elements, within rounding. */
static inline void bits_oracle(env *e, const float *got)
{
    for (size_t k = 0; k < bits_counts[2]; k += BITS_BIG / 29) {
        double sum = 0;
        for (int q = 0; q < e->world; ++q) sum += (double)(float)noise(q, 2, k);
        CHECK_NEAR(got[3001 + k], sum / e->world, 1e-9);
    }
}

/* Message algorithms may add in another order for another size. */
static inline int adds_in_rank_order(const tac_comm *comm)
{
    const char *name = tac_comm_transport_name(comm);
    return tac_comm_config_of(comm)->deterministic ||
           (strcmp(name, "mpi") != 0 && strcmp(name, "ucx") != 0);
}

/* Real-valued gradients: the same bits for every memory, order of readiness and
 * bucket size, before and after the rebuild, and on all ranks. */
static inline void test_same_bits(env *e)
{
    static const size_t sizes[] = {BITS_BUCKET / 100, BITS_BUCKET,
                                   (size_t)25 * BITS_BUCKET};
    const size_t bytes = BITS_TOTAL * sizeof(float);
    float *mine = malloc(bytes), *first = malloc(bytes), *out = malloc(bytes);
    for (size_t i = 0, at = 0; i < BITS; ++i)
        for (size_t k = 0; k < bits_counts[i]; ++k)
            mine[at++] = (float)noise(e->rank, i, k);
    for (int run = 0; run < 6; ++run) {
        model m;
        model_make(e, &m, (memory)(run % MEMORIES), BITS, bits_counts, NULL);
        m.config.first_bucket_bytes = m.config.bucket_bytes = sizes[run / 2];
        tac_reducer *r = make(e, &m);
        for (int step = 0; step < 2; ++step) {
            memset(out, 0xff, bytes);
            bits_step(e, r, mine, run + step ? out : first,
                      (uint64_t)(1000 * run + 100 * step));
            if (run + step) CHECK_EQ_MEM(out, first, bytes);
        }
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
    bits_oracle(e, first);
    same_everywhere(e, tac_hash_bytes(TAC_HASH_INIT, first, bytes));
    free(mine);
    free(first);
    free(out);
}

/* Accumulation: three steps without sync and one with it, across the rebuild,
 * equal the sum that one process would form; bytes and calls are exact. */
static inline void test_accumulation(env *e)
{
    for (int where = 0; where < MEMORIES; ++where) {
        model m;
        model_make(e, &m, (memory)where, ODD, odd_counts, NULL);
        m.config.first_bucket_bytes = 100;
        m.config.bucket_bytes = 300;
        tac_reducer *r = make(e, &m);
        tac_reducer_stats s;
        CHECK_OK(one_step(e, r, &m, 0, NULL));
        tac_reducer_stats_get(r, &s);
        const uint64_t calls = s.total.calls;
        /* Gradients hold the first mean; the group adds to it. */
        for (int step = 1; step <= 4; ++step) {
            CHECK_OK(tac_reducer_begin(r, step == 4, 1.0));
            for (size_t i = 0; i < m.n; ++i) {
                void *g = grad(r, i);
                for (size_t k = 0; k < m.d[i].count; ++k)
                    put(g, TAC_F32, k,
                        get(g, TAC_F32, k) + value(e, e->rank, step, i, k));
                CHECK_OK(tac_reducer_ready(r, i, NULL));
            }
            CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
            tac_reducer_stats_get(r, &s);
            CHECK_EQ_U64(s.total.steps, step == 4 ? 2 : 1);
            if (step < 4) CHECK_EQ_U64(s.total.calls, calls);
        }
        CHECK_EQ(s.rebuilt, where == OURS);
        size_t with_elements = 0;
        for (size_t b = 0; b < s.buckets; ++b)
            with_elements += s.bucket_bytes[b] > 0;
        CHECK_EQ_U64(s.step.calls, e->world > 1 ? with_elements : 0);
        int ok = 1;
        for (size_t i = 0; i < m.n; ++i)
            for (size_t k = 0; k < m.d[i].count; ++k) {
                double want = 0;
                for (int step = 0; step <= 4; ++step)
                    want += mean_value(e, step, i, k);
                ok &= get(grad(r, i), TAC_F32, k) == want;
            }
        CHECK_MSG(ok, "sum of a group of 4, memory %d", where);
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* Without sync ranks differ, with it they are equal. */
static inline void test_no_sync_differs(env *e)
{
    static const size_t counts[] = {50, 3};
    model m;
    model_make(e, &m, OURS, 2, counts, NULL);
    tac_reducer *r = make(e, &m);
    for (int step = 0; step < 4; ++step) {
        uint64_t all[64];
        CHECK_OK(tac_reducer_begin(r, step % 2, 1.0));
        for (size_t i = 0; i < 2; ++i) {
            float *g = grad(r, i);
            for (size_t k = 0; k < counts[i]; ++k)
                g[k] += (float)(e->rank + 1 + step);
            CHECK_OK(tac_reducer_ready(r, i, NULL));
        }
        CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
        const uint64_t h = hash_grads(r, &m);
        CHECK_OK(tac__comm_exchange(e->comm, &h, all, sizeof h));
        for (int q = 1; q < e->world; ++q)
            CHECK((all[q] == all[0]) == (step % 2 == 1));
    }
    tac_reducer_destroy(r);
}

/* The rebuild: every rank ends with the layout of rank 0's order. */
static inline void test_rebuild(env *e)
{
    size_t order[MAXP], zero_order[MAXP];
    dice mine = dice_make((uint64_t)e->rank + 40), zero = dice_make(40);
    model m;
    tac_reducer_stats s;
    model_make(e, &m, OURS, ODD, odd_counts, NULL);
    m.config.first_bucket_bytes = 64;
    m.config.bucket_bytes = 200;
    tac_reducer *r = make(e, &m);
    shuffle(&mine, order, m.n);
    shuffle(&zero, zero_order, m.n);
    CHECK_OK(one_step(e, r, &m, 0, order));
    tac_reducer_stats_get(r, &s);
    CHECK_EQ(s.rebuilt, 0);
    CHECK_EQ_U64(s.n_ready, m.n);
    for (size_t k = 0; k < m.n; ++k) CHECK_EQ_U64(s.ready_order[k], order[k]);
    CHECK_OK(tac_reducer_begin(r, 0, 1.0));
    means(e, r, &m, 0); /* contents moved along */
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    tac_reducer_stats_get(r, &s);
    CHECK_EQ(s.rebuilt, 1);
    same_everywhere(e, r->layout.hash);
    const size_t limits[] = {64, 200};
    tac_bucket_plan plan;
    CHECK_OK(
        tac_reducer_assign_buckets(m.d, m.n, zero_order, limits, 2, &plan));
    CHECK_EQ_U64(tac_reducer_buckets(r), plan.buckets);
    for (size_t b = 0; b < plan.buckets; ++b) {
        tac_bucket_view view;
        CHECK_OK(tac_reducer_bucket(r, b, &view));
        CHECK_EQ_U64(view.n_params, plan.first[b + 1] - plan.first[b]);
        CHECK_EQ_MEM(view.params, plan.params + plan.first[b],
                     view.n_params * sizeof(size_t));
        CHECK_EQ_U64(s.bucket_bytes[b], view.bytes);
    }
    tac_bucket_plan_free(&plan);
    CHECK_OK(one_step(e, r, &m, 1, order));
    means(e, r, &m, 1);
    same_everywhere(e, r->layout.hash);
    tac_reducer_destroy(r);
}

/* Buckets start while gradients are still to come, in their order only. */
static inline void test_start_order(env *e)
{
    static const size_t counts[] = {10, 10, 10};
    model m;
    model_make(e, &m, THEIRS, 3, counts, NULL);
    m.config.first_bucket_bytes = m.config.bucket_bytes = 40;
    tac_reducer *r = make(e, &m);
    CHECK_EQ_U64(tac_reducer_buckets(r), 3);
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    for (size_t i = 0; i < 3; ++i) fill(e, r, &m, 0, i);
    CHECK_OK(tac_reducer_ready(r, 1, NULL));
    CHECK_EQ_U64(r->next, 0);
    CHECK_EQ_U64(r->now.calls, 0);
    CHECK_OK(tac_reducer_ready(r, 0, NULL));
    CHECK_EQ_U64(r->next, 2);
    CHECK_EQ_U64(r->now.calls, e->world > 1 ? 2 : 0);
    CHECK_OK(tac_reducer_progress(r));
    CHECK_OK(tac_reducer_ready(r, 2, NULL));
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    means(e, r, &m, 0);
    tac_reducer_destroy(r);
    model_free(e, &m);
}

/* The first parameters get ready last: REVERSE, and the small first bucket is
 * then the one that starts last. */
static inline void test_reverse_order(env *e)
{
    static const size_t counts[] = {10, 20, 20, 20};
    for (int where = 0; where < 2; ++where) {
        model m;
        tac_bucket_view view;
        model_make(e, &m, (memory)where, 4, counts, NULL);
        m.config.first_bucket_bytes = 40;
        m.config.bucket_bytes = 160;
        m.config.order = TAC_REDUCER_ORDER_REVERSE;
        tac_reducer *r = make(e, &m);
        CHECK_EQ_U64(tac_reducer_buckets(r), 3);
        CHECK_OK(tac_reducer_bucket(r, 0, &view));
        CHECK_EQ_U64(view.params[0], 3);
        CHECK(!view.is_last);
        CHECK_OK(tac_reducer_bucket(r, 2, &view));
        CHECK_EQ_U64(view.params[0], 0);
        CHECK(view.is_last);
        CHECK_OK(one_step(e, r, &m, 0, NULL));
        means(e, r, &m, 0);
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* Parameter 1 is unused on all ranks, 2 on the odd ones. */
static inline void test_unused(env *e)
{
    static const size_t counts[] = {5, 40, 9, 3};
    for (int find = 0; find < 2; ++find)
        for (int where = 0; where < MEMORIES; ++where) {
            model m;
            model_make(e, &m, (memory)where, 4, counts, NULL);
            m.config.find_unused = find;
            m.config.first_bucket_bytes = m.config.bucket_bytes = 100;
            tac_reducer *r = make(e, &m);
            for (int step = 0; step < 3; ++step) {
                CHECK_OK(tac_reducer_begin(r, 1, 1.0));
                for (size_t i = 0; i < 4; ++i) {
                    const int unused = i == 1 || (i == 2 && e->rank % 2);
                    float *g = grad(r, i);
                    if (!unused)
                        fill(e, r, &m, step, i);
                    else
                        for (size_t k = 0; k < counts[i]; ++k)
                            g[k] = (float)(1000 * e->rank + 7);
                    CHECK_OK(unused ? tac_reducer_unused(r, i)
                                    : tac_reducer_ready(r, i, NULL));
                }
                CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
                const float *g1 = grad(r, 1), *g2 = grad(r, 2);
                const float kept = find ? (float)(1000 * e->rank + 7) : 0.0f;
                for (size_t k = 0; k < counts[1]; ++k)
                    CHECK_EQ_F64(g1[k], kept);
                for (size_t k = 0; k < counts[2]; ++k) {
                    double sum = 0;
                    for (int q = 0; q < e->world; q += 2)
                        sum += value(e, q, step, 2, k);
                    CHECK_EQ_F64(g2[k], sum / e->world);
                }
                for (size_t k = 0; k < counts[3]; ++k)
                    CHECK_EQ_F64(((float *)grad(r, 3))[k],
                                 mean_value(e, step, 3, k));
            }
            tac_reducer_destroy(r);
            model_free(e, &m);
        }
}

/* Unused in the step with sync, but accumulated before: it counts. */
static inline void test_unused_after_accumulation(env *e)
{
    static const size_t counts[] = {5, 6};
    model m;
    model_make(e, &m, OURS, 2, counts, NULL);
    m.config.find_unused = 1;
    tac_reducer *r = make(e, &m);
    CHECK_OK(tac_reducer_begin(r, 0, 1.0));
    for (size_t i = 0; i < 2; ++i) {
        fill(e, r, &m, 3, i);
        CHECK_OK(tac_reducer_ready(r, i, NULL));
    }
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    CHECK_OK(tac_reducer_ready(r, 0, NULL));
    CHECK_OK(tac_reducer_unused(r, 1));
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    means(e, r, &m, 3);
    tac_reducer_destroy(r);
}

/* One rank forgets gradients: every rank says which, and the next step works.
 */
static inline void test_incomplete(env *e)
{
    for (int where = 0; where < MEMORIES; ++where) {
        const int guilty = e->world - 1;
        char who[32];
        model m;
        snprintf(who, sizeof who, "rank %d", guilty);
        model_make(e, &m, (memory)where, ODD, odd_counts, NULL);
        m.config.first_bucket_bytes = m.config.bucket_bytes = 100;
        tac_reducer *r = make(e, &m);
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        for (size_t i = 0; i < m.n; ++i) {
            fill(e, r, &m, 0, i);
            if (e->rank == guilty && (i == 3 || i == 8)) continue;
            CHECK_OK(tac_reducer_ready(r, i, NULL));
        }
        CHECK_STATUS(tac_reducer_finish(r, TIMEOUT_MS), TAC_ERR_INCOMPLETE);
        error_has(e, who);
        error_has(e, "2 of 10");
        error_has(e, "'p3.grad', 'p8.grad'");
        CHECK_OK(one_step(e, r, &m, 1, NULL));
        means(e, r, &m, 1);
        /* All forgotten: a list that is cut short. */
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        CHECK_STATUS(tac_reducer_finish(r, TIMEOUT_MS), TAC_ERR_INCOMPLETE);
        error_has(e, "rank 0");
        error_has(e, "and 4 more");
        CHECK_OK(tac_comm_error(e->comm, NULL, 0));
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* Calls in the wrong order name what is wrong and change nothing. */
static inline void test_wrong_calls(env *e)
{
    static const size_t counts[] = {4, 4};
    model m;
    model_make(e, &m, OURS, 2, counts, NULL);
    tac_reducer *r = make(e, &m);
    CHECK_STATUS(tac_reducer_ready(r, 0, NULL), TAC_ERR_STATE);
    error_has(e, "'p0.grad' outside a step");
    CHECK_STATUS(tac_reducer_finish(r, TIMEOUT_MS), TAC_ERR_STATE);
    CHECK_STATUS(tac_reducer_begin(r, 1, 0.0), TAC_ERR_ARG);
    CHECK_STATUS(tac_reducer_begin(r, 1, INFINITY), TAC_ERR_ARG);
    int more;
    CHECK_STATUS(tac_reducer_join(r, TIMEOUT_MS, &more, NULL), TAC_ERR_STATE);
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    CHECK_STATUS(tac_reducer_begin(r, 1, 1.0), TAC_ERR_STATE);
    CHECK_STATUS(tac_reducer_ready(r, 2, NULL), TAC_ERR_ARG);
    fill(e, r, &m, 0, 0);
    fill(e, r, &m, 0, 1);
    CHECK_OK(tac_reducer_ready(r, 0, NULL));
    CHECK_STATUS(tac_reducer_ready(r, 0, NULL), TAC_ERR_STATE);
    error_has(e, "'p0.grad', which is already marked ready");
    CHECK_STATUS(tac_reducer_unused(r, 0), TAC_ERR_STATE);
    CHECK_OK(tac_reducer_ready(r, 1, NULL));
    CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
    means(e, r, &m, 0);
    void *p;
    CHECK_STATUS(tac_reducer_grad_ptr(r, 2, &p), TAC_ERR_ARG);
    tac_reducer_destroy(r);
    tac_reducer_destroy(NULL);
}

/* ---- ranks that disagree --------------------------------------------------
 */

static inline void expect_mismatch(env *e, model *m, const char *a,
                                   const char *b)
{
    tac_reducer *r = NULL;
    CHECK_STATUS(tac_reducer_create(e->comm, m->d, m->n, &m->config, &r),
                 e->world > 1 ? TAC_ERR_MISMATCH : TAC_OK);
    if (e->world > 1) {
        CHECK(r == NULL);
        error_has(e, a);
        error_has(e, b);
        CHECK_OK(tac_comm_error(e->comm, NULL, 0));
    }
    tac_reducer_destroy(r);
}

static inline void test_mismatch(env *e)
{
    static const size_t counts[] = {8, 128, 4, 6, 2, 3, 1, 9};
    static const size_t shape[] = {2, 3}, turned[] = {3, 2};
    const int odd = e->rank == 1; /* the one that differs */
    model m;

    model_make(e, &m, OURS, odd ? 7 : 8, counts, NULL);
    expect_mismatch(e, &m, "rank 1 has 7 parameters", "rank 0 has 8");

    model_make(e, &m, OURS, 8, counts, NULL);
    if (odd) m.d[1].name = "fc1.bias";
    expect_mismatch(e, &m, "parameter 1: rank 0 has 'p1.grad' f32[128]",
                    "rank 1 has 'fc1.bias' f32[128]");

    model_make(e, &m, OURS, 8, counts, NULL);
    if (odd) m.d[2].dtype = TAC_BF16;
    expect_mismatch(e, &m, "parameter 2: rank 0 has 'p2.grad' f32[4]",
                    "rank 1 has 'p2.grad' bf16[4]");

    model_make(e, &m, OURS, 8, counts, NULL);
    if (odd) m.d[7].count = 10;
    expect_mismatch(e, &m, "parameter 7: rank 0 has 'p7.grad' f32[9]",
                    "rank 1 has 'p7.grad' f32[10]");

    model_make(e, &m, OURS, 8, counts, NULL);
    m.d[3].ndim = 2;
    m.d[3].shape = odd ? turned : shape;
    expect_mismatch(e, &m, "parameter 3: rank 0 has 'p3.grad' f32[2,3]",
                    "rank 1 has 'p3.grad' f32[3,2]");

    model_make(e, &m, OURS, 8, counts, NULL);
    if (odd) m.config.bucket_bytes = 1000;
    expect_mismatch(e, &m, "rank 1 has 1000 bytes", "rank 0 has 26214400");

    model_make(e, &m, OURS, 8, counts, NULL);
    m.config.find_unused = odd;
    expect_mismatch(e, &m, "rank 1 has 1 as find_unused", "rank 0 has 0");

    model_make(e, &m, odd ? THEIRS : OURS, 8, counts, NULL);
    expect_mismatch(e, &m, "rank 1 has 1", "rank 0 has 0");
    free(m.arena);
}

/* One rank's list is no list: all ranks return that, none waits. */
static inline void test_bad_lists(env *e)
{
    static const size_t counts[] = {8, 8};
    const int odd = e->rank == e->world - 1;
    static const size_t shape[] = {3, 3};
    float mem[16];
    tac_reducer *r = NULL;
    model m;

    model_make(e, &m, OURS, 2, counts, NULL);
    if (odd) m.d[1].grad = mem;
    CHECK_STATUS(tac_reducer_create(e->comm, m.d, 2, NULL, &r), TAC_ERR_ARG);
    error_has(e, "parameter 1 ('p1.grad') differs");
    m.d[1].grad = NULL;
    if (odd) {
        m.d[1].ndim = 2;
        m.d[1].shape = shape;
    }
    CHECK_STATUS(tac_reducer_create(e->comm, m.d, 2, NULL, &r), TAC_ERR_ARG);
    error_has(e, "whose product is not its count");
    m.d[1].ndim = 0;
    m.d[0].grad = mem;
    m.d[1].grad = odd ? mem + 7 : mem + 8;
    CHECK_STATUS(tac_reducer_create(e->comm, m.d, 2, NULL, &r), TAC_ERR_ARG);
    error_has(e, "'p0.grad' and 'p1.grad' overlap");
    m.d[1].grad = odd ? (char *)(mem + 8) + 1 : (char *)(mem + 8);
    CHECK_STATUS(tac_reducer_create(e->comm, m.d, 2, NULL, &r), TAC_ERR_ARG);
    error_has(e, "not aligned");
    CHECK(r == NULL);
    CHECK_STATUS(tac_reducer_create(NULL, m.d, 2, NULL, &r), TAC_ERR_ARG);
}

/* ---- the caller's memory ---------------------------------------------------
 */

/* Nothing between two gradients is touched unless it was declared; then it is
 * 0, whatever was there: an inf must not stay in a codec's block. */
static inline void test_gaps(env *e)
{
    for (int declared = 0; declared < 2; ++declared) {
        float mem[64];
        tac_param_desc d[3] = {
            {.name = "a", .count = 5, .dtype = TAC_F32, .grad = mem},
            {.name = "b", .count = 3, .dtype = TAC_F32, .grad = mem + 16},
            {.name = "c", .count = 2, .dtype = TAC_F32, .grad = mem + 48}};
        tac_reducer_config c = TAC_REDUCER_CONFIG_INIT;
        tac_reducer *r = NULL;
        if (declared) {
            c.arena = mem;
            c.arena_bytes = sizeof mem;
        }
        for (int k = 0; k < 64; ++k) mem[k] = (float)((e->rank + 1) * e->world);
        CHECK_OK(tac_reducer_create(e->comm, d, 3, &c, &r));
        CHECK_EQ_U64(tac_reducer_buckets(r), declared ? 2 : 3);
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        for (size_t i = 0; i < 3; ++i) CHECK_OK(tac_reducer_ready(r, i, NULL));
        CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
        const double own = (e->rank + 1) * e->world,
                     mean = e->world * (e->world + 1) / 2.0;
        for (int k = 0; k < 64; ++k) {
            const int inside =
                k < 5 || (k >= 16 && k < 19) || (k >= 48 && k < 50);
            const int bridged = declared && k >= 5 && k < 16 && e->world > 1;
            CHECK_MSG(mem[k] == (float)(inside    ? mean
                                        : bridged ? 0
                                                  : own),
                      "declared %d, element %d: %g", declared, k,
                      (double)mem[k]);
        }
        tac_reducer_destroy(r);
    }
}

/* ---- hooks ----------------------------------------------------------------
 */

typedef struct hook_log {
    env *e;
    size_t buckets[64], n, last, done;
    int noop;
} hook_log;

static tac_status hook_start(void *state, tac_comm *comm,
                             const tac_bucket_view *b, tac_req **req)
{
    hook_log *log = state;
    log->buckets[log->n++] = b->index;
    log->last += b->is_last != 0;
    CHECK(b->n_params > 0 && b->count > 0);
    CHECK_EQ_F64(b->grad_scale, 16.0);
    if (log->noop) return TAC_OK;
    return tac_allreduce(comm, NULL, b->buffer, b->count, b->dtype, TAC_SUM,
                         NULL, req);
}

static tac_status hook_done(void *state, const tac_bucket_view *b)
{
    hook_log *log = state;
    float *x = b->buffer;
    ++log->done;
    for (size_t k = 0; k < b->n_params; ++k) {
        const size_t begin = b->offsets[k];
        CHECK(begin <= b->count);
    }
    for (size_t k = 0; k < b->count && !log->noop; ++k)
        x[k] /= (float)log->e->world;
    return TAC_OK;
}

/* A hook that sums and divides gives what the reducer gives without; one that
 * does nothing leaves the gradients undivided. */
static inline void test_hooks(env *e)
{
    for (int noop = 0; noop < 2; ++noop) {
        model m;
        hook_log log = {.e = e, .noop = noop};
        model_make(e, &m, OURS, ODD, odd_counts, NULL);
        m.config.first_bucket_bytes = m.config.bucket_bytes = 200;
        tac_reducer *r = make(e, &m);
        CHECK_STATUS(tac_reducer_set_hook(r, NULL, NULL, NULL), TAC_ERR_ARG);
        CHECK_OK(tac_reducer_set_hook(r, hook_start, hook_done, &log));
        CHECK_STATUS(tac_reducer_set_hook(r, hook_start, NULL, &log),
                     TAC_ERR_STATE);
        for (int step = 0; step < 3; ++step) {
            tac_reducer_stats s;
            log.n = log.last = log.done = 0;
            CHECK_OK(tac_reducer_begin(r, 1, 16.0));
            for (size_t i = 0; i < m.n; ++i) {
                fill(e, r, &m, step, i);
                CHECK_OK(tac_reducer_ready(r, i, NULL));
            }
            CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
            tac_reducer_stats_get(r, &s);
            CHECK_EQ_U64(log.last, 1);
            CHECK_EQ_U64(log.done, log.n);
            CHECK_EQ_U64(s.step.calls, log.n);
            for (size_t k = 1; k < log.n; ++k)
                CHECK(log.buckets[k] > log.buckets[k - 1]);
            if (!noop)
                means(e, r, &m, step);
            else
                CHECK_EQ_F64(((float *)grad(r, 9))[5],
                             value(e, e->rank, step, 9, 5));
        }
        CHECK_STATUS(tac_reducer_set_hook(r, hook_start, NULL, &log),
                     TAC_ERR_STATE);
        tac_reducer_destroy(r);
    }
}

/* ---- counters -------------------------------------------------------------
 */

static inline void test_stats(env *e)
{
    static const size_t counts[] = {10, 20, 0, 30};
    static const tac_dtype types[] = {TAC_F32, TAC_F32, TAC_F32, TAC_F64};
    for (int where = 0; where < MEMORIES; ++where) {
        model m;
        tac_reducer_stats s;
        tac_comm_stats before, after;
        model_make(e, &m, (memory)where, 4, counts, types);
        m.config.no_rebuild = 1;
        tac_reducer *r = make(e, &m);
        tac_comm_stats_get(e->comm, &before);
        for (int step = 0; step < 5; ++step)
            CHECK_OK(one_step(e, r, &m, step, NULL));
        tac_comm_stats_get(e->comm, &after);
        tac_reducer_stats_get(r, &s);
        const int many = e->world > 1;
        /* f32: 40 bytes, padding to 64, 80 bytes; f64: 240 bytes. */
        CHECK_EQ_U64(s.buckets, 2);
        CHECK_EQ_U64(s.bucket_bytes[0] + s.bucket_bytes[1], 360);
        CHECK_EQ_U64(s.initial_buckets, 2);
        CHECK_EQ_U64(s.total.steps, 5);
        CHECK_EQ_U64(s.total.calls, many ? 10 : 0);
        CHECK_EQ_U64(s.total.control_calls, many ? 5 : 0);
        CHECK_EQ_U64(s.total.bytes_logical, many ? 5 * 360 : 0);
        CHECK_EQ_U64(s.total.bytes_wire, many ? 5 * (64 + 80 + 240) : 0);
        CHECK_EQ_U64(s.step.calls, many ? 2 : 0);
        CHECK_EQ_U64(after.op[TAC_COLL_ALLREDUCE].calls -
                         before.op[TAC_COLL_ALLREDUCE].calls,
                     many ? 10 : 0);
        CHECK_EQ_U64(after.op[TAC_COLL_ALLREDUCE].bytes_logical -
                         before.op[TAC_COLL_ALLREDUCE].bytes_logical,
                     many ? 5 * (64 + 80 + 240) : 0);
        if (!many) CHECK_EQ_U64(after.total.calls, before.total.calls);
        CHECK(s.total.comm_s >= s.total.exposed_s);
        CHECK(s.total.exposed_s >= s.total.wait_s);
        CHECK(s.total.wait_s >= 0 && (s.total.comm_s > 0) == many);
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* ---- NaN ------------------------------------------------------------------
 */

static inline void test_nan(env *e)
{
    static const size_t counts[] = {9, 9, 9, 9};
    static const tac_dtype types[] = {TAC_F32, TAC_F64, TAC_F16, TAC_BF16};
    const int guilty = e->world / 2;
    char who[32];
    model m;
    snprintf(who, sizeof who, "rank %d:", guilty);
    model_make(e, &m, OURS, 4, counts, types);
    m.config.check_nan = 1;
    tac_reducer *r = make(e, &m);
    for (size_t bad = 0; bad < 4; ++bad) {
        char what[64];
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        for (size_t i = 0; i < 4; ++i) {
            fill(e, r, &m, 0, i);
            put(grad(r, i), types[i], 1, INFINITY); /* is no NaN */
            if (i == bad && e->rank == guilty) {
                put(grad(r, i), types[i], 5, NAN);
                put(grad(r, i), types[i], 7, NAN);
            }
            CHECK_OK(tac_reducer_ready(r, i, NULL));
        }
        CHECK_STATUS(tac_reducer_finish(r, TIMEOUT_MS), TAC_ERR_DIVERGED);
        snprintf(what, sizeof what, "'p%zu.grad' is NaN at index 5", bad);
        error_has(e, who);
        error_has(e, what);
    }
    CHECK_OK(one_step(e, r, &m, 1, NULL));
    means(e, r, &m, 1);
    tac_reducer_destroy(r);
}

/* ---- uneven inputs ---------------------------------------------------------
 */

/* Rank q has 5 - q % 3 batches. Every rank applies what every step yields: all
 * end with the same parameter. Two epochs. */
static inline void test_join(env *e)
{
    static const size_t counts[] = {6, 3};
    model m;
    model_make(e, &m, OURS, 2, counts, NULL);
    m.config.join = 1;
    tac_reducer *r = make(e, &m);
    double parameter = 0, want = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
        const int batches = 5 - e->rank % 3;
        int more = 1, last = -1;
        for (int b = 0; b < batches; ++b) {
            CHECK_OK(one_step(e, r, &m, b, NULL));
            parameter += get(grad(r, 0), TAC_F32, 4);
        }
        while (more) {
            if (!CHECK_OK(tac_reducer_join(r, TIMEOUT_MS, &more, &last)))
                return;
            if (more) parameter += get(grad(r, 0), TAC_F32, 4);
            if (more) CHECK_STATUS(tac_reducer_begin(r, 1, 1.0), TAC_ERR_STATE);
        }
        int latest = 0;
        for (int q = 0; q < e->world; ++q) {
            for (int b = 0; b < 5 - q % 3; ++b)
                want += value(e, q, b, 0, 4) / e->world;
            if (q % 3 == 0) latest = q;
        }
        CHECK_EQ(last, latest);
        CHECK_EQ_F64(parameter, want);
    }
    tac_reducer_destroy(r);
}

/* ---- a race ---------------------------------------------------------------
 */

/* Another thread produces the gradient just before it is marked ready. */
typedef struct producer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    float *out;
    size_t count;
    float value;
    int wanted, quit;
} producer;

static void *produce(void *arg)
{
    producer *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (p->wanted) {
            for (size_t k = 0; k < p->count; ++k) p->out[k] = p->value;
            p->wanted = 0;
            pthread_cond_signal(&p->changed);
        }
        if (!p->quit) pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static inline void produce_grad(producer *p, float *out, size_t count,
                                float value)
{
    pthread_mutex_lock(&p->lock);
    p->out = out;
    p->count = count;
    p->value = value;
    p->wanted = 1;
    pthread_cond_signal(&p->changed);
    while (p->wanted) pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static inline void test_race(env *e, memory where, int iterations)
{
    static const size_t counts[] = {3, 50};
    producer p = {.lock = PTHREAD_MUTEX_INITIALIZER,
                  .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    model m;
    int bad = 0;
    model_make(e, &m, where, 2, counts, NULL);
    m.config.first_bucket_bytes = m.config.bucket_bytes = 12;
    tac_reducer *r = make(e, &m);
    if (!CHECK(pthread_create(&thread, NULL, produce, &p) == 0)) return;
    for (int it = 0; it < iterations && !bad; ++it) {
        bad |= tac_reducer_begin(r, 1, 1.0) != TAC_OK;
        for (size_t i = 0; i < 2; ++i) {
            produce_grad(&p, grad(r, i), counts[i], (float)e->rank);
            bad |= tac_reducer_ready(r, i, NULL) != TAC_OK;
        }
        bad |= tac_reducer_finish(r, TIMEOUT_MS) != TAC_OK;
        for (size_t i = 0; i < 2; ++i)
            for (size_t k = 0; k < counts[i]; ++k)
                bad |= ((float *)grad(r, i))[k] != (float)(e->world - 1) / 2;
    }
    CHECK_MSG(!bad, "a gradient of a race, rank %d of %d", e->rank, e->world);
    pthread_mutex_lock(&p.lock);
    p.quit = 1;
    pthread_cond_signal(&p.changed);
    pthread_mutex_unlock(&p.lock);
    pthread_join(thread, NULL);
    tac_reducer_destroy(r);
    model_free(e, &m);
}

/* ---- random models ---------------------------------------------------------
 */

/* What a group of micro-steps must yield, element by element. */
typedef struct expect {
    double sum[MAXP][80]; /* over ranks and micro-steps */
    int used[MAXP];
} expect;

static inline void expect_add(const env *e, const model *m, expect *x, int step,
                              size_t i, unsigned used_by)
{
    for (int q = 0; q < e->world; ++q) {
        if (!(used_by >> q & 1)) continue;
        x->used[i] = 1;
        for (size_t k = 0; k < m->d[i].count; ++k)
            x->sum[i][k] += value(e, q, step, i, k);
    }
}

static inline void random_model(env *e, dice *d, model *m)
{
    static const tac_dtype types[] = {TAC_F32,  TAC_F32, TAC_F64, TAC_F16,
                                      TAC_BF16, TAC_I32, TAC_I64};
    size_t counts[MAXP];
    tac_dtype dtypes[MAXP];
    const size_t n = roll(d, MAXP);
    for (size_t i = 0; i < n; ++i) {
        counts[i] = roll(d, 4) ? roll(d, 80) : roll(d, 2);
        dtypes[i] = types[roll(d, 7)];
    }
    model_make(e, m, (memory)roll(d, MEMORIES), n, counts, dtypes);
    m->config.first_bucket_bytes = 1 + roll(d, 300);
    m->config.bucket_bytes = 1 + roll(d, 600);
    m->config.order = (tac_reducer_order)roll(d, 3);
    m->config.find_unused = (int)roll(d, 2);
}

/* A group: up to two micro-steps without sync, then one with. */
static inline void random_group(env *e, dice *d, dice *mine, tac_reducer *r,
                                const model *m, int base)
{
    static const double poison = 77;
    expect x;
    size_t order[MAXP];
    const int micro = 1 + (int)roll(d, 3);
    memset(&x, 0, sizeof x);
    for (int s = 0; s < micro; ++s) {
        CHECK_OK(tac_reducer_begin(r, s + 1 == micro, 1.0));
        for (size_t i = 0; i < m->n && !s; ++i)
            for (size_t k = 0; k < m->d[i].count; ++k)
                put(grad(r, i), m->d[i].dtype, k, poison);
        shuffle(mine, order, m->n);
        unsigned used_by[MAXP];
        for (size_t i = 0; i < m->n; ++i)
            used_by[i] = roll(d, 3) ? 0xffffu : (unsigned)roll(d, 1u << 16);
        for (size_t j = 0; j < m->n; ++j) {
            const size_t i = order[j];
            const int used = used_by[i] >> e->rank & 1;
            void *g = grad(r, i);
            const int first = !r->params[i].produced;
            for (size_t k = 0; k < m->d[i].count && used; ++k)
                put(g, m->d[i].dtype, k,
                    value(e, e->rank, base + s, i, k) +
                        (first ? 0 : get(g, m->d[i].dtype, k)));
            CHECK_OK(used ? tac_reducer_ready(r, i, NULL)
                          : tac_reducer_unused(r, i));
        }
        CHECK_OK(tac_reducer_finish(r, TIMEOUT_MS));
        for (size_t i = 0; i < m->n; ++i)
            expect_add(e, m, &x, base + s, i, used_by[i]);
    }
    int ok = 1;
    for (size_t i = 0; i < m->n; ++i)
        for (size_t k = 0; k < m->d[i].count; ++k) {
            const double got = get(grad(r, i), m->d[i].dtype, k);
            const double want = x.used[i] || !m->config.find_unused
                                    ? x.sum[i][k] / e->world
                                    : poison;
            ok &= got == want;
        }
    CHECK_MSG(ok, "random model: rank %d of %d, base %d", e->rank, e->world,
              base);
}

static inline void test_random(env *e, int rounds)
{
    dice d = dice_make(2024), mine = dice_make((uint64_t)e->rank + 7);
    for (int round = 0; round < rounds; ++round) {
        model m;
        random_model(e, &d, &m);
        tac_reducer *r = make(e, &m);
        if (!r) return;
        for (int group = 0; group < 3; ++group)
            random_group(e, &d, &mine, r, &m, 10 * round + group);
        same_everywhere(e, r->layout.hash);
        tac_reducer_destroy(r);
        model_free(e, &m);
    }
}

/* ---- all ------------------------------------------------------------------
 */

static inline void suite_run(tac_comm *comm, int race, int rounds)
{
    env e = env_make(comm);
    test_means(&e);
    test_exact_means(&e);
    if (adds_in_rank_order(comm)) test_same_bits(&e);
    test_accumulation(&e);
    test_no_sync_differs(&e);
    test_rebuild(&e);
    test_start_order(&e);
    test_reverse_order(&e);
    test_unused(&e);
    test_unused_after_accumulation(&e);
    test_incomplete(&e);
    test_wrong_calls(&e);
    test_mismatch(&e);
    test_bad_lists(&e);
    test_gaps(&e);
    test_hooks(&e);
    test_stats(&e);
    test_nan(&e);
    test_join(&e);
    for (int where = 0; where < MEMORIES; ++where)
        test_race(&e, (memory)where, race);
    test_random(&e, rounds);
    CHECK_OK(tac_comm_error(comm, NULL, 0));
}

#endif
