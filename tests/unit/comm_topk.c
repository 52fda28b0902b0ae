/* comm_topk.c: records of topk: bits side by side, levels, what is packed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/topk.h"
#include "tacit/rng.h"

static float value(size_t i, uint64_t seed)
{
    const tac_rng_key key = {seed, TAC_STREAM_USER, 7};
    return (float)tac_rng_normal(&key, i);
}

/* ---- bits -----------------------------------------------------------------
 */

static int bit_of(const uint32_t *words, size_t i)
{
    return (int)(words[i / 32] >> i % 32 & 1);
}

Test(comm_topk, bits_lie_side_by_side)
{
    enum { N = 67 };
    for (unsigned bits = 1; bits <= 32; bits++)
        for (size_t at = 0; at < 70; at += 23) {
            uint32_t words[80] = {0}, x[N], back[N];
            const uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
            for (size_t i = 0; i < N; i++)
                x[i] = (uint32_t)(i * 2654435761u ^ i << 9) & mask;
            tac__bits_put(words, at, bits, x, N);
            for (size_t i = 0; i < N * bits; i++)
                cr_assert_eq(bit_of(words, at + i),
                             (int)(x[i / bits] >> i % bits & 1));
            for (size_t i = 0; i < at; i++) cr_assert_eq(bit_of(words, i), 0);
            for (size_t i = at + N * bits; i < 80 * 32; i++)
                cr_assert_eq(bit_of(words, i), 0);
            memset(back, 0xa5, sizeof back);
            tac__bits_get(words, at, bits, back, N);
            cr_assert_arr_eq(back, x, sizeof x);
        }
}

/* ---- levels ---------------------------------------------------------------
 */

static double round_trip(const float *x, float *y, size_t n, unsigned bits)
{
    float levels[2];
    uint32_t code[256];
    double lost = 0;
    tac__levels_of(x, n, bits, levels);
    tac__levels_encode(levels, bits, x, n, code);
    for (size_t i = 0; i < n; i++) cr_assert_lt(code[i], 1u << bits);
    tac__levels_decode(levels, bits, code, n, y);
    for (size_t i = 0; i < n; i++)
        lost += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return lost;
}

/* No sign is wrong, and a block loses less than it has: also where magnitudes
 * differ by many orders. */
Test(comm_topk, a_block_loses_less_than_it_has)
{
    static const unsigned widths[] = {2, 4, 8};
    for (uint64_t seed = 0; seed < 60; seed++)
        for (int w = 0; w < 3; w++) {
            float x[256], y[256];
            const size_t n = 1 + seed * 37 % 256;
            double has = 0;
            for (size_t i = 0; i < n; i++) {
                x[i] = value(i, seed);
                if (seed % 3 == 1) x[i] *= ldexpf(1, (int)(i % 60) - 30);
                if (seed % 3 == 2) x[i] = copysignf(1e-40f, x[i]);
                has += (double)x[i] * (double)x[i];
            }
            const double lost = round_trip(x, y, n, widths[w]);
            cr_assert(lost < has || has < 1e-60, "%g of %g", lost, has);
            for (size_t i = 0; i < n; i++)
                cr_assert(signbit(x[i]) == signbit(y[i]) || y[i] == 0);
        }
}

/* The best pair of levels, by trying every border between sorted magnitudes. */
static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double best_pair(const float *x, size_t n)
{
    float m[256];
    double best = INFINITY;
    for (size_t i = 0; i < n; i++) m[i] = fabsf(x[i]);
    qsort(m, n, sizeof *m, ascending);
    for (size_t cut = 1; cut <= n; cut++) {
        double lost = 0;
        for (int side = 0; side < 2; side++) {
            const size_t from = side ? cut : 0, to = side ? n : cut;
            double sum = 0, sum2 = 0;
            for (size_t i = from; i < to; i++) {
                sum += (double)m[i];
                sum2 += (double)m[i] * (double)m[i];
            }
            if (to > from) lost += sum2 - sum * sum / (double)(to - from);
        }
        best = fmin(best, lost);
    }
    return best;
}

Test(comm_topk, two_bits_are_the_best_pair)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        float x[256], y[256];
        const size_t n = 2 + seed * 29 % 255;
        for (size_t i = 0; i < n; i++) {
            x[i] = value(i, seed);
            x[i] += copysignf(1.5f, x[i]); /* as the largest are */
        }
        const double lost = round_trip(x, y, n, 2), best = best_pair(x, n);
        cr_assert_leq(lost, best * 1.000001 + 1e-9, "%g", lost / best);
    }
}

