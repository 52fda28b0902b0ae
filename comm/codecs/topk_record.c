/* topk_record.c: one parameter's record: written by its owner, added by all.
 * Works in blocks of 256 values, so it needs no memory of its own. */
#include <string.h>

#include "codecs/topk.h"

static size_t count_of(const tac__topk *t, size_t n)
{
    const size_t k = (size_t)(t->share * (double)n + 0.5);
    if (n == 0) return 0;
    return k < 1 ? 1 : k < n ? k : n;
}

size_t tac__topk_count(const tac__topk *t)
{
    if (t->n == 0) return 0;
    return t->n / t->chunk * count_of(t, t->chunk) +
           count_of(t, t->n % t->chunk);
}

/* ---- where things are -----------------------------------------------------
 */

typedef struct places {
    size_t k, floats;    /* floats come first */
    size_t index, codes; /* bits, counted from the words after them */
    size_t words;        /* of all */
} places;

static places places_of(const tac__topk *t)
{
    places p = {.k = tac__topk_count(t)};
    const int coded = t->value_bits < 32;
    const size_t blocks = (p.k + TAC__TOPK_BLOCK - 1) / TAC__TOPK_BLOCK;
    p.floats = coded ? 2 * blocks : p.k;
    p.codes = p.k * t->index_bits;
    const size_t bits = p.codes + (coded ? p.k * t->value_bits : 0);
    p.words = p.floats + (bits + 31) / 32;
    return p;
}

size_t tac__topk_words(const tac__topk *t)
{
    return places_of(t).words;
}

/* ---- out ------------------------------------------------------------------
 */

/* Up to a block of what is sent; indices within the parameter. */
typedef struct block {
    size_t n;
    uint32_t index[TAC__TOPK_BLOCK], code[TAC__TOPK_BLOCK];
    float value[TAC__TOPK_BLOCK], sent[TAC__TOPK_BLOCK];
} block;

/* Values from the `first`-th on. */
static void put_values(const tac__topk *t, const places *p, block *b,
                       size_t first, uint32_t *record)
{
    float *levels = (float *)(void *)record + first / TAC__TOPK_BLOCK * 2;
    if (t->value_bits == 32) {
        memcpy(record + first, b->value, b->n * sizeof *b->value);
        memcpy(b->sent, b->value, b->n * sizeof *b->value);
        return;
    }
    tac__levels_of(b->value, b->n, t->value_bits, levels);
    tac__levels_encode(levels, t->value_bits, b->value, b->n, b->code);
    tac__levels_decode(levels, t->value_bits, b->code, b->n, b->sent);
    tac__bits_put(record + p->floats, p->codes + first * t->value_bits,
                  t->value_bits, b->code, b->n);
}

static void put_block(const tac__topk *t, const places *p, block *b,
                      size_t first, float *left, uint32_t *record)
{
    put_values(t, p, b, first, record);
    for (size_t i = 0; i < b->n; i++) {
        left[b->index[i]] = b->value[i] - b->sent[i];
        b->code[i] = b->index[i] % (uint32_t)t->chunk;
    }
    tac__bits_put(record + p->floats, p->index + first * t->index_bits,
                  t->index_bits, t->chunk < t->n ? b->code : b->index, b->n);
    b->n = 0;
}

void tac__topk_pack(const tac__topk *t, float *left, uint32_t *record)
{
    const places p = places_of(t);
    block b = {.n = 0};
    size_t first = 0, n;
    memset(record, 0, p.words * sizeof *record);
    for (size_t at = 0; at < t->n; at += n) {
        n = t->n - at < t->chunk ? t->n - at : t->chunk;
        tac__topk_cursor c = tac__topk_select(left + at, n, count_of(t, n));
        while (c.k > 0) {
            b.n += tac__topk_next(&c, TAC__TOPK_BLOCK - b.n, at, b.index + b.n,
                                  b.value + b.n);
            if (b.n < TAC__TOPK_BLOCK) continue;
            put_block(t, &p, &b, first, left, record);
            first += TAC__TOPK_BLOCK;
        }
    }
    if (b.n > 0) put_block(t, &p, &b, first, left, record);
}

/* ---- in -------------------------------------------------------------------
 */

static void get_values(const tac__topk *t, const places *p, block *b,
                       size_t first, const uint32_t *record)
{
    float levels[2];
    if (t->value_bits == 32) {
        memcpy(b->value, record + first, b->n * sizeof *b->value);
        return;
    }
    memcpy(levels, record + first / TAC__TOPK_BLOCK * 2, sizeof levels);
    tac__bits_get(record + p->floats, p->codes + first * t->value_bits,
                  t->value_bits, b->code, b->n);
    tac__levels_decode(levels, t->value_bits, b->code, b->n, b->value);
}

int tac__topk_add(const tac__topk *t, const uint32_t *record, float *dst)
{
    const places p = places_of(t);
    const size_t each = count_of(t, t->chunk);
    size_t base = 0, end = each; /* of the chunk: element, number of value */
    block b;
    for (size_t first = 0; first < p.k; first += b.n) {
        b.n = p.k - first < TAC__TOPK_BLOCK ? p.k - first : TAC__TOPK_BLOCK;
        get_values(t, &p, &b, first, record);
        tac__bits_get(record + p.floats, p.index + first * t->index_bits,
                      t->index_bits, b.index, b.n);
        for (size_t i = 0; i < b.n; i++) {
            if (first + i == end) {
                base += t->chunk;
                end += each;
            }
            if (b.index[i] >= t->n - base) return 0;
            dst[base + b.index[i]] += b.value[i];
        }
    }
    return 1;
}
