/* rng.c: Philox4x32-10 and what is drawn from it.
 *
 * Cost: ten rounds of two 32x32-bit products a block of 128 bits. Reference:
 * Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
 * SC'11; its known answers are in the tests. */
#include "tacit/rng.h"

#include <math.h>

#include "tacit/status.h"

enum { PHILOX_ROUNDS = 10 };
#define PHILOX_M0 UINT64_C(0xd2511f53)
#define PHILOX_M1 UINT64_C(0xcd9e8d57)
#define PHILOX_W0 UINT32_C(0x9e3779b9) /* golden ratio */
#define PHILOX_W1 UINT32_C(0xbb67ae85) /* sqrt(3) - 1 */

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    const uint64_t p0 = PHILOX_M0 * c[0];
    const uint64_t p1 = PHILOX_M1 * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)p0;
}

void tac_philox4x32(const uint32_t counter[4], const uint32_t key[2],
                    uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; ++round) {
        philox_round(c, k0, k1);
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    for (int i = 0; i < 4; ++i) out[i] = c[i];
}

/* Counter, from its low end: 64 bits of block, 48 of step, 16 of stream. */
void tac_rng_block(const tac_rng_key *key, uint64_t block, uint32_t out[4])
{
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    const uint32_t counter[4] = {
        (uint32_t)block,
        (uint32_t)(block >> 32),
        (uint32_t)key->step,
        (uint32_t)(key->step >> 32 & 0xffff) | key->stream << 16,
    };
    tac_philox4x32(counter, seed, out);
}

static uint64_t join(const uint32_t w[2])
{
    return (uint64_t)w[1] << 32 | w[0];
}

static double to_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint32_t tac_rng_u32(const tac_rng_key *key, uint64_t index)
{
    uint32_t w[4];
    tac_rng_block(key, index / 4, w);
    return w[index % 4];
}

double tac_rng_uniform(const tac_rng_key *key, uint64_t index)
{
    uint32_t w[4];
    tac_rng_block(key, index / 2, w);
    return to_unit(join(w + index % 2 * 2));
}

double tac_rng_normal(const tac_rng_key *key, uint64_t index)
{
    const double two_pi = 6.283185307179586476925286766559;
    uint32_t w[4];
    tac_rng_block(key, index, w);
    const double radius = 1.0 - to_unit(join(w)); /* (0, 1]: log is finite */
    const double angle = to_unit(join(w + 2));
    return sqrt(-2.0 * log(radius)) * cos(two_pi * angle);
}

/* Draws above the largest multiple of `bound` would favour small results; they
 * are drawn again: first from the block's other half, then (with a chance below
 * bound / 2^64 each time) from Philox of the block itself. */
uint64_t tac_rng_below(const tac_rng_key *key, uint64_t index, uint64_t bound)
{
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    uint32_t w[4];
    TAC_ASSERT(bound > 0);
    const uint64_t excess = (UINT64_MAX % bound + 1) % bound;
    const uint64_t last = UINT64_MAX - excess;
    tac_rng_block(key, index, w);
    for (;;) {
        if (join(w) <= last) return join(w) % bound;
        if (join(w + 2) <= last) return join(w + 2) % bound;
        tac_philox4x32(w, seed, w);
    }
}

void tac_rng_permutation(const tac_rng_key *key, uint32_t *out, size_t n)
{
    TAC_ASSERT(n <= UINT32_MAX);
    for (size_t i = 0; i < n; ++i) out[i] = (uint32_t)i;
    for (size_t i = n; i > 1; --i) {
        const size_t j = (size_t)tac_rng_below(key, i - 1, i);
        const uint32_t last = out[i - 1];
        out[i - 1] = out[j];
        out[j] = last;
    }
}
