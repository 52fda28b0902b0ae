/* One rank of an MPI job. */
#include "world.h"

#include <mpi.h>
#include <stdio.h>

#include "tacit/comm_mpi.h"

static int host_ranks(void)
{
    MPI_Comm host;
    int n = 1;

    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                            MPI_INFO_NULL, &host) != MPI_SUCCESS)
        return 1;
    MPI_Comm_size(host, &n);
    MPI_Comm_free(&host);
    return n;
}

/* The lowest rank whose options were refused says why, once. Returns the exit
 * code, 0 if all were accepted. */
static int agree_on_options(const tac__world *w, int rank, int size)
{
    const int mine = w->parsed < 0 ? rank : size;
    int first = size, code = w->parsed < 0 ? tac__exit_code(w->parsed) : 0;

    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == size) return 0;
    MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
    if (rank == first) fprintf(stderr, "ddp_train: %s\n", w->parse_error);
    return code;
}

/* A launcher that doesn't speak our MPI's language gives N worlds of one. */
static int silent_singleton(const tac__launch *l, int size)
{
    const int told = l->size > l->step_tasks ? l->size : l->step_tasks;

    if (size > 1 || told <= 1) return 0;
    if (l->rank == 0)
        fprintf(stderr,
                "ddp_train: started as one of %d tasks, but MPI sees a world "
                "of one; use srun --mpi=pmix, or the mpirun of the MPI that "
                "tacit was built with\n",
                told);
    return 1;
}

static void run_rank(const tac__world *w, int rank, int size, int *code,
                     int *agreed)
{
    const tac_comm_config comm_config = tac__world_comm_config(w->config);
    const int local = host_ranks();
    tac__capture capture;
    const tac_context_config cc =
        tac__world_context_config(w, &capture, rank, size, local);
    tac__rank self = {.options = w->options,
                      .config = *w->config,
                      .stop = w->stop,
                      .capture = &capture,
                      .local_ranks = local,
                      .cpus = tac__launch_cpus(),
                      .rank = rank,
                      .world = size};
    tac_status s = tac_context_create(&cc, &self.ctx);

    if (s >= 0)
        s = tac_comm_create_mpi(MPI_COMM_WORLD, self.ctx, &comm_config,
                                &self.comm);
    if (s < 0) {
        if (rank == 0) tac__capture_flush(&capture);
        *code = tac__exit_code(s);
    } else {
        w->main(&self);
        *code = self.exit_code;
        *agreed = tac_comm_error(self.comm, NULL, 0) >= 0;
    }
    tac_comm_destroy(self.comm);
    tac_context_destroy(self.ctx);
}

int tac__world_mpi(const tac__world *w)
{
    int provided = 0, rank = 0, size = 1, code, agreed = 1;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) !=
        MPI_SUCCESS) {
        fprintf(stderr, "ddp_train: MPI_Init_thread failed\n");
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    code = agree_on_options(w, rank, size);
    if (!code && silent_singleton(&w->launch, size)) code = 2;
    if (!code) run_rank(w, rank, size, &code, &agreed);
    /* After a broken communication MPI_Finalize could wait for ever. */
    if (!agreed) MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    MPI_Finalize();
    return code;
}
