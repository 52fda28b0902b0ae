/* pool_worker.c: taking parts, and waiting without using the processor. */
#include "pool_impl.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tacit/clock.h"

void tac__futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void tac__futex_wake(_Atomic uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

int tac__spin_while_equal(const _Atomic uint32_t *word, uint32_t value,
                          uint64_t spin_ns)
{
    const uint64_t end = spin_ns > 0 ? tac_clock_ns() + spin_ns : 0;
    do {
        for (int i = 0; i < 32; ++i) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return 1;
            relax();
        }
    } while (spin_ns > 0 && tac_clock_ns() < end);
    return 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The first blocks % parts parts have one block more than the others. */
void tac__job_run(const tac__job *job, uint32_t part)
{
    const size_t each = job->blocks / job->parts;
    const size_t extra = job->blocks % job->parts;
    const size_t first = part * each + smaller(part, extra);
    const size_t last = first + each + (part < extra);
    const size_t end = last == job->blocks ? job->n : last * job->grain;
    job->fn(job->arg, first * job->grain, end, (int)part);
}

/* 1 and the part, or 0 if there is none to take. */
static int claim(tac_pool *pool, uint32_t *part)
{
    uint32_t left =
        atomic_load_explicit(&pool->unclaimed, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak_explicit(
                &pool->unclaimed, &left, left - 1, memory_order_acquire,
                memory_order_relaxed)) {
            *part = pool->job.parts - left;
            return 1;
        }
    return 0;
}

/* Sequentially consistent with the caller's setting of caller_sleeps: either
 * this sees it, or the caller sees that all is done before it sleeps. */
static void finish_part(tac_pool *pool)
{
    if (atomic_fetch_sub(&pool->unfinished, 1) == 1 &&
        atomic_load(&pool->caller_sleeps))
        tac__futex_wake(&pool->unfinished, 1);
}

void tac__pool_work(tac_pool *pool)
{
    uint32_t part;
    while (claim(pool, &part)) {
        tac__job_run(&pool->job, part);
        finish_part(pool);
    }
}

/* Sequentially consistent with the caller's counting up of `wake`: either it
 * sees this sleeper, or the kernel sees that `wake` has changed. */
static void sleep_until_wake(tac_pool *pool, uint32_t seen)
{
    atomic_fetch_add(&pool->sleepers, 1);
    tac__futex_wait(&pool->wake, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

void *tac__pool_worker(void *arg)
{
    tac_pool *pool = arg;
    while (!atomic_load(&pool->stop)) {
        const uint32_t seen = atomic_load(&pool->wake);
        tac__pool_work(pool);
        if (atomic_load(&pool->stop)) break;
        if (!tac__spin_while_equal(&pool->wake, seen, pool->spin_ns))
            sleep_until_wake(pool, seen);
    }
    return NULL;
}
