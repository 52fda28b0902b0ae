/* One rank of an MPI job. */
#include "world.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>

#include "tacit/comm_mpi.h"

/* Ranks of this host, and the CPUs that they may use together: a launcher may
 * have bound each to some of its own. */
static int host_ranks(int *cpus)
{
    MPI_Comm host;
    cpu_set_t mine, all;
    int n = 1;

    *cpus = tac__launch_cpus();
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                            MPI_INFO_NULL, &host) != MPI_SUCCESS)
        return 1;
    MPI_Comm_size(host, &n);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, host);
    if (CPU_COUNT(&all) > 0) *cpus = CPU_COUNT(&all);
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

/* --help and its like: rank 0 prints, if all ranks were asked to. Returns 1 if
 * that was it, with the exit code. */
static int agree_on_action(const tac__world *w, int rank, int *code)
{
    const int mine[2] = {(int)w->action, -(int)w->action};
    int most[2] = {0, 0};

    MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (most[0] == TAC_ACTION_RUN) return 0;
    *code = most[0] == -most[1] ? 0 : 2;
    if (rank != 0) return 1;
    if (*code == 0)
        w->print(w->options, w->action);
    else
        fprintf(stderr, "ddp_train: some ranks were given --help, --version or "
                        "--print-config and others were not; give all ranks "
                        "the same options\n");
    return 1;
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
    int cpus = 1;
    const int local = host_ranks(&cpus);
    tac__capture capture;
    const tac_context_config cc =
        tac__world_context_config(w, &capture, rank, size, local);
    tac__rank self = {.options = w->options,
                      .config = *w->config,
                      .stop = w->stop,
                      .catch_signals = w->catch_signals,
                      .capture = &capture,
                      .local_ranks = local,
                      .cpus = cpus,
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
    if (!code && agree_on_action(w, rank, &code)) {
        MPI_Finalize();
        return code;
    }
    if (!code && silent_singleton(&w->launch, size)) code = 2;
    if (!code) run_rank(w, rank, size, &code, &agreed);
    /* After a broken communication MPI_Finalize could wait for ever. */
    if (!agreed) MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    MPI_Finalize();
    return code;
}
