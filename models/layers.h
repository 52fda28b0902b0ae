/* layers.h: layers with parameters: registration and forward. */
#ifndef TAC_MODELS_LAYERS_H
#define TAC_MODELS_LAYERS_H

#include "model_impl.h"
#include "tacit/ops.h"

typedef struct tac__linear {
    size_t in, out;
    size_t weight, bias; /* indices of parameters */
} tac__linear;

typedef struct tac__conv {
    size_t in, out, k, pad; /* stride 1 */
    size_t weight, bias;
} tac__conv;

/* Register "<name>.weight" and "<name>.bias" with PyTorch's initial values and
 * add the layer's multiply-adds a sample to the model; h and w are the sizes of
 * a convolution's output. */
tac_status tac__linear_add(tac_model *m, const char *name, size_t in,
                           size_t out, tac__linear *layer);
tac_status tac__conv_add(tac_model *m, const char *name, size_t in, size_t out,
                         size_t k, size_t pad, size_t h, size_t w,
                         tac__conv *layer);

tac_status tac__linear_forward(const tac__linear *l, tac_tape *t, tac_tensor *x,
                               tac_act act, tac_tensor **y);
/* y = max_pool(relu(conv(x))), windows of k x k side by side, as one operation.
 */
tac_status tac__conv_pool_forward(const tac__conv *l, size_t k, tac_tape *t,
                                  tac_tensor *x, tac_tensor **y);

/* y = relu(linear(x)), then dropout if p > 0. */
tac_status tac__hidden_forward(const tac__linear *l, float p, tac_tape *t,
                               tac_tensor *x, tac_tensor **y);

#endif
