/* tacit/data.h: datasets by name, already split.
 *
 *   fashion-mnist   60,000 + 10,000 clothes, 28x28x1, 10 classes, from the four
 *                   IDX files of Debian's package dataset-fashion-mnist.
 *                   Pixels are scaled to [0,1], then (x - 0.2860) / 0.3530.
 *   idx:DIR         the same four file names, .gz or not, in DIR: any u8 images
 *                   (N,H,W) or (N,H,W,C), u8 labels. Pixels are scaled to
 *                   [0,1], then normalised with the mean and the standard
 *                   deviation of the training file. The largest training label
 *                   plus 1 is the number of classes.
 *   synth, synth:N  N (default 12,000) made-up 28x28x1 images of 10 classes for
 *                   training and N/6 for test. A sample is a pure function of
 *                   (seed, index): the class's prototype plus uniform noise.
 *                   Learnable, needs no files.
 *
 * Of the training samples a fixed 1/12 is validation (tac_dataset_split), so
 * Fashion-MNIST gives 55,000 / 5,000 / 10,000. */
#ifndef TACIT_DATA_H
#define TACIT_DATA_H

#include "tacit/dataset.h"

TAC_BEGIN_DECLS

#define TAC_FASHION_MNIST_DIR  "/usr/share/datasets/fashion-mnist"
#define TAC_FASHION_MNIST_MEAN 0.2860
#define TAC_FASHION_MNIST_STD  0.3530

typedef struct tac_data_config {
    size_t struct_size;
    const char *dir; /* of fashion-mnist's files; NULL: TAC_FASHION_MNIST_DIR */
    uint64_t seed;   /* of synth */
} tac_data_config;

#define TAC_DATA_CONFIG_INIT             \
    {                                    \
        sizeof(tac_data_config), NULL, 0 \
    }

/* The three parts, each owned: close with tac_data_close. */
typedef struct tac_data {
    tac_dataset *train, *val, *test;
} tac_data;

/* One kind of named data. `arg` is what follows ':' in the name, or NULL. */
typedef struct tac_data_family {
    const char *name; /* NULL ends the table */
    const char *doc;
    tac_status (*open)(tac_context *ctx, const char *arg,
                       const tac_data_config *config, tac_data *out);
} tac_data_family;

/* The table of families, ended by a NULL name. */
TAC_API const tac_data_family *tac_data_families(void);

/* Opens data by name. `config` NULL means defaults. *out is written only on
 * success. Errors: CONFIG for an unknown name (the message lists the known
 * ones); IO for a folder or file that is missing, with the remedy; DATA. */
TAC_API tac_status tac_data_open(tac_context *ctx, const char *name,
                                 const tac_data_config *config, tac_data *out);
/* Gives the three parts up and clears the structure. NULL is legal. */
TAC_API void tac_data_close(tac_data *data);

/* Made-up images, for tests and examples that want other shapes. */
typedef struct tac_synth_config {
    size_t struct_size;
    size_t count;   /* samples */
    size_t first;   /* index of the first one in the endless sequence: parts
                       with the same seed and other ranges don't overlap */
    size_t h, w, c; /* shape of one */
    size_t classes; /* sample i is of class (first + i) mod classes */
    uint64_t seed;
    float noise; /* uniform in [-noise, noise); prototypes are in [-1, 1] */
} tac_synth_config;

#define TAC_SYNTH_CONFIG_INIT                                      \
    {                                                              \
        sizeof(tac_synth_config), 12000, 0, 28, 28, 1, 10, 0, 1.5f \
    }

/* Errors: ARG, NOMEM. */
TAC_API tac_status tac_dataset_synth(tac_context *ctx,
                                     const tac_synth_config *config,
                                     tac_dataset **out);

TAC_END_DECLS

#endif
