/* The environment of children. Started under mpirun, a program finds in its
 * environment who it is; a child that inherited that would take itself for a
 * rank of this job instead of starting its own. Variables of this program's
 * options (TACIT_*) would change children without a trace in their folder's
 * arguments, so they stay behind, too. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runs_impl.h"

extern char **environ;

static int begins(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0) return 1;
    return 0;
}

/* What the user says stays: leave to run as root, and MCA parameters other
 * than those that Open MPI's daemon sets for its own ranks. */
static int stays(const char *variable)
{
    static const char *const launchers[] = {
        "OMPI_MCA_ess",
        "OMPI_MCA_orte_",
        "OMPI_MCA_initial_wdir=",
        "OMPI_MCA_mpi_oversubscribe=",
        "OMPI_MCA_pmix=",
        "OMPI_MCA_shmem_RUNTIME_QUERY_hint=",
        NULL};
    static const char *const users[] = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_MCA_",
                                        "PMIX_MCA_", "TACIT_ISA=", NULL};
    static const char *const others[] = {
        "OMPI_",         "PMIX_",        "PMI_",        "MPI_LOCAL",
        "ORTE_",         "OPAL_",        "PRTE_",       "SLURM_PROCID",
        "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_", "SLURM_STEPID",
        "SLURM_TASK_",   "TACIT_",       NULL};

    if (begins(variable, launchers)) return 0;
    return begins(variable, users) || !begins(variable, others);
}

/* The launcher put more ranks on this host than it has slots, by an option
 * that children don't see. */
static int is_oversubscribed(void)
{
    const char *value = getenv("OMPI_MCA_mpi_oversubscribe");

    return value && strcmp(value, "1") == 0 &&
           !getenv("OMPI_MCA_rmaps_base_oversubscribe");
}

char **runs_env_make(void)
{
    static char allow[] = "OMPI_MCA_rmaps_base_oversubscribe=1";
    size_t n = 0;

    while (environ[n]) n++;
    char **env = calloc(n + 2, sizeof *env);
    if (!env) return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (stays(environ[i])) env[kept++] = environ[i];
    if (is_oversubscribed()) env[kept++] = allow;
    return env;
}

void runs_env_unbind(void)
{
    cpu_set_t all;

    if (!getenv("OMPI_MCA_orte_bound_at_launch")) return;
    memset(&all, 0xff, sizeof all); /* the kernel drops what there is not */
    sched_setaffinity(0, sizeof all, &all);
}
