/* base_pool.c: the thread pool. Each index exactly once, parts as promised,
 * nested and concurrent calls, sleeping workers. Runs under TSan. */
#include <pthread.h>
#include <stdlib.h>

#include "pool_impl.h"
#include "tac_check.h"
#include "tacit/clock.h"
#include "tacit/pool.h"

enum { MAX_SIZE = 8, REPEATS = 20 };

typedef struct visit {
    int *hits; /* [n]; each index belongs to one part, so no atomics */
    size_t n, grain;
    atomic_int calls, bad;
    size_t begin[MAX_SIZE], end[MAX_SIZE];
} visit;

static void hit(void *arg, size_t begin, size_t end, int part)
{
    visit *v = arg;
    atomic_fetch_add(&v->calls, 1);
    if (begin >= end || end > v->n || part < 0 || part >= MAX_SIZE) {
        atomic_fetch_add(&v->bad, 1);
        return;
    }
    v->begin[part] = begin;
    v->end[part] = end;
    for (size_t i = begin; i < end; ++i) ++v->hits[i];
}

/* Parts join without gaps, begin at multiples of the grain, and their sizes
 * differ by one block at most. */
static void check_parts(const visit *v, int parts)
{
    size_t least = SIZE_MAX, most = 0;
    CHECK_EQ_U64(v->begin[0], 0);
    CHECK_EQ_U64(v->end[parts - 1], v->n);
    for (int i = 0; i < parts; ++i) {
        const size_t blocks =
            (v->end[i] - v->begin[i] + v->grain - 1) / v->grain;
        if (i > 0) CHECK_EQ_U64(v->begin[i], v->end[i - 1]);
        CHECK_EQ_U64(v->begin[i] % v->grain, 0);
        if (blocks < least) least = blocks;
        if (blocks > most) most = blocks;
    }
    CHECK(most - least <= 1);
}

static void check_for(tac_pool *pool, size_t n, size_t grain)
{
    const size_t g = grain ? grain : 1, blocks = (n + g - 1) / g;
    const size_t size = (size_t)tac_pool_size(pool);
    const size_t want = blocks < size ? blocks : size;
    visit v = {.n = n, .grain = g};
    int once = 1;
    v.hits = calloc(n + 1, sizeof *v.hits);
    if (!CHECK(v.hits != NULL)) return;
    const int parts = tac_pool_for(pool, n, grain, hit, &v);
    CHECK_EQ(parts, want);
    CHECK_EQ(atomic_load(&v.calls), want);
    CHECK_EQ(atomic_load(&v.bad), 0);
    for (size_t i = 0; i < n; ++i) once &= v.hits[i] == 1;
    CHECK_MSG(once, "n %zu, grain %zu, size %zu: not each index once", n, grain,
              size);
    if (parts > 0) check_parts(&v, parts);
    free(v.hits);
}

static void test_every_index_once(tac_pool *pool)
{
    static const size_t ns[] = {0, 1, 2, 3, 7, 8, 9, 31, 100, 1001};
    static const size_t grains[] = {0, 1, 2, 5, 16, 1000, 5000};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; ++i)
        for (size_t k = 0; k < sizeof grains / sizeof *grains; ++k)
            check_for(pool, ns[i], grains[k]);
}

/* Only the arithmetic: no index near the end of size_t may overflow. */
static void sum_lengths(void *arg, size_t begin, size_t end, int part)
{
    (void)part;
    atomic_fetch_add((_Atomic size_t *)arg, end - begin);
}

static void test_largest_n(tac_pool *pool)
{
    static const size_t grains[] = {1, 3, SIZE_MAX / 2, SIZE_MAX};
    for (size_t k = 0; k < sizeof grains / sizeof *grains; ++k) {
        _Atomic size_t sum = 0;
        tac_pool_for(pool, SIZE_MAX, grains[k], sum_lengths, &sum);
        CHECK_EQ_U64(atomic_load(&sum), SIZE_MAX);
    }
}

/* Reduction by part: bits must be the same at each run. */
typedef struct reduction {
    const float *x;
    float sums[MAX_SIZE];
} reduction;

static void add_part(void *arg, size_t begin, size_t end, int part)
{
    reduction *r = arg;
    float sum = 0;
    for (size_t i = begin; i < end; ++i) sum += r->x[i];
    r->sums[part] = sum;
}

static float reduce(tac_pool *pool, const float *x, size_t n)
{
    reduction r = {.x = x};
    float sum = 0;
    const int parts = tac_pool_for(pool, n, 16, add_part, &r);
    for (int i = 0; i < parts; ++i) sum += r.sums[i];
    return sum;
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; ++i) x[i] = 1.0f / (float)(i + 1);
}

static void test_many_repetitions(tac_pool *pool)
{
    float x[1003];
    fill(x, 1003);
    const float want = reduce(pool, x, 1003);
    int same = 1;
    for (int i = 0; i < 2000; ++i) same &= reduce(pool, x, 1003) == want;
    CHECK_MSG(same, "size %d: sums differ between runs", tac_pool_size(pool));
}

/* A call inside a region: serial, but with the same parts, so the same bits. */
typedef struct nest {
    tac_pool *pool;
    const float *x;
    float want;
    atomic_int wrong, regions;
} nest;

typedef struct inner {
    pthread_t thread;
    int other, calls, last;
} inner;

static void note_thread(void *arg, size_t begin, size_t end, int part)
{
    inner *in = arg;
    (void)begin;
    (void)end;
    if (!pthread_equal(in->thread, pthread_self())) in->other = 1;
    if (part != in->last + 1) in->other = 1;
    in->last = part;
    ++in->calls;
}

