/* comm_watch.h: ends a program whose ranks wait where the library's timeout
 * doesn't reach: in the bench's own barrier, or inside MPI.
 *
 * A rank marks the beginning and the end of such a wait, which costs it an
 * addition to memory of its own. A thread looks at the marks four times a
 * second; it counts its looks, not the clock, so the time in which the whole
 * program is stopped does not count. */
#ifndef TAC_BENCH_COMM_WATCH_H
#define TAC_BENCH_COMM_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct tac__watched {
    _Alignas(64) _Atomic unsigned mark; /* odd: waiting */
    unsigned seen, looks;               /* the thread's */
} tac__watched;

typedef struct tac__watch {
    tac__watched *rank; /* [n] */
    int n, first;       /* ranks of this process, and the lowest of them */
    int64_t seconds;
    int running, ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
} tac__watch;

/* n ranks from `first`; a wait may take `seconds`. Without memory or a thread
 * for it a warning, and nobody watches. */
void tac__watch_open(tac__watch *w, int n, int first, int64_t seconds);
void tac__watch_close(tac__watch *w);

/* Only rank `i` of this process writes its mark, so no atomic addition. */
static inline void tac__watch_step(tac__watch *w, int i)
{
    _Atomic unsigned *mark;
    if (!w->rank) return;
    mark = &w->rank[i].mark;
    atomic_store_explicit(mark,
                          atomic_load_explicit(mark, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static inline void tac__watch_begin(tac__watch *w, int i)
{
    tac__watch_step(w, i);
}

static inline void tac__watch_end(tac__watch *w, int i)
{
    tac__watch_step(w, i);
}

#endif
