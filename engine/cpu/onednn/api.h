/* api.h: the few oneDNN calls that differ between its C APIs 2 and 3. */
#ifndef TAC_CPU_ONEDNN_API_H
#define TAC_CPU_ONEDNN_API_H

#include <dnnl.h>
#include <stddef.h>

#include "tacit/kernels.h"

/* A memory description owned by a primitive description. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tac__md;
#else
typedef const dnnl_memory_desc_t *tac__md;
#endif

typedef enum tac__conv_kind {
    TAC__CONV_FORWARD,
    TAC__CONV_BACKWARD_DATA,
    TAC__CONV_BACKWARD_WEIGHTS
} tac__conv_kind;

typedef struct tac__conv_spec {
    tac__conv_kind kind;
    tac_conv2d d;
    int bias;       /* bias, or its gradient */
    int relu;       /* forward: max(y, 0) */
    int accumulate; /* backward data: dx is added to */
} tac__conv_spec;

/* Describes a convolution with NHWC activations, weights in the layout given
 * or, if that is NULL, in the one that oneDNN likes best, the caller's scratch
 * memory and strict f32. */
dnnl_status_t tac__api_conv(dnnl_engine_t engine, const tac__conv_spec *spec,
                            tac__md weights, dnnl_primitive_desc_t *out);
/* Describes the reorder of `spec`'s weights from OIHW to `md` (or back if
 * `back`); *out is NULL if `md` is OIHW already. */
dnnl_status_t tac__api_reorder(dnnl_engine_t engine, const tac__conv_spec *spec,
                               tac__md md, int back,
                               dnnl_primitive_desc_t *out);
/* A memory object over OIHW weights, its pointer still to be set. */
dnnl_status_t tac__api_plain_weights(dnnl_engine_t engine,
                                     const tac__conv_spec *spec,
                                     dnnl_memory_t *out);

#endif
