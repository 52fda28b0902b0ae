/* transport_table.c: the transports of the core. Others are offered at creation
 * (mpi) or loaded as plug-ins. */
#include "transports/builtin.h"

const tac_transport *const tac__transports[] = {
    &tac__transport_self,
    &tac__transport_thread,
    &tac__transport_shm,
    NULL,
};
