/* reduce.h: reducing p arrays into one, element by element, in rank order.
 *
 * f32, f16 and bf16 accumulate in f32, f64 in f64, integers in 64 bits. The
 * order and the rounding do not depend on the kernel table, the length or the
 * alignment, so every table gives the same bits.
 *
 * The result can go to several arrays in the same pass: p sources are read once
 * and each destination is written once. Stores that stream pass the caches by:
 * the line is not read before it is written, which is a third of the traffic of
 * a copy between cold buffers, but it is in memory afterwards and not in a
 * cache. */
#ifndef TACIT_COMM_REDUCE_H
#define TACIT_COMM_REDUCE_H

#include <stddef.h>

#include "tacit/comm.h"

/* Operations on blocks of f32: acc[i] = acc[i] op x[i]. */
typedef void tac__f32_fn(float *acc, const float *x, size_t n);
/* The same on blocks of another type, which wraps or is f64. */
typedef void tac__combine_fn(void *acc, const void *x, size_t n);

enum {
    TAC__STREAM_DST = 1, /* how a reduction stores to dst */
    TAC__STREAM_ALSO = 2 /* and to the other destinations */
};

typedef struct tac__reduce_args {
    void *dst;               /* n elements; may be one of srcs, exactly */
    const void *const *srcs; /* p arrays of n elements, in rank order */
    int p;
    size_t n;
    tac_dtype dtype;
    tac_op op;
    double prescale, postscale;
    void *const *also; /* n_also more destinations, like dst */
    int n_also;
    unsigned stream; /* a hint */
} tac__reduce_args;

typedef struct tac__reduce_table {
    const char *name; /* "avx512", "avx2", "ref" */
    int (*available)(void);
    tac__f32_fn *combine[TAC_OP_COUNT]; /* avg: sum */
    void (*scale)(float *x, float by, size_t n);
    void (*divide)(float *x, float by, size_t n);
    /* f32, f16 and bf16. */
    void (*reduce)(const tac__reduce_args *a);
    /* f64, i32, i64 and u8, where the type itself can accumulate: no scales, no
     * avg. */
    tac__combine_fn *native[TAC_DTYPE_COUNT][TAC_OP_COUNT];
    /* memcpy, for long and cold arrays. */
    void (*copy)(void *dst, const void *src, size_t bytes, int stream);
} tac__reduce_table;

/* Best first, NULL-terminated; the last is always available. */
extern const tac__reduce_table *const tac__reduce_tables[];
const tac__reduce_table *tac__reduce_table_best(void);

extern const tac__reduce_table tac__reduce_avx512;
extern const tac__reduce_table tac__reduce_avx2;
extern const tac__reduce_table tac__reduce_ref;

void tac__reduce(const tac__reduce_table *t, const tac__reduce_args *a);
void tac__reduce_blocks(const tac__reduce_args *a); /* the ref table's */
void tac__reduce_native(const tac__reduce_table *t, const tac__reduce_args *a);
void tac__reduce_f64(const tac__reduce_args *a);
void tac__reduce_i32(const tac__reduce_args *a);
void tac__reduce_i64(const tac__reduce_args *a);
void tac__reduce_u8(const tac__reduce_args *a);

/* Elements that are reduced at a time; accumulators stay in the L1 cache. */
#define TAC__REDUCE_BLOCK ((size_t)1024)
typedef void tac__block_fn(const tac__reduce_args *a, size_t at, size_t n);
/* Block after block; what a block has written to dst goes to the others too. */
void tac__reduce_by_blocks(const tac__reduce_args *a, tac__block_fn *block);

#endif