static void call_inside(void *arg, size_t begin, size_t end, int part)
{
    nest *t = arg;
    (void)part;
    for (size_t i = begin; i < end; ++i) {
        inner in = {pthread_self(), 0, 0, -1};
        const int parts = tac_pool_for(t->pool, 64, 1, note_thread, &in);
        if (tac_pool_size(t->pool) > 1 &&
            (in.other || in.calls != parts || parts != tac_pool_size(t->pool)))
            atomic_fetch_add(&t->wrong, 1);
        if (reduce(t->pool, t->x, 1003) != t->want)
            atomic_fetch_add(&t->wrong, 1);
        atomic_fetch_add(&t->regions, 1);
    }
}

static void test_nested(tac_pool *pool)
{
    float x[1003];
    fill(x, 1003);
    nest t = {.pool = pool, .x = x, .want = reduce(pool, x, 1003)};
    for (int i = 0; i < REPEATS; ++i)
        tac_pool_for(pool, 16, 1, call_inside, &t);
    CHECK_EQ(atomic_load(&t.regions), 16 * REPEATS);
    CHECK_EQ(atomic_load(&t.wrong), 0);
}

/* Several threads that share one pool: each gets its own sums. */
typedef struct sharer {
    tac_pool *pool;
    float want, *x;
    int wrong;
} sharer;

static void *share(void *arg)
{
    sharer *s = arg;
    for (int i = 0; i < 200; ++i)
        s->wrong += reduce(s->pool, s->x, 1003) != s->want;
    return NULL;
}

static void test_concurrent_callers(tac_pool *pool)
{
    enum { CALLERS = 3 };
    pthread_t threads[CALLERS];
    sharer sharers[CALLERS];
    float x[1003];
    fill(x, 1003);
    const float want = reduce(pool, x, 1003);
    for (int i = 0; i < CALLERS; ++i) {
        sharers[i] = (sharer){pool, want, x, 0};
        CHECK_EQ(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
    }
    for (int i = 0; i < CALLERS; ++i) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(sharers[i].wrong, 0);
    }
}

/* Regions with pauses long enough for workers and caller to fall asleep. */
static void sleepy(void *arg, size_t begin, size_t end, int part)
{
    if (part == 1) tac_clock_sleep_ns(2000000);
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
}

static void test_sleeping(tac_pool *pool)
{
    atomic_int sum = 0;
    for (int i = 0; i < 5; ++i) {
        tac_clock_sleep_ns(2000000);
        tac_pool_for(pool, 100, 1, sleepy, &sum);
    }
    CHECK_EQ(atomic_load(&sum), 500);
}

/* CPU time, not wall time, so a loaded machine changes nothing: 0.3 s of eight
 * spinning threads would be seconds. */
static void test_idle_uses_no_cpu(tac_pool *pool)
{
    atomic_int sum = 0;
    tac_pool_for(pool, 100, 1, sleepy, &sum);
    tac_clock_sleep_ns(20000000);
    const double before = tac_clock_process_cpu_s();
    tac_clock_sleep_ns(300000000);
    const double used = tac_clock_process_cpu_s() - before;
    CHECK_MSG(used < 0.03, "size %d: an idle pool used %.3f s of CPU in 0.3 s",
              tac_pool_size(pool), used);
}

static void run_all(tac_pool *pool)
{
    test_every_index_once(pool);
    test_largest_n(pool);
    test_many_repetitions(pool);
    test_nested(pool);
    test_concurrent_callers(pool);
    test_sleeping(pool);
}

static void test_sizes(uint64_t spin_ns)
{
    for (int size = 1; size <= MAX_SIZE; ++size) {
        const long before = tac_check_failed();
        tac_pool *pool = tac__pool_create(size, spin_ns);
        if (!CHECK(pool != NULL)) continue;
        CHECK_EQ(tac_pool_size(pool), size);
        run_all(pool);
        if (size == 1 || size == 2 || size == MAX_SIZE)
            test_idle_uses_no_cpu(pool);
        tac__pool_destroy(pool);
        printf("pool of %d, spin %d us: %s\n", size, (int)(spin_ns / 1000),
               tac_check_failed() == before ? "ok" : "FAILED");
    }
}

static void test_no_pool(void)
{
    CHECK_EQ(tac_pool_size(NULL), 1);
    check_for(NULL, 0, 1);
    check_for(NULL, 1, 1);
    check_for(NULL, 99, 10);
    tac__pool_destroy(NULL);
}

/* Pools come and go at once, asleep or not. */
static void test_short_lives(void)
{
    for (int i = 0; i < 50; ++i) {
        tac_pool *pool = tac__pool_create(1 + i % 5, i % 2 ? 50000 : 0);
        if (!CHECK(pool != NULL)) return;
        if (i % 3) check_for(pool, 64, 1);
        tac__pool_destroy(pool);
    }
}

static void test_of_context(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    config.threads = 3;
    if (!CHECK_OK(tac_context_create(&config, &ctx))) return;
    tac_pool *pool = tac_context_pool(ctx);
    CHECK(pool != NULL);
    CHECK(tac_context_pool(ctx) == pool);
    CHECK_EQ(tac_pool_size(pool), 3);
    check_for(pool, 100, 1);
    tac_context_destroy(ctx);
}

int main(void)
{
    test_no_pool();
    test_of_context();
    test_short_lives();
    test_sizes(0);
    test_sizes(50 * 1000);
    return tac_check_summary();
}
