/* hierarchical.h: how the hierarchical allreduce cuts a buffer, and the
 * requests on the children that it is made of (hierarchical_parts.c). */
#ifndef TACIT_COMM_HIERARCHICAL_H
#define TACIT_COMM_HIERARCHICAL_H

#include "algs/direct.h"
#include "levels.h"

/* Elements of a carrier's slice of a full chunk; chunks; the last has the tail.
 */
typedef struct tac__hier {
    size_t piece, chunks;
} tac__hier;

tac__hier tac__hier_cut(const tac_req *req);
/* What carrier l takes across of chunk i. */
tac__range tac__hier_carried(const tac_req *req, tac__hier h, size_t i, int l);

/* Part k of what takes the contributions of this host's ranks to chunk i to its
 * carriers. 0: there are no more parts. */
int tac__hier_in(const tac_req *req, tac__hier h, size_t i, int k,
                 tac_req *want);
/* ... of what takes the results from the carriers to this host's ranks. */
int tac__hier_out(const tac_req *req, tac__hier h, size_t i, int k,
                  tac_req *want);
/* This carrier's part across. */
tac_req tac__hier_cross(const tac_req *req, tac__hier h, size_t i);

/* Where an average is divided: by both levels' ranks (f16, bf16), before
 * anything crosses (exact: p is a power of two), or at the end. */
typedef enum tac__division {
    TAC__DIVIDE_NOT,
    TAC__DIVIDE_LEVELS,
    TAC__DIVIDE_BEFORE,
    TAC__DIVIDE_AFTER
} tac__division;
tac__division tac__hier_division(const tac_req *req);

#endif
