/* shared_symmetric.h: the symmetric part of the allreduce algorithms. */
#ifndef TACIT_COMM_SHARED_SYMMETRIC_H
#define TACIT_COMM_SHARED_SYMMETRIC_H

#include "algs/shared.h"

/* Reduces this rank's slice of all ranks' sources into all destinations. */
void tac__shared_reduce_symmetric(tac_req *req);
/* What both allreduce algorithms need to be symmetric. */
tac__shared_need tac__shared_need_both(const tac_req *req);

#endif
