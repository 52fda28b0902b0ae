/* topk.h: what is sent of one parameter by topk.
 *
 * A record is a row of 32-bit words:
 *
 *     bits=32    the k values (f32), then the k indices
 *     else       two f32 levels for each 256 values, then the k indices, then
 *                the k codes
 *
 * Indices and codes are packed without gaps, and the record is filled up to
 * whole words. With chunks an index counts within its chunk and has as many
 * bits as that needs; else it counts within the parameter and has 32. Indices
 * ascend, so it is known which belong to which chunk. */
#ifndef TACIT_COMM_TOPK_H
#define TACIT_COMM_TOPK_H

#include <stddef.h>
#include <stdint.h>

enum { TAC__TOPK_BLOCK = 256 };

typedef struct tac__topk {
    size_t n;     /* elements of the parameter */
    size_t chunk; /* n without chunks */
    double share;
    unsigned index_bits, value_bits;
} tac__topk;

/* topk_record.c: elements that are sent, words that they take. */
size_t tac__topk_count(const tac__topk *t);
size_t tac__topk_words(const tac__topk *t);
/* Writes a record and takes what it says out of left (n). */
void tac__topk_pack(const tac__topk *t, float *left, uint32_t *record);
/* dst (n) += what the record says. Returns 0 if an index lies outside: records
 * come from peers. */
int tac__topk_add(const tac__topk *t, const uint32_t *record, float *dst);

/* topk_levels.c: low[0] and low[1] are the levels of a block of n values. */
void tac__levels_of(const float *x, size_t n, unsigned bits, float *levels);
void tac__levels_encode(const float *levels, unsigned bits, const float *x,
                        size_t n, uint32_t *code);
void tac__levels_decode(const float *levels, unsigned bits,
                        const uint32_t *code, size_t n, float *x);

/* topk_bits.c: n numbers of `bits` bits (1 to 32) each, from bit `at` on. The
 * words that put writes to must be zero. */
void tac__bits_put(uint32_t *words, size_t at, unsigned bits, const uint32_t *x,
                   size_t n);
void tac__bits_get(const uint32_t *words, size_t at, unsigned bits, uint32_t *x,
                   size_t n);

/* topk_select.c: the k elements of the largest magnitude of x[0..n), in
 * ascending order of their indices, some at a time; ties go to the lower index,
 * infinities and NaN are larger than all else. 1 <= k <= n. */
typedef struct tac__topk_cursor {
    const float *x;
    size_t at, k, ties;
    uint32_t least;
} tac__topk_cursor;
tac__topk_cursor tac__topk_select(const float *x, size_t n, size_t k);
/* At most `most` of them, their indices with `base` added; 0: that was all. */
size_t tac__topk_next(tac__topk_cursor *c, size_t most, size_t base,
                      uint32_t *index, float *value);

#endif
