/* comm_barrier.h: a barrier in memory that the ranks of a host share, neither
 * side's: all leave within a few microseconds where each rank has a core, and
 * nobody spins where ranks share cores. */
#ifndef TAC_BENCH_COMM_BARRIER_H
#define TAC_BENCH_COMM_BARRIER_H

#include <sched.h>
#include <stdatomic.h>

typedef struct tac__meeting {
    _Alignas(64) _Atomic int arrived;
    _Alignas(64) _Atomic unsigned generation;
} tac__meeting;

/* What the last to arrive does before the others may leave; NULL: nothing. */
typedef void tac__meeting_fn(void *arg);

static inline void tac__meet(tac__meeting *m, int ranks, int spin,
                             tac__meeting_fn *last, void *arg)
{
    const unsigned mine = atomic_load(&m->generation);
    if (atomic_fetch_add(&m->arrived, 1) == ranks - 1) {
        if (last) last(arg);
        atomic_store(&m->arrived, 0);
        atomic_fetch_add(&m->generation, 1);
        return;
    }
    for (int n = 0; atomic_load(&m->generation) == mine; n++)
        if (!spin || n > 20000) sched_yield();
}

#endif
