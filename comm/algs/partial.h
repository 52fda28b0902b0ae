/* partial.h: partial sums, for algorithms that add in several places.
 *
 * What travels between ranks before the last addition is not rounded to the
 * elements' type: f16 and bf16 travel as f32, integers as 64 bits if they are
 * averaged or scaled, everything else as it is. So each element is rounded
 * once, when the reduction is complete, as in the algorithms that add in one
 * place; only the order of the additions differs. */
#ifndef TACIT_COMM_PARTIAL_H
#define TACIT_COMM_PARTIAL_H

#include "algs/algs.h"

typedef struct tac__partial {
    tac_dtype dtype;
    size_t esize;
    int as_is; /* the source's elements are partial sums already */
} tac__partial;

tac__partial tac__partial_of(const tac_req *req);

/* Elements [at, at + n) of the source as partial sums in `to`, prescaled. */
void tac__partial_load(tac_req *req, size_t at, size_t n, void *to);
/* sum = sum op the source's elements [at, at + n). */
void tac__partial_add(tac_req *req, void *sum, size_t at, size_t n);
/* to = left op right; `to` may be one of them. */
void tac__partial_combine(tac_req *req, void *to, const void *left,
                          const void *right, size_t n);
/* Complete sums become n elements: divided by the number of ranks (avg),
 * postscaled, rounded. */
void tac__partial_store(tac_req *req, const void *sum, size_t n, void *to);
/* The middle part alone, on partial sums in place: for wires. */
void tac__partial_finish(const tac_req *req, float *sum, size_t n);

#endif
