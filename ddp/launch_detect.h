/* How ranks come to be, found out from the environment before MPI_Init. */
#ifndef TAC_DDP_LAUNCH_DETECT_H
#define TAC_DDP_LAUNCH_DETECT_H

#include "tacit/context.h"

typedef struct tac__launch {
    int launched; /* 1: a launcher started this process as one of `size` */
    int rank, size;
    int local_rank, local_size; /* on this host; 0 of 1 if unknown */
    const char *launcher;       /* "mpirun", "srun", ...; "none" */
    int step_tasks; /* tasks of the Slurm step that this process is in; 0 */
} tac__launch;

tac__launch tac__launch_detect(void);

/* CPUs that this process may use. */
int tac__launch_cpus(void);

#endif
