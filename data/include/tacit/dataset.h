/* tacit/dataset.h: a dataset is a number of labelled samples that can be
 * gathered by index.
 *
 * A sample is an image (H,W,C) f32, channels last, with a class label; for
 * data that are no images H = W = 1 and C is the number of features. A dataset
 * of your own is one function (`gather`) and a description:
 *
 *     static tac_status my_gather(void *impl, tac_context *ctx, size_t n,
 *                                 const uint32_t *index, float *x, int32_t *y);
 *     static const tac_dataset_ops my_ops = {
 *         sizeof(tac_dataset_ops), "mine", my_gather, my_destroy, NULL, NULL};
 *     tac_dataset_info info = {.count = n, .h = 1, .w = 1, .c = 16,
 *                              .classes = 2};
 *     tac_dataset_create(ctx, &my_ops, impl, &info, &set);
 *
 * Datasets are reference-counted: subsets share their parent, and ranks that
 * are threads of one process may share one dataset.
 *
 * Thread-safety: a dataset does not change after its creation, so all calls
 * may be made from any thread, if the dataset's own `gather` may. */
#ifndef TACIT_DATASET_H
#define TACIT_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

typedef struct tac_dataset tac_dataset;

typedef struct tac_dataset_info {
    size_t count;   /* samples, at most 2^32 - 1 */
    size_t h, w, c; /* shape of one sample, each at least 1 */
    size_t classes; /* labels are 0 .. classes-1 */
} tac_dataset_info;

/* What a kind of dataset provides. */
typedef struct tac_dataset_ops {
    size_t struct_size; /* sizeof(tac_dataset_ops) */
    const char *name;   /* for messages; static */
    /* Writes samples index[0..n-1] (each < count, checked by the caller) to x
     * (n,H,W,C) f32 and y (n) i32. Reports its own failures with
     * tac_fail(ctx, ...). Called from a loader's thread. */
    tac_status (*gather)(void *impl, tac_context *ctx, size_t n,
                         const uint32_t *index, float *x, int32_t *y);
    /* Frees impl; NULL if there is nothing to free. */
    void (*destroy)(void *impl);
    /* Bytes of memory that impl holds; NULL: none worth a word. */
    size_t (*bytes)(const void *impl);
    /* As gather, for labels alone; NULL: gather is asked, images and all. */
    tac_status (*labels)(void *impl, tac_context *ctx, size_t n,
                         const uint32_t *index, int32_t *y);
} tac_dataset_ops;

/* Makes a dataset of `impl`, which it owns from then on (on failure the caller
 * still does). ops is borrowed for the dataset's life. Errors: ARG, NOMEM. */
TAC_API tac_status tac_dataset_create(tac_context *ctx,
                                      const tac_dataset_ops *ops, void *impl,
                                      const tac_dataset_info *info,
                                      tac_dataset **out);
/* One more owner; returns `set`. */
TAC_API tac_dataset *tac_dataset_retain(tac_dataset *set);
/* One owner less; the last one frees it. NULL is legal. */
TAC_API void tac_dataset_destroy(tac_dataset *set);

TAC_API const char *tac_dataset_name(const tac_dataset *set);
TAC_API tac_dataset_info tac_dataset_get_info(const tac_dataset *set);
/* Floats of one sample: H*W*C. */
TAC_API size_t tac_dataset_sample_size(const tac_dataset *set);

/* Bytes of memory that it holds. A subset counts its share of its parent, so
 * that disjoint subsets add up. */
TAC_API size_t tac_dataset_bytes(const tac_dataset *set);

/* Gathers n samples into x (n,H,W,C) f32 and y (n) i32, both the caller's.
 * n may be 0. Errors: ARG for an index out of range; those of the dataset. */
TAC_API tac_status tac_dataset_gather(const tac_dataset *set, tac_context *ctx,
                                      size_t n, const uint32_t *index, float *x,
                                      int32_t *y);

/* The labels of the same samples. Errors: as above; NOMEM. */
TAC_API tac_status tac_dataset_labels(const tac_dataset *set, tac_context *ctx,
                                      size_t n, const uint32_t *index,
                                      int32_t *y);

/* The samples index[0..n-1] of `parent` (copied; parent is retained): sample i
 * of the subset is sample index[i] of the parent. Errors: ARG, NOMEM. */
TAC_API tac_status tac_dataset_subset(tac_context *ctx, tac_dataset *parent,
                                      size_t n, const uint32_t *index,
                                      tac_dataset **out);

/* Samples of `count` that validation gets: floor(count / 12), so 5,000 of
 * Fashion-MNIST's 60,000. */
TAC_API size_t tac_split_validation_count(size_t count);

/* Splits into training and validation by a permutation that depends on the
 * count alone (Philox, TAC_STREAM_SPLIT, seed 0): the first count - V entries
 * are for training, the last V for validation, V as above. Both retain `set`,
 * which stays the caller's. Outputs are written only on success.
 * Errors: ARG, NOMEM. */
TAC_API tac_status tac_dataset_split(tac_context *ctx, tac_dataset *set,
                                     tac_dataset **train, tac_dataset **val);

TAC_END_DECLS

#endif
