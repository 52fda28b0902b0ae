/* folded.h: what the algorithms for a power of two of ranks share: chunks, the
 * folding before and after, and where the partial sums are. */
#ifndef TACIT_COMM_FOLDED_H
#define TACIT_COMM_FOLDED_H

#include "algs/direct.h"
#include "algs/fold.h"
#include "algs/partial.h"

typedef struct tac__folded {
    size_t pos, n; /* the chunk, in elements */
    size_t most;   /* elements a chunk */
    int mask;      /* of the round */
    int half;      /* rabenseifner: gathering */
} tac__folded;

tac__folded *tac__folded_program(const tac_req *req);
tac_status tac__folded_start(tac_req *req);

/* The chunk's partial sums: in the destination where its elements are such,
 * else in the staging. */
char *tac__folded_sums(const tac_req *req);
/* Room for as many that arrive. */
char *tac__folded_arrivals(const tac_req *req);
/* The chunk's elements in the destination. */
char *tac__folded_result(const tac_req *req);

/* sums[at .. at + n) with as many arrivals from rank `peer`: lower rank first.
 */
void tac__folded_add(tac_req *req, size_t at, size_t n, int peer);
/* sums[at .. at + n) become elements. */
void tac__folded_finish(tac_req *req, size_t at, size_t n);

/* The rounds between the ranks that are left: next starts one, or works on what
 * has arrived; *done: this rank has the whole result. */
tac_status tac__folded_step(tac_req *req, tac__advance_fn *round);

#endif
