/* half_impl.h: the bulk conversions of one instruction set each. */
#ifndef TAC_HALF_IMPL_H
#define TAC_HALF_IMPL_H

#include "tacit/half.h"

#if defined(__x86_64__)
void tac__f32_to_f16_f16c(uint16_t *dst, const float *src, size_t n);
void tac__f16_to_f32_f16c(float *dst, const uint16_t *src, size_t n);
void tac__f32_to_bf16_avx2(uint16_t *dst, const float *src, size_t n);
void tac__bf16_to_f32_avx2(float *dst, const uint16_t *src, size_t n);

void tac__f32_to_f16_avx512(uint16_t *dst, const float *src, size_t n);
void tac__f16_to_f32_avx512(float *dst, const uint16_t *src, size_t n);
void tac__f32_to_bf16_avx512(uint16_t *dst, const float *src, size_t n);
void tac__bf16_to_f32_avx512(float *dst, const uint16_t *src, size_t n);
#endif

#endif
