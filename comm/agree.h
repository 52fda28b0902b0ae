/* agree.h: verdicts that all ranks share.
 *
 * In collective set-up no rank returns an error before the ranks have agreed
 * on it: a rank that fails calls tac__comm_agree with its status, the others
 * with TAC_OK, and all return the same. Cost: one all-gather of 256 bytes a
 * rank. */
#ifndef TACIT_COMM_AGREE_H
#define TACIT_COMM_AGREE_H

#include "tacit/comm.h"

/* Collective, blocks. TAC_OK if every rank passed TAC_OK; else, on every rank,
 * the status and text of the lowest rank that failed ("rank 3: <text>", set as
 * the context's message and logged on rank 0 of the communicator). `text` may
 * be NULL: then the context's latest message is used. Does not poison. If the
 * communicator is or becomes poisoned, its error. */
tac_status tac__comm_agree(tac_comm *comm, tac_status mine, const char *text);

/* Collective, blocks: all-gather of `bytes` bytes, any number. */
tac_status tac__comm_exchange(tac_comm *comm, const void *send, void *recv,
                              size_t bytes);

#endif
