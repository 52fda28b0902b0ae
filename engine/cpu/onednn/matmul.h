/* matmul.h: a row-major matrix product of one shape, planned once and run many
 * times.
 *
 * A plan cuts the product among the threads into slices of columns (which are
 * also slices of B, so the slices share least) or, where columns are few, of
 * rows; high f32 ones again into blocks of rows, which oneDNN does a tenth
 * faster one by one. A slice has oneDNN objects of its own and is run by one
 * thread, with that thread's workspace. Matrices stay in their plain layouts:
 * packing the weights once a call gained nothing, as oneDNN packs them block by
 * block while it multiplies. */
#ifndef TAC_CPU_ONEDNN_MATMUL_H
#define TAC_CPU_ONEDNN_MATMUL_H

#include "cpu/onednn/onednn.h"

typedef struct tac__matmul_slice {
    size_t row, rows, column, columns;
    dnnl_stream_t stream;
    dnnl_primitive_t product;
    dnnl_memory_t a, b, bias, c, scratch;
    size_t bytes;      /* of scratch */
    const char *space; /* for which scratch's pointer is set */
} tac__matmul_slice;

typedef struct tac__matmul_plan {
    struct tac__matmul_plan *next; /* of the same bucket */
    tac__matmul_spec spec;
    size_t threads;
    int unsupported; /* oneDNN has nothing fast: the base table runs */
    int by_rows;
    size_t parts;  /* of the pool at most */
    size_t blocks; /* slices of a part: blocks of rows, one after another */
    size_t bytes;  /* of workspace, a thread */
    tac__matmul_slice *slices;
} tac__matmul_plan;

/* Finds or makes the plan for a pool of `threads`. Errors: NOMEM, INTERNAL. */
tac_status tac__matmul_plan_get(tac__onednn *o, const tac__matmul_spec *spec,
                                size_t threads, const tac__matmul_plan **out);
/* Destroys a chain of plans. NULL is legal. */
void tac__matmul_plans_destroy(tac__matmul_plan *plan);

/* The operands of one run. */
typedef struct tac__matmul_args {
    const void *a, *b, *bias; /* bias (n) or NULL */
    void *c;
} tac__matmul_args;

/* Runs the product, or *done = 0 if the base table has to. */
tac_status tac__matmul(const tac_kctx *kc, const tac__matmul_spec *spec,
                       const tac__matmul_args *args, int *done);

#endif
