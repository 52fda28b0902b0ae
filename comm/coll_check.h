/* coll_check.h: checks of a collective's arguments (coll_check.c). */
#ifndef TACIT_COMM_COLL_CHECK_H
#define TACIT_COMM_COLL_CHECK_H

#include "comm_impl.h"

/* The options with defaults for what the caller's structure lacks. */
tac_coll_opt tac__opt_fill(const tac_coll_opt *in);
tac_status tac__check_opt(tac_comm *c, const tac_req *want,
                          const tac_coll_opt *o);
tac_status tac__check_buffers(tac_comm *c, const tac_req *want);

#endif
