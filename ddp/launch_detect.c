/* Reading the launcher's variables: Open MPI, PMI (MPICH, Intel MPI) and Slurm
 * name rank and size before MPI_Init, so options can be checked, and help
 * printed once, without starting MPI. */
#include "launch_detect.h"

#include <sched.h>
#include <stdlib.h>

static int env_int(const char *name, int fallback)
{
    const char *text = getenv(name);

    return text && *text ? atoi(text) : fallback;
}

static int from_openmpi(tac__launch *l)
{
    if (!getenv("OMPI_COMM_WORLD_SIZE")) return 0;
    l->rank = env_int("OMPI_COMM_WORLD_RANK", 0);
    l->size = env_int("OMPI_COMM_WORLD_SIZE", 1);
    l->local_rank = env_int("OMPI_COMM_WORLD_LOCAL_RANK", 0);
    l->local_size = env_int("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    l->launcher = "mpirun";
    return 1;
}

static int from_pmi(tac__launch *l)
{
    if (!getenv("PMI_SIZE")) return 0;
    l->rank = env_int("PMI_RANK", 0);
    l->size = env_int("PMI_SIZE", 1);
    l->local_rank = env_int("MPI_LOCALRANKID", 0);
    l->local_size = env_int("MPI_LOCALNRANKS", 1);
    l->launcher = "mpiexec";
    return 1;
}

/* Under srun without PMI support every task would be a world of its own: it is
 * not launched then, but one of several all the same, of which one speaks. */
static int from_slurm(tac__launch *l)
{
    l->step_tasks =
        getenv("SLURM_PROCID") ? env_int("SLURM_STEP_NUM_TASKS", 0) : 0;
    if (l->step_tasks < 1) return 0;
    l->rank = env_int("SLURM_PROCID", 0);
    if (!getenv("PMIX_RANK")) return 0;
    l->size = l->step_tasks;
    l->local_rank = env_int("SLURM_LOCALID", 0);
    l->launcher = "srun";
    return 1;
}

tac__launch tac__launch_detect(void)
{
    tac__launch l = {0, 0, 1, 0, 1, "none", 0};

    l.launched = from_slurm(&l) || from_openmpi(&l) || from_pmi(&l);
    return l;
}

int tac__launch_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}
