/* algs.h: every algorithm's descriptor; the table is alg_table.c. */
#ifndef TACIT_COMM_ALGS_H
#define TACIT_COMM_ALGS_H

#include "comm_impl.h"

extern const tac__alg tac__alg_codec_allreduce;

extern const tac__alg tac__alg_self_allreduce;
extern const tac__alg tac__alg_self_reduce_scatter;
extern const tac__alg tac__alg_self_allgather;
extern const tac__alg tac__alg_self_broadcast;
extern const tac__alg tac__alg_self_barrier;

extern const tac__alg tac__alg_shared_flat;
extern const tac__alg tac__alg_shared_allreduce;
extern const tac__alg tac__alg_shared_reduce_scatter;
extern const tac__alg tac__alg_shared_allgather;
extern const tac__alg tac__alg_shared_broadcast;
extern const tac__alg tac__alg_shared_barrier;

extern const tac__alg tac__alg_direct_allreduce;
extern const tac__alg tac__alg_recursive_doubling;
extern const tac__alg tac__alg_rabenseifner;
extern const tac__alg tac__alg_ring_allreduce;
extern const tac__alg tac__alg_hierarchical_allreduce;
extern const tac__alg tac__alg_direct_reduce_scatter;
extern const tac__alg tac__alg_ring_reduce_scatter;
extern const tac__alg tac__alg_direct_allgather;
extern const tac__alg tac__alg_ring_allgather;
extern const tac__alg tac__alg_tree_broadcast;
extern const tac__alg tac__alg_scatter_broadcast;
extern const tac__alg tac__alg_dissemination_barrier;

/* Ranges and costs that several algorithms share. */
typedef struct tac__range {
    size_t begin, end;
} tac__range;
/* Rank r's part of n elements: equal parts, cut at multiples of `unit`. */
tac__range tac__slice(size_t n, size_t unit, int size, int r);
static inline size_t tac__min(size_t a, size_t b)
{
    return a < b ? a : b;
}
/* Reduces the p arrays in scratch.srcs into dst as the request says. */
void tac__reduce_srcs(tac_req *req, void *dst, size_t n);
/* The same into n_also more arrays, without counting the time; stream:
 * kernels/reduce.h. */
void tac__reduce_into(const tac_req *req, void *dst, size_t n,
                      void *const *also, int n_also, unsigned stream);

#endif
