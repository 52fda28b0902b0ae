/* mpi_create.c: a communicator from an MPI_Comm. The duplicate is made with
 * MPI_Comm_idup, so that even this can time out. */
#include <stdlib.h>

#include "tacit/clock.h"
#include "tacit/comm_mpi.h"
#include "transports/mpi/mpi.h"

#define DEFAULT_TIMEOUT_MS 300000

static void read_limits(tac__mpi_world *w)
{
    int found = 0, *ub = NULL;
    MPI_Query_thread(&w->level);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&ub, &found);
    w->tag_ub = found ? *ub : 32767;
}

static int timeout_of(const tac_comm_config *config)
{
    return config && config->timeout_ms > 0 ? config->timeout_ms
                                            : DEFAULT_TIMEOUT_MS;
}

static tac_status duplicate(tac__mpi_world *w, MPI_Comm parent, int timeout_ms)
{
    MPI_Request request;
    int done = 0;
    const uint64_t until = tac_clock_ns() + (uint64_t)timeout_ms * 1000000u;
    tac__mpi_enter(w);
    int rc = MPI_Comm_idup(parent, &w->comm, &request);
    while (rc == MPI_SUCCESS && !done && tac_clock_ns() < until) {
        rc = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) tac_clock_sleep_ns(20000u);
    }
    tac__mpi_leave(w);
    if (rc == MPI_SUCCESS && done) return TAC_OK;
    atomic_store(&w->sick, 1); /* the world is left to the request */
    return tac_fail(w->ctx, done ? TAC_ERR_PEER : TAC_ERR_TIMEOUT,
                    "duplicating the MPI communicator timed out after %d ms: "
                    "not all ranks call tac_comm_create_mpi",
                    timeout_ms);
}

static tac_status new_world(tac_context *ctx, tac__mpi_world **out)
{
    tac__mpi_world *w = calloc(1, sizeof *w);
    if (!w) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for MPI");
    w->ctx = ctx;
    w->comm = MPI_COMM_NULL;
    atomic_init(&w->refs, 1);
    read_limits(w);
    if (w->level < MPI_THREAD_MULTIPLE) {
        w->lock = tac__mpi_lock_of(ctx);
        if (!w->lock) {
            free(w);
            return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for MPI");
        }
    }
    *out = w;
    return TAC_OK;
}

tac_status tac_comm_create_mpi(MPI_Comm parent, tac_context *ctx,
                               const tac_comm_config *config, tac_comm **out)
{
    tac__mpi_world *w = NULL;
    int size = 0;
    if (!tac__mpi_alive())
        return tac_fail(ctx, TAC_ERR_STATE,
                        "tac_comm_create_mpi outside MPI_Init ... "
                        "MPI_Finalize");
    if (!ctx || parent == MPI_COMM_NULL)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_comm_create_mpi: no context or no communicator");
    TAC_TRY(new_world(ctx, &w));
    const tac_status made = duplicate(w, parent, timeout_of(config));
    if (made < 0) return made;
    MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &size);
    const tac_oob oob = tac__mpi_oob(w);
    const tac_transport_offer offer = {&tac__transport_mpi, w};
    const tac_status s =
        tac_comm_create_with(ctx, w->rank, size, &oob, &offer, 1, config, out);
    tac__transport_mpi.release(w);
    return s;
}
