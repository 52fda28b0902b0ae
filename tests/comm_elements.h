/* comm_elements.h: elements of any dtype as f64. */
#ifndef COMM_ELEMENTS_H
#define COMM_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tacit/dtype.h"
#include "tacit/half.h"

/* Through memcpy: buffers are bytes here and elements there. */
#define STORE(type, v)                                     \
    do {                                                   \
        const type e_ = (type)(v);                         \
        memcpy((char *)x + i * sizeof e_, &e_, sizeof e_); \
    } while (0)

static inline void put(void *x, tac_dtype t, size_t i, double v)
{
    switch (t) {
    case TAC_F32: STORE(float, v); break;
    case TAC_F64: STORE(double, v); break;
    case TAC_F16: STORE(uint16_t, tac_f32_to_f16((float)v)); break;
    case TAC_BF16: STORE(uint16_t, tac_f32_to_bf16((float)v)); break;
    case TAC_I32: STORE(int32_t, v); break;
    case TAC_I64: STORE(int64_t, v); break;
    default: STORE(uint8_t, v); break;
    }
}

typedef union element {
    float f32;
    double f64;
    uint16_t u16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} element;

static inline double get(const void *x, tac_dtype t, size_t i)
{
    const size_t es = tac_dtype_size(t);
    element e;
    memcpy(&e, (const char *)x + i * es, es);
    switch (t) {
    case TAC_F32: return e.f32;
    case TAC_F64: return e.f64;
    case TAC_F16: return tac_f16_to_f32(e.u16);
    case TAC_BF16: return tac_bf16_to_f32(e.u16);
    case TAC_I32: return e.i32;
    case TAC_I64: return (double)e.i64;
    default: return e.u8;
    }
}

#endif
