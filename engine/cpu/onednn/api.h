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

/* Weights have `in`'s type forward and in backward data, their gradients f32 in
 * backward weights; bias likewise. */
typedef struct tac__conv_spec {
    tac__conv_kind kind;
    tac_conv2d d;
    tac_dtype in;   /* of what is read, F32 or BF16 */
    tac_dtype out;  /* of y or dx as oneDNN writes it: F32, or `in` */
    int bias;       /* bias, or its gradient */
    int relu;       /* forward: max(y, 0) */
    int accumulate; /* backward data: dx is added to */
} tac__conv_spec;

/* Row-major C (m,n) = op(A) op(B), + bias, relu, + C. */
typedef struct tac__matmul_spec {
    size_t m, n, k;
    size_t lda, ldb, ldc;
    tac_dtype in, out; /* of A, B and the bias; of C */
    int ta, tb;        /* A, B are given transposed */
    int bias, relu, accumulate;
} tac__matmul_spec;

dnnl_data_type_t tac__api_type(tac_dtype t);

/* Attributes that all primitives share: the caller's scratch memory, strict
 * f32, and after the product: adding to the output, ReLU. */
dnnl_status_t tac__api_attr(int accumulate, int relu,
                            dnnl_primitive_attr_t *out);

dnnl_status_t tac__api_matmul(dnnl_engine_t engine,
                              const tac__matmul_spec *spec,
                              dnnl_primitive_desc_t *out);
/* 1 if oneDNN would compute it with a kernel whose name begins so. "ref" are
 * its slow ones. */
int tac__api_is(const_dnnl_primitive_desc_t pd, const char *name);

/* Describes a convolution with NHWC activations, weights in the layout given
 * or, if that is NULL, in the one that oneDNN likes best. */
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
