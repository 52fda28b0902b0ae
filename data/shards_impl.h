/* shards_impl.h: what the files of shards share. */
#ifndef TAC_DATA_SHARDS_IMPL_H
#define TAC_DATA_SHARDS_IMPL_H

#include "tacit/shards.h"

struct tac_shards {
    size_t ranks;
    size_t *first;   /* (ranks + 1) of each rank in index, and the end */
    uint32_t *index; /* (count) */
};

/* Room for shards; sizes and samples are left to the caller. */
tac_status tac__shards_alloc(tac_context *ctx, size_t ranks, size_t count,
                             tac_shards **out);

/* Samples by label. */
typedef struct tac__pools {
    size_t classes;
    size_t *first;   /* (classes + 1) of each class in index, and the end */
    uint32_t *index; /* (count) */
} tac__pools;

/* Sorts the samples of `order` (NULL: 0..N-1) by label, stably, into pools
 * whose arrays are there. */
void tac__pools_fill(const tac_shards_config *c, const uint32_t *order,
                     tac__pools *pools);

/* shards_dirichlet.c: fills s->index from the pools; s->first is set. Errors:
 * NOMEM. */
tac_status tac__shards_dirichlet(tac_context *ctx, const tac_shards_config *c,
                                 double a, const tac__pools *pools,
                                 tac_shards *s);

#endif
