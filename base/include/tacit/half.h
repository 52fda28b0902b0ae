/* tacit/half.h: conversion between f32 and the two 16-bit formats.
 *
 * Round to nearest, ties to even; subnormals kept; overflow to infinity; NaN
 * stays NaN (quiet, sign and upper payload bits kept). The scalar functions
 * define the bits; the bulk functions choose F16C, AVX-512 or AVX512-BF16 at
 * run time and give the same bits. Thread-safe. */
#ifndef TACIT_HALF_H
#define TACIT_HALF_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

TAC_API uint16_t tac_f32_to_f16(float x);
TAC_API float tac_f16_to_f32(uint16_t h);
TAC_API uint16_t tac_f32_to_bf16(float x);
TAC_API float tac_bf16_to_f32(uint16_t b);

/* dst and src must not overlap. n may be 0. */
TAC_API void tac_f32_to_f16_n(uint16_t *dst, const float *src, size_t n);
TAC_API void tac_f16_to_f32_n(float *dst, const uint16_t *src, size_t n);
TAC_API void tac_f32_to_bf16_n(uint16_t *dst, const float *src, size_t n);
TAC_API void tac_bf16_to_f32_n(float *dst, const uint16_t *src, size_t n);

/* One implementation of the four bulk conversions. The table is
 * NULL-name-terminated, best first; `available` says whether this CPU can run
 * it. For tests and for kernel tables. */
typedef struct tac_half_impl {
    const char *name; /* "avx512", "f16c", "scalar" */
    int (*available)(void);
    void (*f32_to_f16)(uint16_t *, const float *, size_t);
    void (*f16_to_f32)(float *, const uint16_t *, size_t);
    void (*f32_to_bf16)(uint16_t *, const float *, size_t);
    void (*bf16_to_f32)(float *, const uint16_t *, size_t);
} tac_half_impl;
TAC_API const tac_half_impl *tac_half_impls(void);

TAC_END_DECLS

#endif
