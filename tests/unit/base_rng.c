/* base_rng.c: Philox's known answers, and sanity of what is drawn from it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/rng.h"

/* Random123's kat_vectors, lines "philox4x32 10". */
Test(rng, known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        uint32_t got[4] = {1, 2, 3, 4};
        tac_philox4x32(rows[i].counter, rows[i].key, got);
        cr_assert_arr_eq(got, rows[i].want, sizeof got, "row %zu", i);
    }
}

Test(rng, output_may_be_the_counter)
{
    uint32_t c[4] = {0, 0, 0, 0};
    const uint32_t key[2] = {0, 0};
    const uint32_t want[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    tac_philox4x32(c, key, c);
    cr_assert_arr_eq(c, want, sizeof c);
}

/* The layout of the counter is a file format: checkpoints rely on it. */
Test(rng, key_enters_counter)
{
    const tac_rng_key key = {UINT64_C(0x1122334455667788), 0xabcd1234,
                             UINT64_C(0xffff99aabbccddee)};
    const uint32_t counter[4] = {0x9abcdef0, 0x12345678, 0xbbccddee,
                                 0x123499aa};
    const uint32_t seed[2] = {0x55667788, 0x11223344};
    uint32_t want[4], got[4];
    tac_philox4x32(counter, seed, want);
    tac_rng_block(&key, UINT64_C(0x123456789abcdef0), got);
    cr_assert_arr_eq(got, want, sizeof got);
}

Test(rng, words_are_the_blocks_in_order)
{
    const tac_rng_key key = {7, TAC_STREAM_SYNTH, 3};
    for (uint64_t i = 0; i < 41; ++i) {
        uint32_t block[4];
        tac_rng_block(&key, i / 4, block);
        cr_assert_eq(tac_rng_u32(&key, i), block[i % 4]);
    }
}

Test(rng, every_part_of_the_key_matters)
{
    const tac_rng_key base = {5, 6, 7};
    const tac_rng_key others[] = {
        {4, 6, 7}, {5 | UINT64_C(1) << 63, 6, 7}, {5, 7, 7},
        {5, 6, 8}, {5, 6, 7 | UINT64_C(1) << 47},
    };
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k) {
        int same = 0;
        for (uint64_t i = 0; i < 100; ++i)
            same += tac_rng_u32(&base, i) == tac_rng_u32(&others[k], i);
        cr_assert(same <= 1, "key %zu gives the same numbers", k);
    }
}

/* Chi-square over 64 cells, 63 degrees of freedom: mean 63, deviation 11.2. The
 * numbers are fixed, so this passes always or never. */
static double chi_square(const int *counts, int cells, double expected)
{
    double sum = 0;
    for (int i = 0; i < cells; ++i)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

Test(rng, uniform_is_uniform)
{
    enum { N = 64000, CELLS = 64 };
    const tac_rng_key key = {1, TAC_STREAM_USER, 0};
    int counts[CELLS] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < N; ++i) {
        const double u = tac_rng_uniform(&key, i);
        cr_assert(u >= 0 && u < 1);
        sum += u;
        ++counts[(int)(u * CELLS)];
    }
    cr_assert_float_eq(sum / N, 0.5, 4 * sqrt(1.0 / 12 / N));
    const double x2 = chi_square(counts, CELLS, (double)N / CELLS);
    cr_assert(x2 > 20 && x2 < 120, "chi-square %g", x2);
}

Test(rng, normal_has_the_moments)
{
    enum { N = 100000 };
    const tac_rng_key key = {2, TAC_STREAM_INIT, 9};
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
    int within_one = 0;
    for (uint64_t i = 0; i < N; ++i) {
        const double z = tac_rng_normal(&key, i);
        cr_assert(isfinite(z));
        m1 += z;
        m2 += z * z;
        m3 += z * z * z;
        m4 += z * z * z * z;
        within_one += fabs(z) < 1;
    }
    const double error = 4 / sqrt(N);
    cr_assert_float_eq(m1 / N, 0, error);
    cr_assert_float_eq(m2 / N, 1, error * sqrt(2));
    cr_assert_float_eq(m3 / N, 0, error * sqrt(15));
    cr_assert_float_eq(m4 / N, 3, error * sqrt(96));
    cr_assert_float_eq((double)within_one / N, 0.682689, error / 2);
}

Test(rng, below_is_even_and_in_range)
{
    static const uint64_t bounds[] = {1, 2, 3, 7, 10};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; ++b) {
        const tac_rng_key key = {3, TAC_STREAM_SPLIT, b};
        const int n = 7000 * (int)bounds[b];
        int counts[10] = {0};
        for (int i = 0; i < n; ++i) {
            const uint64_t x = tac_rng_below(&key, (uint64_t)i, bounds[b]);
            cr_assert(x < bounds[b]);
            ++counts[x];
        }
        for (uint64_t k = 0; k < bounds[b]; ++k)
            cr_assert(abs(counts[k] - 7000) < 5 * 84, "bound %d: %d times %d",
                      (int)bounds[b], counts[k], (int)k);
    }
}

/* With a bound of three quarters of 2^64 a quarter of the draws is refused, so
 * second halves and further blocks are used. Without refusal the lowest third
 * of the results would come half of the time. */
Test(rng, below_draws_again)
{
    const uint64_t bound = UINT64_C(3) << 62;
    const tac_rng_key key = {4, TAC_STREAM_USER, 0};
    int low = 0;
    for (uint64_t i = 0; i < 30000; ++i) {
        const uint64_t x = tac_rng_below(&key, i, bound);
        cr_assert(x < bound);
        low += x < bound / 3;
    }
    cr_assert(abs(low - 10000) < 5 * 82, "%d of 30000", low);
    cr_assert(tac_rng_below(&key, 0, UINT64_MAX) < UINT64_MAX);
}

static void expect_permutation(size_t n)
{
    const tac_rng_key key = {8, TAC_STREAM_SHUFFLE, n};
    uint32_t *p = malloc((n + 1) * sizeof *p);
    unsigned char *seen = calloc(n + 1, 1);
    cr_assert(p && seen);
    memset(p, 0xff, (n + 1) * sizeof *p);
    tac_rng_permutation(&key, p, n);
    cr_assert_eq(p[n], UINT32_MAX, "wrote beyond the end");
    for (size_t i = 0; i < n; ++i) {
        cr_assert(p[i] < n && !seen[p[i]], "n=%zu", n);
        seen[p[i]] = 1;
    }
    free(seen);
    free(p);
}

Test(rng, permutation_is_one)
{
    static const size_t sizes[] = {0, 1, 2, 3, 17, 1000, 54999};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        expect_permutation(sizes[i]);
}

/* All 24 orders of four elements, each as often as the others. */
Test(rng, permutations_are_even)
{
    enum { N = 24000 };
    int counts[256] = {0}, kinds = 0;
    for (uint64_t epoch = 0; epoch < N; ++epoch) {
        const tac_rng_key key = {11, TAC_STREAM_SHUFFLE, epoch};
        uint32_t p[4];
        tac_rng_permutation(&key, p, 4);
        ++counts[p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6];
    }
    for (int i = 0; i < 256; ++i) {
        if (counts[i] == 0) continue;
        ++kinds;
        cr_assert(abs(counts[i] - 1000) < 5 * 31, "%02x: %d", i, counts[i]);
    }
    cr_assert_eq(kinds, 24);
}
