/* image_set.h: a dataset of u8 images held in memory. */
#ifndef TAC_DATA_IMAGE_SET_H
#define TAC_DATA_IMAGE_SET_H

#include "tacit/dataset.h"

typedef struct tac__image_set {
    const uint8_t *pixels; /* (count,H,W,C) */
    const uint8_t *labels; /* (count) */
    double mean, std;      /* of pixels scaled to [0,1] */
} tac__image_set;

/* Takes both malloc'd arrays over on success. A sample's pixel v becomes
 * (v / 255 - mean) / std, computed in f64 and rounded once. */
tac_status tac__image_set_create(tac_context *ctx, const char *name,
                                 const tac__image_set *images,
                                 const tac_dataset_info *info,
                                 tac_dataset **out);

/* Mean and standard deviation (of the population) of pixels scaled to [0,1],
 * from exact integer sums. std is 1 where all pixels are equal or n is 0. */
void tac__pixel_statistics(const uint8_t *pixels, size_t n, double *mean,
                           double *std);

#endif
