/* tacit/dtype.h: element types shared by comm, engine, data and checkpoints. */
#ifndef TACIT_DTYPE_H
#define TACIT_DTYPE_H

#include <stddef.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

typedef enum tac_dtype {
    TAC_F32 = 0,
    TAC_F64,
    TAC_F16,  /* IEEE binary16 */
    TAC_BF16, /* upper half of an f32 */
    TAC_I32,
    TAC_I64,
    TAC_U8,
    TAC_DTYPE_COUNT
} tac_dtype;

/* Bytes of one element; 0 for a value that is no dtype. Thread-safe. */
TAC_API size_t tac_dtype_size(tac_dtype t);
/* "f32", "bf16", ...; "?" for a value that is no dtype. Thread-safe. */
TAC_API const char *tac_dtype_name(tac_dtype t);
/* 1 for f32, f64, f16, bf16. */
TAC_API int tac_dtype_is_float(tac_dtype t);

TAC_END_DECLS

#endif
