/* tacit/rng.h: counter-based random numbers (Philox4x32-10).
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1,
 * 2, 3", SC'11. A value is a pure function of (seed, stream, step, index), so
 * results depend on neither the number of ranks nor of threads, and nothing
 * has to be saved but the key. Thread-safe: there is no state. */
#ifndef TACIT_RNG_H
#define TACIT_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

/* What a stream is for; the value enters the counter. Users' own streams start
 * at TAC_STREAM_USER. */
typedef enum tac_stream {
    TAC_STREAM_INIT = 1, /* index = element, step = tensor id */
    TAC_STREAM_SHUFFLE,  /* step = epoch */
    TAC_STREAM_DROPOUT,  /* step = step, layer; index = sample, element */
    TAC_STREAM_SPLIT,    /* train/validation split */
    TAC_STREAM_SYNTH,
    TAC_STREAM_ROUND,       /* stochastic rounding */
    TAC_STREAM_SHARD,       /* which samples belong to which rank */
    TAC_STREAM_SHARD_ORDER, /* step = rank, epoch */
    TAC_STREAM_USER = 64
} tac_stream;

typedef struct tac_rng_key {
    uint64_t seed;
    uint32_t stream; /* a tac_stream; the lower 16 bits enter the counter */
    uint64_t step;   /* the lower 48 bits enter the counter */
} tac_rng_key;

/* The raw generator: counter[4] and key[2] to out[4]. */
TAC_API void tac_philox4x32(const uint32_t counter[4], const uint32_t key[2],
                            uint32_t out[4]);
/* Four 32-bit words of block `block` of the key's sequence. */
TAC_API void tac_rng_block(const tac_rng_key *key, uint64_t block,
                           uint32_t out[4]);
/* The functions below cut the same blocks in different ways, so a key should be
 * used with one of them only.
 *
 * Element `index` of the key's sequence of 32-bit words. */
TAC_API uint32_t tac_rng_u32(const tac_rng_key *key, uint64_t index);
/* 53-bit uniform in [0, 1). */
TAC_API double tac_rng_uniform(const tac_rng_key *key, uint64_t index);
/* Standard normal (Box-Muller on one block an index). */
TAC_API double tac_rng_normal(const tac_rng_key *key, uint64_t index);
/* Unbiased integer in [0, bound); bound > 0. */
TAC_API uint64_t tac_rng_below(const tac_rng_key *key, uint64_t index,
                               uint64_t bound);
/* Fisher-Yates permutation of 0..n-1 into out (caller's, n entries). */
TAC_API void tac_rng_permutation(const tac_rng_key *key, uint32_t *out,
                                 size_t n);

TAC_END_DECLS

#endif
