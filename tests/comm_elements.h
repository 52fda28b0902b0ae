/* comm_elements.h: elements of any dtype as f64. */
#ifndef COMM_ELEMENTS_H
#define COMM_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tac_sanitized.h"
#include "tacit/dtype.h"
#include "tacit/half.h"

/* Through memcpy: buffers are bytes here and elements there. */
#define STORE(type, v)                                     \
    do {                                                   \
        const type e_ = (type)(v);                         \
        memcpy((char *)x + i * sizeof e_, &e_, sizeof e_); \
    } while (0)

static inline UNWATCHED void put_unwatched(void *x, tac_dtype t, size_t i,
                                           double v)
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

#define LOAD(member) \
    memcpy(&e.member, (const char *)x + i * sizeof e.member, sizeof e.member)

static inline UNWATCHED double get_unwatched(const void *x, tac_dtype t,
                                             size_t i)
{
    element e;
    switch (t) {
    case TAC_F32: LOAD(f32); return e.f32;
    case TAC_F64: LOAD(f64); return e.f64;
    case TAC_F16: LOAD(u16); return tac_f16_to_f32(e.u16);
    case TAC_BF16: LOAD(u16); return tac_bf16_to_f32(e.u16);
    case TAC_I32: LOAD(i32); return e.i32;
    case TAC_I64: LOAD(i64); return (double)e.i64;
    default: LOAD(u8); return e.u8;
    }
}

static inline void put(void *x, tac_dtype t, size_t i, double v)
{
    put_unwatched(x, t, i, v);
    if (TESTS_TSAN)
        watch_write((char *)x + i * tac_dtype_size(t), tac_dtype_size(t));
}

static inline double get(const void *x, tac_dtype t, size_t i)
{
    if (TESTS_TSAN)
        watch_read((const char *)x + i * tac_dtype_size(t), tac_dtype_size(t));
    return get_unwatched(x, t, i);
}

#endif
