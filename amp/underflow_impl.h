/* The report's inside, shared by underflow.c and underflow_shares.c. */
#ifndef TAC_AMP_UNDERFLOW_IMPL_H
#define TAC_AMP_UNDERFLOW_IMPL_H

#include "tacit/underflow.h"

struct tac_underflow {
    tac_params *params;
    tac_context *ctx;
    tac_underflow_row *rows; /* one a parameter */
    size_t count;
    void *host;                 /* a piece of the gradients */
    tac_underflow_row *partial; /* one a thread, for a piece */
    int threads;
};

#endif
