/* conv.h: one convolution of one shape, planned once and run many times.
 *
 * A plan cuts the batch into chunks of images. A chunk has oneDNN objects of
 * its own and is run by one thread, with that thread's workspace; a thread
 * takes neighbouring chunks, so weights are reordered for its first chunk alone
 * and weight gradients are added up before they are reordered back. */
#ifndef TAC_CPU_ONEDNN_CONV_H
#define TAC_CPU_ONEDNN_CONV_H

#include "cpu/onednn/onednn.h"

typedef struct tac__conv_key {
    tac__conv_spec spec; /* with the whole batch */
    size_t chunks;
} tac__conv_key;

/* A piece of a workspace, with the oneDNN memory object that stands for it
 * (NULL if none is needed). */
typedef struct tac__piece {
    size_t offset, bytes;
    dnnl_memory_t memory;
} tac__piece;

typedef struct tac__conv_chunk {
    size_t begin, end; /* images */
    dnnl_stream_t stream;
    dnnl_primitive_t conv;
    dnnl_primitive_t reorder; /* of weights; NULL if they stay OIHW */
    dnnl_memory_t x, y, bias, plain;
    /* At the same place in all chunks of a plan: */
    tac__piece weights; /* in oneDNN's layout, if that is another */
    tac__piece total;   /* backward weights: sum over a thread's chunks, and */
    tac__piece sums;    /* the same in OIHW, then db, then a chunk's db */
    tac__piece scratch, reorder_scratch;
    tac__piece copy;   /* accumulating backward data: the chunk's dx, f32 */
    const char *space; /* for which the pieces' pointers are set */
} tac__conv_chunk;

typedef struct tac__conv_plan {
    struct tac__conv_plan *next; /* of the same bucket */
    tac__conv_key key;
    int unsupported; /* oneDNN refuses it: the reference runs */
    size_t count;    /* chunks */
    size_t bytes;    /* of workspace, a thread */
    tac__conv_chunk *chunks;
} tac__conv_plan;

/* Finds or makes the plan of `chunks` chunks (at most one an image). Errors:
 * NOMEM, INTERNAL. */
tac_status tac__conv_plan_get(tac__onednn *o, const tac__conv_spec *spec,
                              size_t chunks, const tac__conv_plan **out);
/* Destroys a chain of plans. NULL is legal. */
void tac__conv_plans_destroy(tac__conv_plan *plan);

/* The objects of one chunk of spec->d.n images. `weights`: their layout, NULL
 * for oneDNN's choice; *bytes: the workspace needed. */
dnnl_status_t tac__conv_chunk_make(dnnl_engine_t engine,
                                   const tac__conv_spec *spec, tac__md weights,
                                   tac__conv_chunk *chunk, size_t *bytes);
void tac__conv_chunk_destroy(tac__conv_chunk *chunk);
/* The layout of a made chunk's weights. */
tac__md tac__conv_chunk_weights(const tac__conv_chunk *chunk,
                                tac__conv_kind kind);

/* Pointers of one run, to elements of the plan's types; x and y are the chunk's
 * activations or their gradients, w OIHW. Forward and backward data read w;
 * backward weights reads x and y. Only backward data writes x, only forward
 * writes y. */
typedef struct tac__conv_args {
    void *x;
    const void *w, *bias;
    void *y;
    char *space; /* the thread's workspace, plan->bytes of it */
    int first;   /* the first chunk of this thread in this call */
} tac__conv_args;

dnnl_status_t tac__conv_chunk_run(const tac__conv_plan *plan, size_t i,
                                  const tac__conv_args *a);
/* Backward weights: after a thread's last chunk, puts its dw (OIHW) and db (oc)
 * side by side, tac__conv_sums bytes into the workspace. */
dnnl_status_t tac__conv_finish(const tac__conv_plan *plan, size_t last);
size_t tac__conv_sums(const tac__conv_plan *plan);

/* dw and db (NULL: none) from the sums of `parts` threads, which lie `offset`
 * into their workspaces, added in their order. */
void tac__conv_add_sums(const tac_kctx *kc, const tac_conv2d *d, int parts,
                        size_t offset, float *dw, float *db, int accumulate);

#endif
