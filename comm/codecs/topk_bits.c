/* topk_bits.c: numbers of few bits side by side in 32-bit words, the lowest
 * bits first. */
#include <string.h>

#include "codecs/topk.h"

void tac__bits_put(uint32_t *words, size_t at, unsigned bits, const uint32_t *x,
                   size_t n)
{
    if (bits == 32 && at % 32 == 0) {
        memcpy(words + at / 32, x, n * sizeof *x);
        return;
    }
    for (size_t i = 0; i < n; i++, at += bits) {
        uint32_t *w = words + at / 32;
        const unsigned shift = (unsigned)(at % 32);
        const uint64_t y = (uint64_t)x[i] << shift;
        w[0] |= (uint32_t)y;
        if (shift + bits > 32) w[1] |= (uint32_t)(y >> 32);
    }
}

void tac__bits_get(const uint32_t *words, size_t at, unsigned bits, uint32_t *x,
                   size_t n)
{
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    if (bits == 32 && at % 32 == 0) {
        memcpy(x, words + at / 32, n * sizeof *x);
        return;
    }
    for (size_t i = 0; i < n; i++, at += bits) {
        const uint32_t *w = words + at / 32;
        const unsigned shift = (unsigned)(at % 32);
        uint64_t y = w[0];
        if (shift + bits > 32) y |= (uint64_t)w[1] << 32;
        x[i] = (uint32_t)(y >> shift & mask);
    }
}
