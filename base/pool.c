/* pool.c: creating the pool and running a region.
 *
 * Cost of a region: about a microsecond when the workers still spin after the
 * region before, the kernel's wake-up (some 5 to 50 us) when they sleep. */
#include "pool_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"

enum { SPIN_NS = 50 * 1000 };

/* Signals are the program's business: they never arrive in a worker. */
static int start_workers(tac_pool *pool)
{
    sigset_t all, before;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == 0 && pool->started < pool->size - 1) {
        rc = pthread_create(&pool->threads[pool->started], NULL,
                            tac__pool_worker, pool);
        if (rc == 0) ++pool->started;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

tac_pool *tac__pool_create(int size, uint64_t spin_ns)
{
    tac_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->size = size;
    pool->spin_ns = spin_ns;
    pool->threads = calloc((size_t)size, sizeof *pool->threads);
    if (!pool->threads) goto fail_pool;
    const int rc = start_workers(pool);
    if (rc != 0) {
        tac__pool_destroy(pool);
        errno = rc;
        return NULL;
    }
    return pool;

fail_pool:
    free(pool);
    errno = ENOMEM;
    return NULL;
}

void tac__pool_destroy(tac_pool *pool)
{
    if (!pool) return;
    atomic_store(&pool->stop, 1);
    atomic_fetch_add(&pool->wake, 1);
    tac__futex_wake(&pool->wake, pool->size);
    for (int i = 0; i < pool->started; ++i)
        pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    free(pool);
}

/* Ranks that share cores must not spin: another rank has the work. */
static void *make_pool(tac_context *ctx, void *arg)
{
    const int64_t wanted = (int64_t)ctx->threads * ctx->local_ranks;
    tac_pool *pool =
        tac__pool_create(ctx->threads, wanted <= ctx->cpus ? SPIN_NS : 0);
    (void)arg;
    if (!pool)
        tac_fail(ctx, TAC_ERR_NOMEM,
                 "can't start a pool of %d threads: %s; ask for fewer threads",
                 ctx->threads, strerror(errno));
    return pool;
}

static void free_pool(void *pool)
{
    tac__pool_destroy(pool);
}

tac_pool *tac_context_pool(tac_context *ctx)
{
    static const char key;
    return tac_context_slot(ctx, &key, make_pool, free_pool, NULL);
}

int tac_pool_size(const tac_pool *pool)
{
    return pool ? pool->size : 1;
}

static tac__job plan(const tac_pool *pool, size_t n, size_t grain,
                     tac_pool_fn *fn, void *arg)
{
    const size_t size = (size_t)tac_pool_size(pool);
    const size_t g = grain > 0 ? grain : 1;
    const size_t blocks = n / g + (n % g != 0);
    const uint32_t parts = (uint32_t)(blocks < size ? blocks : size);
    return (tac__job){fn, arg, n, g, blocks, parts};
}

static void run_serially(const tac__job *job)
{
    for (uint32_t part = 0; part < job->parts; ++part) tac__job_run(job, part);
}

static void wake_workers(tac_pool *pool, uint32_t wanted)
{
    atomic_fetch_add(&pool->wake, 1);
    if (atomic_load(&pool->sleepers) > 0)
        tac__futex_wake(&pool->wake, (int)wanted);
}

static void wait_for_others(tac_pool *pool)
{
    uint32_t left;
    while ((left = atomic_load(&pool->unfinished)) > 0) {
        if (tac__spin_while_equal(&pool->unfinished, left, pool->spin_ns))
            continue;
        atomic_store(&pool->caller_sleeps, 1);
        left = atomic_load(&pool->unfinished);
        if (left > 0) tac__futex_wait(&pool->unfinished, left);
        atomic_store(&pool->caller_sleeps, 0);
    }
}

static void run_in_parallel(tac_pool *pool, const tac__job *job)
{
    pool->job = *job;
    atomic_store(&pool->unfinished, job->parts);
    atomic_store_explicit(&pool->unclaimed, job->parts, memory_order_release);
    wake_workers(pool, job->parts - 1);
    tac__pool_work(pool);
    wait_for_others(pool);
}

/* A call from inside a region, or from another thread during one, finds the
 * pool busy and runs the same parts one after the other. */
int tac_pool_for(tac_pool *pool, size_t n, size_t grain, tac_pool_fn *fn,
                 void *arg)
{
    const tac__job job = plan(pool, n, grain, fn, arg);
    if (job.parts < 2 || !pool || atomic_exchange(&pool->busy, 1)) {
        run_serially(&job);
    } else {
        run_in_parallel(pool, &job);
        atomic_store(&pool->busy, 0);
    }
    return (int)job.parts;
}
