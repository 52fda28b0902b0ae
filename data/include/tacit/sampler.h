/* tacit/sampler.h: which samples a rank sees, and in which order.
 *
 * The semantics are those of PyTorch's DistributedSampler. N samples are put
 * in an order `idx`: a permutation that depends on (seed, epoch), or 0..N-1.
 * With R replicas each gets ceil(N/R) samples (floor(N/R) with drop_last): rank
 * r gets idx[r], idx[r+R], idx[r+2R], ... Positions from N on wrap around
 * (idx[position mod N]) so that all ranks have equally many; such samples are
 * marked as not valid, and an exact metric counts only valid ones.
 *
 * So a step in which each of R ranks takes b samples uses the R*b consecutive
 * positions [s*R*b, (s+1)*R*b) of the order: the set of samples in a step is
 * the same for 1 x 64, 2 x 32, 4 x 16 and 8 x 8. A sample's position is also
 * the right index for random numbers that must not depend on the number of
 * ranks (dropout).
 *
 * The sampler's state is the seed, the epoch and the position: the number of
 * samples that all ranks together have used of this epoch. A start at any
 * position costs O(1), also with another number of replicas than the one that
 * saved it. The permutation is Fisher-Yates over Philox (key {seed,
 * TAC_STREAM_SHUFFLE, epoch}): O(N) at each change of epoch, 4 bytes a sample.
 *
 * With shards (tacit/shards.h) each rank has samples of its own instead. In
 * each epoch they come in an order of their own, a permutation that depends on
 * (seed, epoch, rank): sample k of rank r has the position r + k*R. All ranks
 * get as many as the largest shard has (with drop_last the smallest); a rank
 * that has fewer begins anew, and what it gets then is not valid. Shards that
 * tac_shards_create makes are equal up to one sample, the larger ones first, so
 * that the positions of valid samples are 0..N-1 here, too.
 *
 * Thread-safety: calls that take a const sampler may run in several threads as
 * long as none changes it. */
#ifndef TACIT_SAMPLER_H
#define TACIT_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"
#include "tacit/shards.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

typedef struct tac_sampler tac_sampler;

typedef struct tac_sampler_config {
    size_t struct_size;
    size_t count;    /* N, 1 .. 2^32 - 1 */
    size_t replicas; /* R, at least 1 */
    size_t rank;     /* 0 .. R-1 */
    int shuffle;     /* 0: in the order 0..N-1 */
    int drop_last;   /* 1: drop the last N mod R instead of padding */
    uint64_t seed;
    const tac_shards *shards; /* of N samples and R ranks, copied from; NULL:
                                 none */
} tac_sampler_config;

#define TAC_SAMPLER_CONFIG_INIT                            \
    {                                                      \
        sizeof(tac_sampler_config), 0, 1, 0, 1, 0, 0, NULL \
    }

typedef struct tac_sample {
    uint64_t position; /* in the order of the epoch, over all ranks */
    uint32_t index;    /* in the dataset */
    int valid;         /* 0: padding, seen already in this epoch (or of a rank
                          without samples) */
} tac_sample;

/* Creates a sampler at epoch 0, position 0. Errors: ARG, with its own message
 * for count 0, replicas 0 and rank out of range; NOMEM. */
TAC_API tac_status tac_sampler_create(tac_context *ctx,
                                      const tac_sampler_config *config,
                                      tac_sampler **out);
TAC_API void tac_sampler_destroy(tac_sampler *s); /* NULL is legal */

/* Samples that this rank gets in a whole epoch, padding included: the same on
 * every rank. May be 0 with drop_last. */
TAC_API size_t tac_sampler_length(const tac_sampler *s);
/* Samples left for this rank from `position` on, the same on every rank. */
TAC_API size_t tac_sampler_remaining(const tac_sampler *s, uint64_t position);

TAC_API size_t tac_sampler_count(const tac_sampler *s);    /* N */
TAC_API size_t tac_sampler_replicas(const tac_sampler *s); /* R */
TAC_API uint64_t tac_sampler_epoch(const tac_sampler *s);
TAC_API uint64_t tac_sampler_position(const tac_sampler *s);

/* Makes the order of `epoch` and goes to its start. Without a call for every
 * epoch the order repeats (a loader's start_epoch calls it). */
TAC_API void tac_sampler_set_epoch(tac_sampler *s, uint64_t epoch);
/* Goes to a position of this epoch; a position past the end leaves nothing. */
TAC_API void tac_sampler_seek(tac_sampler *s, uint64_t position);

/* This rank's samples of the steps that begin at `position`: up to n, written
 * to out; returns how many. Changes nothing. With k = the returned number the
 * next step begins at position + k * replicas on every rank, provided that all
 * asked for the same n. */
TAC_API size_t tac_sampler_get(const tac_sampler *s, uint64_t position,
                               size_t n, tac_sample *out);
/* The same from the sampler's own position, which advances. 0 at the end. */
TAC_API size_t tac_sampler_next(tac_sampler *s, size_t n, tac_sample *out);

/* Valid samples over all ranks in a step of `n` a rank that begins at
 * `position`: what a mean over the step is divided by. No communication. */
TAC_API size_t tac_sampler_step_count(const tac_sampler *s, uint64_t position,
                                      size_t n);
/* The same over the ranks first .. end-1 alone, at most R. */
TAC_API size_t tac_sampler_step_count_of(const tac_sampler *s,
                                         uint64_t position, size_t n,
                                         size_t first, size_t end);

/* State visitor (tac_state_walk_fn): "seed", "epoch", "position". What a
 * loader of state writes takes effect at once. */
TAC_API tac_status tac_sampler_walk(void *sampler, const tac_state_visitor *v);

TAC_END_DECLS

#endif
