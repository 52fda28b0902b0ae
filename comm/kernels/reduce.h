/* reduce.h: reducing p arrays into one, element by element, in rank order.
 *
 * f32, f16 and bf16 accumulate in f32, f64 in f64, integers in 64 bits. The
 * order and the rounding do not depend on the kernel table, the length or the
 * alignment, so every table gives the same bits. */
#ifndef TACIT_COMM_REDUCE_H
#define TACIT_COMM_REDUCE_H

#include <stddef.h>

#include "tacit/comm.h"

/* Operations on blocks of f32: acc[i] = acc[i] op x[i]. */
typedef void tac__f32_fn(float *acc, const float *x, size_t n);

typedef struct tac__reduce_table {
    const char *name; /* "avx512", "avx2", "ref" */
    int (*available)(void);
    tac__f32_fn *combine[TAC_OP_COUNT]; /* avg: sum */
    void (*scale)(float *x, float by, size_t n);
    void (*divide)(float *x, float by, size_t n);
} tac__reduce_table;

/* Best first, NULL-terminated; the last is always available. */
extern const tac__reduce_table *const tac__reduce_tables[];
const tac__reduce_table *tac__reduce_table_best(void);

extern const tac__reduce_table tac__reduce_avx512;
extern const tac__reduce_table tac__reduce_avx2;
extern const tac__reduce_table tac__reduce_ref;

typedef struct tac__reduce_args {
    void *dst;               /* n elements; may be one of srcs, exactly */
    const void *const *srcs; /* p arrays of n elements, in rank order */
    int p;
    size_t n;
    tac_dtype dtype;
    tac_op op;
    double prescale, postscale;
} tac__reduce_args;

void tac__reduce(const tac__reduce_table *t, const tac__reduce_args *a);
void tac__reduce_f64(const tac__reduce_args *a);
void tac__reduce_i32(const tac__reduce_args *a);
void tac__reduce_i64(const tac__reduce_args *a);
void tac__reduce_u8(const tac__reduce_args *a);

/* Elements that are reduced at a time; accumulators stay in the L1 cache. */
#define TAC__REDUCE_BLOCK ((size_t)1024)

#endif
