/* mpi_news.c: what a rank tells its peers beside the data: that it gives up, or
 * that it waits and in what. A message of 800 bytes to each, which they look
 * for every ten milliseconds while they have nothing else to do. (Looking may
 * yield the core.) */
#include <stdio.h>

#include "tacit/clock.h"
#include "transports/mpi/mpi.h"

#define POLL_NS UINT64_C(10000000)

/* Caller holds the lock of MPI. Messages may stay unread until the peers have
 * gone on, so the world is left to MPI_Finalize. */
static void send_all(tac__mpi_link *l, tac__mpi_news *news, MPI_Request *reqs)
{
    atomic_store(&l->world->sick, 1);
    for (int r = 0; r < l->size; r++)
        if (r != l->rank)
            MPI_Isend(news, sizeof *news, MPI_BYTE, l->peer[r], l->tag + 1,
                      l->world->comm, &reqs[r]);
}

void tac__mpi_tell(void *state, tac_status s, const char *text)
{
    tac__mpi_link *l = state;
    if (atomic_exchange(&l->aborting, 1)) return;
    l->tell.status = s;
    snprintf(l->tell.text, sizeof l->tell.text, "%s", text);
    tac__mpi_enter(l->world);
    send_all(l, &l->tell, l->telling);
    tac__mpi_leave(l->world);
}

/* What was said before must have left; else this word is not told. */
void tac__mpi_say(void *state, uint64_t word)
{
    tac__mpi_link *l = state;
    int all = 0;
    tac__mpi_enter(l->world);
    MPI_Testall(l->size, l->saying, &all, MPI_STATUSES_IGNORE);
    if (all) {
        l->say.status = TAC_INPROGRESS;
        l->say.doing = word;
        send_all(l, &l->say, l->saying);
    }
    tac__mpi_leave(l->world);
}

uint64_t tac__mpi_word(void *state, int r)
{
    tac__mpi_link *l = state;
    return atomic_load(&l->word[r]);
}

static void keep_word(tac__mpi_link *l, int world_rank)
{
    for (int r = 0; r < l->size; r++)
        if (l->peer[r] == world_rank && l->told.doing)
            atomic_store(&l->word[r], l->told.doing);
}

/* One message, if there is any. Caller holds the lock of MPI. */
static int receive_news(tac__mpi_link *l)
{
    int there = 0;
    MPI_Status st;
    if (MPI_Iprobe(MPI_ANY_SOURCE, l->tag + 1, l->world->comm, &there, &st) !=
            MPI_SUCCESS ||
        !there)
        return 0;
    if (MPI_Recv(&l->told, sizeof l->told, MPI_BYTE, st.MPI_SOURCE, l->tag + 1,
                 l->world->comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return 0;
    keep_word(l, st.MPI_SOURCE);
    return 1;
}

tac_status tac__mpi_hear(void *state, const char **text)
{
    tac__mpi_link *l = state;
    const uint64_t now = tac_clock_ns();
    if (now - l->polled_ns < POLL_NS) return TAC_OK;
    l->polled_ns = now;
    int heard;
    tac__mpi_enter(l->world);
    do heard = receive_news(l);
    while (heard && l->told.status >= 0);
    tac__mpi_leave(l->world);
    if (!heard) return TAC_OK;
    l->told.text[sizeof l->told.text - 1] = '\0';
    *text = l->told.text;
    return (tac_status)l->told.status;
}

static int all_left(tac__mpi_link *l)
{
    int told = 0, said = 0;
    tac__mpi_enter(l->world);
    MPI_Testall(l->size, l->telling, &told, MPI_STATUSES_IGNORE);
    MPI_Testall(l->size, l->saying, &said, MPI_STATUSES_IGNORE);
    tac__mpi_leave(l->world);
    return told && said;
}

/* News to peers should leave before their memory goes: 100 ms for that. */
int tac__mpi_flush(tac__mpi_link *l)
{
    const uint64_t until = tac_clock_ns() + 100000000u;
    for (;;) {
        const int all = all_left(l);
        if (all || tac_clock_ns() > until) return all;
        tac_clock_sleep_ns(200000u);
    }
}
