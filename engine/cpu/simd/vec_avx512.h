/* vec_avx512.h: the vector words of the .inc files here, in AVX-512. */
#ifndef TAC_CPU_VEC_AVX512_H
#define TAC_CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m512 vf;    /* floats */
typedef __m512d vd;   /* doubles, half as many */
typedef __m512i vi;   /* 32-bit integers */
typedef __mmask16 vm; /* one truth value a float */

enum { VW = 16 };

static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

static inline vm vm_first(size_t n)
{
    return (vm)((1u << n) - 1u);
}

/* The first n of VW elements; the others read as 0 and are not written. */
static inline vf vf_load_part(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}

static inline void vf_store_part(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, vm_first(n), v);
}

static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

/* a > b; false where either is NaN. */
static inline vm vf_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

/* a > b, or a is NaN and b is not. */
static inline vm vf_larger(vf a, vf b)
{
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(b, b, _CMP_ORD_Q), a, b,
                                   _CMP_NLE_UQ);
}

static inline vm vm_and(vm a, vm b)
{
    return (vm)(a & b);
}

/* m ? a : b */
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

/* m ? a : 0 */
static inline vf vf_keep(vm m, vf a)
{
    return _mm512_maskz_mov_ps(m, a);
}

static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}

static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}

static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}

static inline vd vd_low(vf a)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(a));
}

static inline vd vd_high(vf a)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
}

static inline double vd_sum(vd a)
{
    return _mm512_reduce_add_pd(a);
}

static inline vi vi_set1(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

static inline vi vi_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}

static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}

static inline vm vi_eq(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}

/* a >= b, unsigned. */
static inline vm vi_ge(vi a, vi b)
{
    return _mm512_cmpge_epu32_mask(a, b);
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm512_mask_blend_epi32(m, b, a);
}

/* 32 x 32 -> 64 bits: high and low words of the products. */
static inline void vi_mul_wide(vi a, vi b, vi *high, vi *low)
{
    const vi even = _mm512_mul_epu32(a, b);
    const vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

static inline vi vi_zip_low32(vi a, vi b)
{
    return _mm512_unpacklo_epi32(a, b);
}

static inline vi vi_zip_high32(vi a, vi b)
{
    return _mm512_unpackhi_epi32(a, b);
}

static inline vi vi_zip_low64(vi a, vi b)
{
    return _mm512_unpacklo_epi64(a, b);
}

static inline vi vi_zip_high64(vi a, vi b)
{
    return _mm512_unpackhi_epi64(a, b);
}

/* VW bytes as 32-bit integers, and back. */
static inline vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline void vi_store_u8(uint8_t *p, vi a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a));
}

#endif
