/* topk_select.c: the k elements of the largest magnitude, exactly.
 *
 * Magnitudes are ordered as their bits are. Three histograms of 11, 10 and 10
 * bits find the k-th largest, and one more pass collects in the order of
 * indices, so the result depends on nothing but the values: O(n), four reads
 * of x, 8 KiB of scratch, nothing is moved. */
#include <string.h>

#include "codecs/topk.h"

static uint32_t magnitude(const float *x)
{
    uint32_t u;
    memcpy(&u, x, sizeof u);
    return u & UINT32_C(0x7fffffff);
}

enum { BINS = 2048 };

/* Of the magnitudes that agree with `prefix` above bit shift + bits, counts by
 * the `bits` bits from `shift` on. */
static void count(const float *x, size_t n, uint32_t prefix, unsigned shift,
                  unsigned bits, size_t *bins)
{
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    memset(bins, 0, BINS * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = magnitude(x + i) >> shift;
        if (u >> bits == prefix) bins[u & mask]++;
    }
}

/* The k-th largest magnitude; *ties: how many of those that are equal to it
 * belong to the k. */
static uint32_t threshold(const float *x, size_t n, size_t k, size_t *ties)
{
    static const unsigned shifts[] = {20, 10, 0}, widths[] = {11, 10, 10};
    size_t bins[BINS];
    uint32_t prefix = 0;
    for (int level = 0; level < 3; level++) {
        uint32_t bin = (UINT32_C(1) << widths[level]) - 1;
        count(x, n, prefix, shifts[level], widths[level], bins);
        for (; bins[bin] < k; bin--) k -= bins[bin];
        prefix = prefix << widths[level] | bin;
    }
    *ties = k;
    return prefix;
}

tac__topk_cursor tac__topk_select(const float *x, size_t n, size_t k)
{
    tac__topk_cursor c = {.x = x, .k = k};
    c.least = threshold(x, n, k, &c.ties);
    return c;
}

size_t tac__topk_next(tac__topk_cursor *c, size_t most, size_t base,
                      uint32_t *index, float *value)
{
    const size_t wanted = c->k < most ? c->k : most;
    size_t m = 0, i = c->at;
    for (; m < wanted; i++) {
        const uint32_t u = magnitude(c->x + i);
        if (u < c->least || (u == c->least && c->ties == 0)) continue;
        c->ties -= u == c->least;
        index[m] = (uint32_t)(base + i);
        value[m++] = c->x[i];
    }
    c->at = i;
    c->k -= m;
    return m;
}
