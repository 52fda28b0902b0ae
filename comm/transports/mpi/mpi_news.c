/* mpi_news.c: a rank that gives up tells its peers, in a message of 256 bytes
 * to each, which they look for every ten milliseconds while they have nothing
 * else to do. (Looking may yield the core.) */
#include <stdio.h>

#include "tacit/clock.h"
#include "transports/mpi/mpi.h"

#define POLL_NS UINT64_C(10000000)

void tac__mpi_tell(void *state, tac_status s, const char *text)
{
    tac__mpi_link *l = state;
    if (atomic_exchange(&l->aborting, 1)) return;
    l->tell.status = s;
    snprintf(l->tell.text, sizeof l->tell.text, "%s", text);
    tac__mpi_enter(l->world);
    for (int r = 0; r < l->size; r++)
        if (r != l->rank)
            MPI_Isend(&l->tell, sizeof l->tell, MPI_BYTE, l->peer[r],
                      l->tag + 1, l->world->comm, &l->telling[r]);
    tac__mpi_leave(l->world);
}

/* Caller holds the lock of MPI. */
static int receive_news(tac__mpi_link *l)
{
    int there = 0;
    MPI_Status st;
    if (MPI_Iprobe(MPI_ANY_SOURCE, l->tag + 1, l->world->comm, &there, &st) !=
            MPI_SUCCESS ||
        !there)
        return 0;
    return MPI_Recv(&l->told, sizeof l->told, MPI_BYTE, st.MPI_SOURCE,
                    l->tag + 1, l->world->comm,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

tac_status tac__mpi_hear(void *state, const char **text)
{
    tac__mpi_link *l = state;
    const uint64_t now = tac_clock_ns();
    if (now - l->polled_ns < POLL_NS) return TAC_OK;
    l->polled_ns = now;
    tac__mpi_enter(l->world);
    const int heard = receive_news(l);
    tac__mpi_leave(l->world);
    if (!heard) return TAC_OK;
    l->told.text[sizeof l->told.text - 1] = '\0';
    *text = l->told.text;
    return (tac_status)l->told.status;
}

/* News to peers should leave before their memory goes: 100 ms for that. */
int tac__mpi_flush(tac__mpi_link *l)
{
    const uint64_t until = tac_clock_ns() + 100000000u;
    int all = 0;
    for (;;) {
        tac__mpi_enter(l->world);
        MPI_Testall(l->size, l->telling, &all, MPI_STATUSES_IGNORE);
        tac__mpi_leave(l->world);
        if (all || tac_clock_ns() > until) return all;
        tac_clock_sleep_ns(200000u);
    }
}
