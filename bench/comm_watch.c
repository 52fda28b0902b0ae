/* comm_watch.c: the thread that ends a program which waits for a dead rank. */
#include "comm_watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_A_SECOND = 4, STALLED = 124 };

/* Neither stdio nor exit: another thread may hold their locks for ever. */
static void expire(const tac__watch *w, int rank)
{
    char text[200];
    const int n =
        snprintf(text, sizeof text,
                 "comm_bench: rank %d waited %lld s in its barrier or in MPI: "
                 "a rank died, is stopped, or is slower than --timeout\n",
                 rank, (long long)w->seconds);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) _exit(STALLED);
    _exit(STALLED);
}

static void look(tac__watch *w)
{
    for (int i = 0; i < w->n; i++) {
        tac__watched *r = &w->rank[i];
        const unsigned now =
            atomic_load_explicit(&r->mark, memory_order_relaxed);
        if (now % 2 == 0 || now != r->seen) r->looks = 0;
        r->seen = now;
        if (++r->looks > w->seconds * LOOKS_A_SECOND && now % 2)
            expire(w, w->first + i);
    }
}

static struct timespec next_look(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += 1000000000 / LOOKS_A_SECOND;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

static void *watch(void *arg)
{
    tac__watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->ending) {
        const struct timespec t = next_look();
        pthread_cond_timedwait(&w->end, &w->lock, &t);
        look(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the threads that work. */
static int start(tac__watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

void tac__watch_open(tac__watch *w, int n, int first, int64_t seconds)
{
    pthread_condattr_t monotonic;
    *w = (tac__watch){.n = n, .first = first, .seconds = seconds};
    w->rank = aligned_alloc(64, (size_t)n * sizeof *w->rank);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (w->rank) memset(w->rank, 0, (size_t)n * sizeof *w->rank);
    w->running = w->rank && start(w);
    if (!w->running)
        fprintf(stderr, "comm_bench: can't start a thread that watches for "
                        "dead ranks; going on without\n");
}

void tac__watch_close(tac__watch *w)
{
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->ending = 1;
        pthread_cond_signal(&w->end);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    pthread_cond_destroy(&w->end);
    pthread_mutex_destroy(&w->lock);
    free(w->rank);
    w->rank = NULL;
}
