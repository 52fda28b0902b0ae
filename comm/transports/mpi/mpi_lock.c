/* mpi_lock.c: one lock a context guards our MPI calls below
 * MPI_THREAD_MULTIPLE. */
#include <stdlib.h>

#include "transports/mpi/mpi.h"

static const char slot_key;

static void *make(tac_context *ctx, void *arg)
{
    (void)ctx, (void)arg;
    pthread_mutex_t *m = malloc(sizeof *m);
    if (m) pthread_mutex_init(m, NULL);
    return m;
}

static void destroy(void *value)
{
    pthread_mutex_destroy(value);
    free(value);
}

pthread_mutex_t *tac__mpi_lock_of(tac_context *ctx)
{
    return tac_context_slot(ctx, &slot_key, make, destroy, NULL);
}

void tac__mpi_enter(tac__mpi_world *w)
{
    if (w->lock) pthread_mutex_lock(w->lock);
}

void tac__mpi_leave(tac__mpi_world *w)
{
    if (w->lock) pthread_mutex_unlock(w->lock);
}

int tac__mpi_alive(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    if (started) MPI_Finalized(&ended);
    return started && !ended;
}
