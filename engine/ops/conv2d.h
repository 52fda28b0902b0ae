/* conv2d.h: what the operations with a convolution share. */
#ifndef TAC_ENGINE_OPS_CONV2D_H
#define TAC_ENGINE_OPS_CONV2D_H

#include "tape_impl.h"

/* Checks the arguments of a convolution and sets its geometry; d->stride and
 * d->pad are given. Errors: ARG, with the shapes. */
tac_status tac__conv2d_check(const tac_tape *t, const tac_tensor *x,
                             const tac_tensor *w, const tac_tensor *b,
                             tac_conv2d *d);

#endif