Test(comm_topk, more_bits_lose_less)
{
    float x[256], y[256];
    for (size_t i = 0; i < 256; i++) x[i] = value(i, 5);
    const double two = round_trip(x, y, 256, 2),
                 four = round_trip(x, y, 256, 4),
                 eight = round_trip(x, y, 256, 8);
    cr_assert_lt(four, two / 4);
    cr_assert_lt(eight, four / 50);
}

Test(comm_topk, what_is_not_finite_shows)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (int k = 0; k < 3; k++) {
        float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9], levels[2];
        uint32_t code[9];
        x[k * 4] = odd[k];
        tac__levels_of(x, 9, 4, levels);
        tac__levels_encode(levels, 4, x, 9, code);
        tac__levels_decode(levels, 4, code, 9, y);
        for (int i = 0; i < 9; i++) cr_assert(isnan(y[i]));
    }
}

Test(comm_topk, equal_magnitudes_are_exact)
{
    static const unsigned widths[] = {2, 4, 8};
    const float x[] = {3e38f, -3e38f, 3e38f}, z[] = {0, 0, 0};
    float y[3];
    for (int w = 0; w < 3; w++) {
        cr_assert_eq(round_trip(x, y, 3, widths[w]), 0);
        cr_assert_eq(round_trip(z, y, 3, widths[w]), 0);
    }
}

/* ---- records --------------------------------------------------------------
 */

/* What is taken out and what is left make the whole, and as many words are
 * written as were said. */
static void whole_again(const tac__topk *t)
{
    const size_t words = tac__topk_words(t);
    uint32_t *record = malloc((words + 1) * sizeof *record);
    float *x = malloc((t->n + 1) * sizeof *x), *left = malloc(sizeof *x * t->n),
          *got = calloc(t->n + 1, sizeof *got);
    size_t sent = 0;
    record[words] = 0xdeadbeef;
    for (size_t i = 0; i < t->n; i++) left[i] = x[i] = value(i, t->n) + 3;
    tac__topk_pack(t, left, record);
    cr_assert_eq(record[words], 0xdeadbeef);
    cr_assert(tac__topk_add(t, record, got));
    for (size_t i = 0; i < t->n; i++) {
        sent += got[i] != 0;
        cr_assert_float_eq(got[i] + left[i], x[i], 1e-5);
        if (t->value_bits == 32) cr_assert(got[i] == 0 || left[i] == 0);
    }
    cr_assert_eq(sent, tac__topk_count(t));
    free(record);
    free(x);
    free(left);
    free(got);
}

Test(comm_topk, records_hold_what_is_taken)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, 255, 4095, 4097, 9000};
    static const unsigned widths[] = {2, 4, 8, 32};
    static const double shares[] = {1e-9, 1.0 / 64, 0.3, 1};
    for (int s = 0; s < 9; s++)
        for (int w = 0; w < 4; w++)
            for (int f = 0; f < 4; f++) {
                const size_t n = sizes[s];
                whole_again(&(tac__topk){n, n, shares[f], 32, widths[w]});
                whole_again(&(tac__topk){n, 16, shares[f], 4, widths[w]});
                whole_again(&(tac__topk){n, 4096, shares[f], 12, widths[w]});
            }
}

/* 64 of 4096 with 2 bits and indices of 12: 14 * 64 / 4096 = 0.21875 bits a
 * parameter, 146.3 times less than f32, and 64 bits for 256 values. */
Test(comm_topk, sparse_deltas_take_what_was_published)
{
    const size_t n = 4096 * 100;
    const tac__topk t = {n, 4096, 64.0 / 4096, 12, 2};
    const double bits = 32.0 * (double)(tac__topk_words(&t) - 2 * 25);
    cr_assert_eq(tac__topk_count(&t), 6400);
    cr_assert_float_eq(bits / (double)n, 0.21875, 1e-12);
    cr_assert_float_eq(32 * (double)n / bits, 146.3, 0.05);
}

Test(comm_topk, an_index_outside_is_refused)
{
    float x[40] = {0}, y[40] = {0};
    uint32_t record[64];
    const tac__topk t = {40, 40, 0.1, 32, 32}, c = {40, 16, 0.1, 4, 32};
    for (int i = 0; i < 40; i++) x[i] = (float)i + 1;
    tac__topk_pack(&t, x, record);
    cr_assert(tac__topk_add(&t, record, y));
    record[5] = 40;
    cr_assert_not(tac__topk_add(&t, record, y));
    tac__topk_pack(&c, x, record); /* 2 + 2 + 1 */
    cr_assert_eq(tac__topk_count(&c), 5);
    record[5] |= 0xf << 16; /* the last chunk has 8 */
    cr_assert_not(tac__topk_add(&c, record, y));
}
