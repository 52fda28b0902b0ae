/* segments.c: which layers of a chain are run again together.
 * Source: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory
 * Cost", 2016, whose equal segments of sqrt(L) layers hold 2 sqrt(L) outputs.
 *
 * Backward passes the last segment first, and what it has passed is free again
 * (tape_block_again.c). So while it is in segment k it holds the outputs of
 * segments 1 to k alone, what segment k makes besides its output, and
 * gradients: those of both ends, and one inside if there is an inside.
 *
 *     held(k) = kept(1) + ... + kept(k) + inside(k) + gradients(k)
 *
 * Segments therefore grow towards the input. With L equal layers without
 * dropout, a segment of s > 1 layers has held(k) = k + (s - 1) + 3, less 1 for
 * the first, whose input has no gradient; of a single one, k + 2. So a budget
 * of C outputs takes (C-2) + (C-4) + (C-5) + ... + 1 + 1 layers: C is about
 * sqrt(2 L) + 2, where without recompute there are L + 2. For 12 layers it is 7
 * of 14 (5, 3, 2, 1, 1), for 24 layers 10 of 26.
 *
 * The smallest budget is found by bisection; for one budget each segment in
 * turn takes as many layers as fit, which is best for equal layers. Cost:
 * L log(elements). */
#include "segments.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What backward holds in the segment [first, end), without the outputs of those
 * before it. */
static size_t held(const tac__chain *c, size_t first, size_t end)
{
    const size_t output = c->kept[end - 1];
    const size_t input = first > 0 ? c->kept[first - 1] : 0;
    size_t made = 0, inside = 0;

    for (size_t i = first; i < end; ++i) {
        made += c->made[i];
        if (i + 1 < end) inside = larger(inside, c->kept[i]);
    }
    return made + output + input + inside;
}

/* Segments of a budget; 0 if it is not enough. */
static size_t split(const tac__chain *c, size_t budget, size_t *last)
{
    size_t kept = 0, n = 0;

    for (size_t first = 0; first < c->n; ++n) {
        size_t end = first + 1;
        if (kept + held(c, first, end) > budget) return 0;
        while (end < c->n && kept + held(c, first, end + 1) <= budget) ++end;
        kept += c->kept[end - 1];
        last[n] = end - 1;
        first = end;
    }
    return n;
}

static size_t smallest_budget(const tac__chain *c, size_t *last)
{
    size_t low = 0, high = 0; /* too little; enough: one segment */

    for (size_t i = 0; i < c->n; ++i) high += c->made[i] + 3 * c->kept[i];
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (split(c, middle, last) > 0)
            high = middle;
        else
            low = middle;
    }
    return high;
}

size_t tac__segments(const tac__chain *chain, size_t *last)
{
    return split(chain, smallest_budget(chain, last), last);
}
