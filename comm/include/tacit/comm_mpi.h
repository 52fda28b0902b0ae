/* tacit/comm_mpi.h: communicators from MPI_Comm (library tacit::comm_mpi).
 *
 * Never calls MPI_Init or MPI_Finalize. Works on a duplicate of the caller's
 * communicator. The mpi transport needs MPI_THREAD_SERIALIZED or better (one
 * lock a context then guards our calls; the caller must not call MPI from
 * another thread at the same time), and MPI_THREAD_MULTIPLE for
 * progress = TAC_PROGRESS_THREAD. MPI is polled, never waited in. */
#ifndef TACIT_COMM_MPI_H
#define TACIT_COMM_MPI_H

#include <mpi.h>

#include "tacit/comm.h"

TAC_BEGIN_DECLS

/* As tac_comm_create_oob, with the ranks of `parent`. transport "auto" means
 * shm if all ranks are on one host, else mpi. Destroy the communicator before
 * MPI_Finalize. */
TAC_API tac_status tac_comm_create_mpi(MPI_Comm parent, tac_context *ctx,
                                       const tac_comm_config *config,
                                       tac_comm **out);

TAC_END_DECLS

#endif
