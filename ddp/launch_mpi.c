/* One rank of an MPI job. */
#include "launch_impl.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tacit/clock.h"
#include "tacit/comm_mpi.h"

/* A rank that has failed waits so long for the others before it speaks. */
static const double patience_s = 5;

/* ---- before the ranks -----------------------------------------------------
 */

/* Ranks of this host, and a rank's share of the CPUs that they may use
 * together: a launcher may have bound each to some of its own. */
static int host_ranks(int *share)
{
    MPI_Comm host;
    cpu_set_t mine, all;
    int n = 1;

    *share = tac__launch_cpus();
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                            MPI_INFO_NULL, &host) != MPI_SUCCESS)
        return 1;
    MPI_Comm_size(host, &n);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, host);
    MPI_Comm_free(&host);
    if (CPU_COUNT(&all) / n < *share) *share = CPU_COUNT(&all) / n;
    if (*share < 1) *share = 1;
    return n;
}

/* The lowest rank whose options were refused says why, once. Returns the exit
 * code, 0 if all were accepted. */
static int agree_on_options(const tac__world *w, int rank, int size)
{
    const tac_status s = w->config->refused;
    const int mine = s < 0 ? rank : size;
    int first = size, code = s < 0 ? tac_launch_exit_code(s) : 0;

    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == size) return 0;
    MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
    if (rank == first)
        fprintf(stderr, "%s: %s\n", w->program, w->config->message);
    return code;
}

/* --help and its like: rank 0 prints, if all ranks were asked to. Returns 1 if
 * that was it, with the exit code. */
static int agree_on_printing(const tac__world *w, int rank, int *code)
{
    const int prints = w->config->print != NULL;
    const int mine[2] = {prints, -prints};
    int most[2] = {0, 0};

    MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!most[0]) return 0;
    *code = most[0] == -most[1] ? 0 : 2;
    if (rank != 0) return 1;
    if (*code == 0)
        w->config->print(w->config);
    else
        fprintf(stderr,
                "%s: some ranks were given --help, --version or --print-config "
                "and others were not; give all ranks the same options\n",
                w->program);
    return 1;
}

/* A launcher that doesn't speak our MPI's language gives N worlds of one. */
static int silent_singleton(const tac__world *w, int size)
{
    const tac__launch *l = &w->launch;
    const int told = l->size > l->step_tasks ? l->size : l->step_tasks;

    if (size > 1 || told <= 1 || w->config->allow_singleton) return 0;
    if (l->rank == 0)
        fprintf(stderr,
                "%s: started as one of %d tasks, but MPI sees a world of one; "
                "use srun --mpi=pmix, or the mpirun of the MPI that tacit was "
                "built with; if %d separate jobs are wanted: "
                "--allow-singleton\n",
                w->program, told, told);
    return 1;
}

/* The launcher decides how many ranks there are, but not silently. */
static void say_other_ranks(const tac__world *w, int rank, int size)
{
    const int asked = w->config->ranks;

    if (rank != 0 || w->config->quiet || asked == 0 || asked == size) return;
    fprintf(stderr,
            "%s: warning: --ranks %d is not used, because %s has started %d; "
            "to have ranks as threads, start the program without it\n",
            w->program, asked, w->launch.launcher, size);
}

/* ---- after them -----------------------------------------------------------
 */

/* Waits; a rank that has failed gives up after a while. */
static int wait_for_all(MPI_Request *request, int patient)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const double until = tac_clock_s() + patience_s;
    int done = 0;

    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || (!patient && tac_clock_s() > until)) return done;
        nanosleep(&pause, NULL);
    }
}

/* All ranks tell each other how they fared, and one of them tells the user. */
static int conclude(tac__one_rank *self)
{
    const int ok = self->fate.status >= 0;
    tac__fate *all = calloc((size_t)self->size, sizeof *all);
    MPI_Request request;
    tac_status s = (tac_status)self->fate.status;
    int speaker = self->rank, failed = 1;

    if (!all) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Iallgather(&self->fate, 2, MPI_INT32_T, all, 2, MPI_INT32_T,
                   MPI_COMM_WORLD, &request);
    if (wait_for_all(&request, ok)) {
        speaker = tac__launch_speaker(all, self->size, &failed);
        if (speaker >= 0) s = (tac_status)all[speaker].status;
        free(all); /* else it is MPI's until the end */
    } else {
        self->alive = 0;
    }
    self->speaks = speaker == self->rank && s < 0;
    if (self->speaks) tac__launch_speak(self, failed);
    return tac__launch_code(self->world, s);
}

static tac_status connect_mpi(tac__one_rank *self, tac_context *ctx,
                              tac_comm **out)
{
    return tac_comm_create_mpi(MPI_COMM_WORLD, ctx, &self->world->config->comm,
                               out);
}

static int run_rank(const tac__world *w, int rank, int size)
{
    tac__one_rank self = {
        .world = w, .rank = rank, .size = size, .connect = connect_mpi};
    int code;

    self.local_ranks = host_ranks(&self.threads);
    tac__launch_rank(&self);
    code = conclude(&self);
    /* After a broken communication MPI_Finalize could wait for ever. One rank
     * ends them all, so that MPI says so once. */
    if (!self.alive && !self.speaks) sleep(2);
    if (!self.alive) MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    return code;
}

int tac__launch_mpi(const tac__world *w)
{
    int provided = 0, rank = 0, size = 1, code;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) !=
        MPI_SUCCESS) {
        fprintf(stderr, "%s: MPI_Init_thread failed\n", w->program);
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    code = agree_on_options(w, rank, size);
    if (!code && agree_on_printing(w, rank, &code)) {
        MPI_Finalize();
        return code;
    }
    if (!code && silent_singleton(w, size)) code = 2;
    if (!code) {
        say_other_ranks(w, rank, size);
        code = run_rank(w, rank, size);
    }
    MPI_Finalize();
    return code;
}
