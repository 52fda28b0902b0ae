/* comm_wrong.h: "#wrong is 0" for all ops x dtypes x sizes {0, 1, 3, 17, 4095,
 * 4096, 1000001}: inputs that make every result exact, an oracle of its own
 * (comm_suite.h), outputs poisoned first. The large size takes its place and
 * its memory in turn. */
#ifndef COMM_WRONG_H
#define COMM_WRONG_H

#include "comm_suite.h"

enum { WRONG_BIG = TESTS_SLOW ? 50001 : 1000001 };

static inline int wrong_open(env *e, tac_comm *comm)
{
    *e = (env){
        .comm = comm, .rank = tac_comm_rank(comm), .p = tac_comm_size(comm)};
    e->bytes = (size_t)WRONG_BIG * 8 + GUARD;
    for (int i = 0; i < 2; i++) {
        void *p = NULL;
        e->plain[i] = malloc(e->bytes);
        if (!CHECK_OK(tac_mem_alloc(comm, e->bytes, &p))) return 0;
        e->symmetric[i] = p;
        if (!CHECK(e->plain[i] != NULL)) return 0;
    }
    return 1;
}

/* Counts of one rank's block; the total stays below WRONG_BIG elements. */
static inline size_t wrong_count(const env *e, tac_coll coll, size_t count)
{
    const int blocks =
        coll == TAC_COLL_REDUCE_SCATTER || coll == TAC_COLL_ALLGATHER;
    const size_t most = WRONG_BIG / (blocks ? (size_t)e->p : 1);
    return count < most ? count : most;
}

static inline void wrong_one(env *e, shape s, size_t count, unsigned n)
{
    s.count = wrong_count(e, s.coll, count);
    s.root = (int)(n % (unsigned)e->p);
    for (unsigned m = 0; m < 2 * MEMORIES; m++) {
        if (count > 4096 && m != n % (2 * MEMORIES)) continue;
        s.in_place = (int)(m & 1);
        s.memory = (memory)(m / 2);
        run_shape(e, &s);
    }
}

static inline void wrong_run(tac_comm *comm, void *arg)
{
    static const size_t counts[] = {0, 1, 3, 17, 4095, 4096, WRONG_BIG};
    static const tac_coll colls[] = {TAC_COLL_ALLREDUCE,
                                     TAC_COLL_REDUCE_SCATTER,
                                     TAC_COLL_ALLGATHER, TAC_COLL_BROADCAST};
    unsigned n = 0;
    env e;
    (void)arg;
    if (!wrong_open(&e, comm)) return;
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < TAC_DTYPE_COUNT; t++)
            for (int op = 0; op < TAC_OP_COUNT; op++, n++) {
                if (k >= 2 && op > 0) continue;
                for (int i = 0; i < 7; i++) {
                    const shape s = {.coll = colls[k],
                                     .dtype = (tac_dtype)t,
                                     .op = (tac_op)op};
                    /* Blocks: the large one for two dtypes. */
                    if (k > 0 && i == 6 && t != TAC_F32 && t != TAC_BF16)
                        continue;
                    wrong_one(&e, s, counts[i], n);
                }
            }
    env_close(&e);
}

#endif
