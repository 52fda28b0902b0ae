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

static inline vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}

static inline vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}

/* Each element by its own count, unsigned; 0 if that is 32 or more. */
static inline vi vi_shl(vi a, vi count)
{
    return _mm512_sllv_epi32(a, count);
}

static inline vi vi_shr(vi a, vi count)
{
    return _mm512_srlv_epi32(a, count);
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

/* The lower halves of the elements. */
static inline void vi_store_u16(uint16_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(a));
}

/* Least and largest of unsigned words. */
static inline vi vi_min(vi a, vi b)
{
    return _mm512_min_epu32(a, b);
}

static inline vi vi_max(vi a, vi b)
{
    return _mm512_max_epu32(a, b);
}

static inline vi vf_bits(vf a)
{
    return _mm512_castps_si512(a);
}

static inline vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline int vm_all(vm m)
{
    return m == 0xffff;
}

/* All elements, which the compiler must not know: see below. */
static inline vm vm_hidden_all(void)
{
    vm all = 0xffff;
    __asm__("" : "+Yk"(all));
    return all;
}

/* table[index]. A gather merges into what its register held, so that each would
 * wait for the vector before. It is told to merge into 0, which a compiler that
 * knows the mask would leave out. */
static inline vi vi_gather(const uint32_t *table, vi index)
{
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), vm_hidden_all(),
                                       index, table, 4);
}

static inline vf vf_gather(const float *table, vi index)
{
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), vm_hidden_all(), index,
                                    table, 4);
}

static inline vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}

static inline vd vd_load(const double *p)
{
    return _mm512_loadu_pd(p);
}

static inline void vd_store(double *p, vd v)
{
    _mm512_storeu_pd(p, v);
}

#endif
