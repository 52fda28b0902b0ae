/* small_conv.h: direct convolution for few input channels. Private to cpu/.
 *
 * A first layer has 9 or 27 taps a filter: too few for a matrix product to pay,
 * and all the time goes into its large output. These kernels keep a tile of
 * outputs (forward) or of weight gradients (backward) in registers and read x
 * from a padded copy of one image. Serial: the caller shares out the images. */
#ifndef TAC_CPU_SMALL_CONV_H
#define TAC_CPU_SMALL_CONV_H

#include "tacit/kernels.h"

typedef struct tac__small_conv {
    /* 1 if the shape is one of those that the other two can do. */
    int (*fits)(const tac_conv2d *d);
    void (*forward)(const tac_conv2d *d, const float *x, const float *w,
                    const float *b, tac_act act, float *y);
    /* db may be NULL. add != 0: adds to dw and db. */
    void (*backward_weights)(const tac_conv2d *d, const float *x,
                             const float *dy, float *dw, float *db, int add);
} tac__small_conv;

/* The best that this machine can run; NULL if there is none. */
const tac__small_conv *tac__small_conv_find(void);

#endif
