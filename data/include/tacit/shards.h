/* tacit/shards.h: which samples belong to which rank, by their labels.
 *
 * Averaging parameters now and then has to live with ranks that see different
 * data. How different is a spec:
 *
 *   iid           no shards: the sampler deals all samples anew each epoch
 *   sorted        samples in the order of their labels (of equal ones, of their
 *                 indices), cut into as many runs as there are ranks
 *   dirichlet:A   each rank draws its mix of labels from a Dirichlet
 *                 distribution, A > 0 (Hsu, Qi, Brown, "Measuring the Effects
 *                 of Non-Identical Data Distribution", 2019): with a large A
 *                 all mixes are that of the data, with a small one a rank has
 *                 few labels
 *
 * Either way each sample belongs to one rank, and the shards' sizes are equal
 * up to one, the larger ones first.
 *
 * The Dirichlet distribution of C classes has the concentrations A*C*share of
 * the class in the data: A for each if all classes are as frequent. Rank after
 * rank fills its shard from what is left of each class, by its mix, rounded by
 * largest remainders; where a class runs out, the others share its place in the
 * mix's proportions. The last ranks therefore get what is left. Which samples
 * of a class a rank gets is random.
 *
 * Shards are a pure function of (spec, labels, classes, ranks, seed), so each
 * rank makes them for itself. (The mixes go through the C library's logarithm
 * and exponential; machines with different ones could differ in a sample.)
 * Cost: O(N + R*C), 4 bytes a sample; several times as much while they are
 * made.
 *
 * Thread-safety: shards do not change after their creation. */
#ifndef TACIT_SHARDS_H
#define TACIT_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"
#include "tacit/dataset.h"

TAC_BEGIN_DECLS

typedef struct tac_shards tac_shards;

typedef struct tac_shards_config {
    size_t struct_size;
    const int32_t *labels; /* (count), each in 0..classes-1; borrowed for the
                              call */
    size_t count;          /* 1 .. 2^32 - 1 */
    size_t classes;        /* 1 .. 2^20 */
    size_t ranks;          /* 1 .. 2^20; may be more than samples */
    uint64_t seed;
} tac_shards_config;

#define TAC_SHARDS_CONFIG_INIT                       \
    {                                                \
        sizeof(tac_shards_config), NULL, 0, 10, 1, 0 \
    }

/* Is `spec` one of the above? Errors: CONFIG. */
TAC_API tac_status tac_shards_check(tac_context *ctx, const char *spec);

/* Makes shards; of "iid" *out is NULL, as the sampler wants it. Errors: CONFIG
 * for the spec; ARG for counts and labels out of range; NOMEM. */
TAC_API tac_status tac_shards_create(tac_context *ctx, const char *spec,
                                     const tac_shards_config *config,
                                     tac_shards **out);
/* The same for all samples of a dataset, with its labels. */
TAC_API tac_status tac_dataset_shards(tac_context *ctx, const tac_dataset *set,
                                      const char *spec, size_t ranks,
                                      uint64_t seed, tac_shards **out);
/* Shards of one's own: rank r has the next sizes[r] entries of `index`, which
 * are 0..N-1 in any order, N the sum of sizes. Both are copied. Errors: ARG,
 * also for a sample that is there twice; NOMEM. */
TAC_API tac_status tac_shards_of(tac_context *ctx, size_t ranks,
                                 const size_t *sizes, const uint32_t *index,
                                 tac_shards **out);
TAC_API void tac_shards_destroy(tac_shards *s); /* NULL is legal */

TAC_API size_t tac_shards_ranks(const tac_shards *s);
TAC_API size_t tac_shards_count(const tac_shards *s); /* of all ranks */
/* Rank r's samples, r < ranks; borrowed. */
TAC_API size_t tac_shards_size(const tac_shards *s, size_t r);
TAC_API const uint32_t *tac_shards_index(const tac_shards *s, size_t r);

TAC_END_DECLS

#endif
