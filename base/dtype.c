/* dtype.c: names and sizes of element types. */
#include "tacit/dtype.h"

typedef struct dtype_row {
    const char *name;
    size_t size;
    int is_float;
} dtype_row;

static const dtype_row dtype_table[TAC_DTYPE_COUNT] = {
    [TAC_F32] = {"f32", 4, 1}, [TAC_F64] = {"f64", 8, 1},
    [TAC_F16] = {"f16", 2, 1}, [TAC_BF16] = {"bf16", 2, 1},
    [TAC_I32] = {"i32", 4, 0}, [TAC_I64] = {"i64", 8, 0},
    [TAC_U8] = {"u8", 1, 0},
};

static const dtype_row *dtype_find(tac_dtype t)
{
    static const dtype_row none = {"?", 0, 0};
    const int i = (int)t;
    return i >= 0 && i < TAC_DTYPE_COUNT ? &dtype_table[i] : &none;
}

size_t tac_dtype_size(tac_dtype t)
{
    return dtype_find(t)->size;
}

const char *tac_dtype_name(tac_dtype t)
{
    return dtype_find(t)->name;
}

int tac_dtype_is_float(tac_dtype t)
{
    return dtype_find(t)->is_float;
}
