/* pool_impl.h: the thread pool inside. Private to base/.
 *
 * The caller of a region publishes the job, then `unclaimed` = parts. Whoever
 * takes a part, worker or caller, decrements it by compare-and-swap; only then
 * does it read the job, which stays as it is until `unfinished` is 0. So a
 * worker that wakes late takes a part of whatever job is open, or sleeps on. */
#ifndef TAC_POOL_IMPL_H
#define TAC_POOL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tacit/pool.h"

typedef struct tac__job {
    tac_pool_fn *fn;
    void *arg;
    size_t n, grain,
        blocks; /* blocks of `grain` items, the last may be short */
    uint32_t parts;
} tac__job;

struct tac_pool {
    int size;         /* threads, the caller included */
    int started;      /* workers to be joined */
    uint64_t spin_ns; /* before sleeping; 0 where threads share cores */
    pthread_t *threads;

    atomic_int busy; /* a region is open */
    tac__job job;
    _Atomic uint32_t unclaimed;

    _Atomic uint32_t wake; /* futex of the workers: counts regions */
    _Atomic uint32_t
        sleepers; /* workers that are, or are about to be, asleep */
    _Atomic uint32_t unfinished; /* futex of the caller */
    atomic_int caller_sleeps;
    atomic_int stop;
};

/* NULL: out of memory or threads, not reported. */
tac_pool *tac__pool_create(int size, uint64_t spin_ns);
/* Joins the workers. NULL is legal. */
void tac__pool_destroy(tac_pool *pool);

/* Takes parts of the open job and runs them until none is left. */
void tac__pool_work(tac_pool *pool);
/* Runs part `part` of the job. */
void tac__job_run(const tac__job *job, uint32_t part);
/* Sleeps in the kernel while *word is `value`; may return early. */
void tac__futex_wait(_Atomic uint32_t *word, uint32_t value);
void tac__futex_wake(_Atomic uint32_t *word, int threads);
/* Looks at *word for at most spin_ns (a moment if 0): 1 as soon as it is not
 * `value`, else 0. */
int tac__spin_while_equal(const _Atomic uint32_t *word, uint32_t value,
                          uint64_t spin_ns);
/* The body of a worker; `arg` is the pool. */
void *tac__pool_worker(void *arg);

#endif
