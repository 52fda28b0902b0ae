/* mpi_boot.c: the bootstrap's all-gather: MPI_Iallgather on copies of the
 * buffers, which are left behind if it is given up. */
#include <stdlib.h>
#include <string.h>

#include "transports/mpi/mpi.h"

typedef struct gather {
    MPI_Request request;
    void *recv;
    size_t bytes; /* of all */
    char *copy;   /* contribution, then everybody's */
} gather;

static tac_status start(void *arg, const void *send, void *recv, size_t bytes,
                        void **op)
{
    tac__mpi_world *w = arg;
    int size = 0;
    gather *g = calloc(1, sizeof *g);
    if (!g) return TAC_ERR_NOMEM;
    tac__mpi_enter(w);
    MPI_Comm_size(w->comm, &size);
    *g = (gather){MPI_REQUEST_NULL, recv, bytes * (size_t)size, NULL};
    g->copy = malloc(bytes + g->bytes);
    int rc = MPI_ERR_NO_MEM;
    if (g->copy) {
        memcpy(g->copy, send, bytes);
        rc = MPI_Iallgather(g->copy, (int)bytes, MPI_BYTE, g->copy + bytes,
                            (int)bytes, MPI_BYTE, w->comm, &g->request);
    }
    tac__mpi_leave(w);
    if (rc != MPI_SUCCESS) {
        free(g->copy);
        free(g);
        return TAC_ERR_PEER;
    }
    *op = g;
    return TAC_OK;
}

static tac_status test(void *arg, void *op)
{
    tac__mpi_world *w = arg;
    gather *g = op;
    int done = 0;
    tac__mpi_enter(w);
    const int rc = MPI_Test(&g->request, &done, MPI_STATUS_IGNORE);
    tac__mpi_leave(w);
    if (rc == MPI_SUCCESS && !done) return TAC_INPROGRESS;
    if (rc == MPI_SUCCESS) {
        int size = 1;
        MPI_Comm_size(w->comm, &size);
        memcpy(g->recv, g->copy + g->bytes / (size_t)size, g->bytes);
        free(g->copy);
    }
    free(g);
    return rc == MPI_SUCCESS ? TAC_OK : TAC_ERR_PEER;
}

static void cancel(void *arg, void *op)
{
    tac__mpi_world *w = arg;
    atomic_store(&w->sick, 1);
    free(op); /* the copy stays with MPI */
}

tac_oob tac__mpi_oob(tac__mpi_world *w)
{
    return (tac_oob){sizeof(tac_oob), start, test, cancel, w};
}
