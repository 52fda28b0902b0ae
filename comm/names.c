/* names.c: names of operations, for messages, spans and options. */
#include "tacit/comm.h"

const char *tac_op_name(tac_op op)
{
    static const char *const names[TAC_OP_COUNT] = {"sum", "avg", "min", "max",
                                                    "prod"};
    return (unsigned)op < TAC_OP_COUNT ? names[op] : "?";
}

const char *tac_coll_name(tac_coll coll)
{
    static const char *const names[TAC_COLL_COUNT] = {
        "allreduce", "reduce_scatter", "allgather", "broadcast",
        "barrier",   "send",           "recv"};
    return (unsigned)coll < TAC_COLL_COUNT ? names[coll] : "?";
}
