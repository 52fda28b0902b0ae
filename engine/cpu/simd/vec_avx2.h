/* vec_avx2.h: the vector words of the .inc files here, in AVX2. */
#ifndef TAC_CPU_VEC_AVX2_H
#define TAC_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m256 vf;  /* floats */
typedef __m256d vd; /* doubles, half as many */
typedef __m256i vi; /* 32-bit integers */
typedef __m256 vm;  /* one truth value a float: all bits set or none */

enum { VW = 8 };

static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

static inline vi vi_first(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n of VW elements; the others read as 0 and are not written. */
static inline vf vf_load_part(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, vi_first(n));
}

static inline void vf_store_part(float *p, vf v, size_t n)
{
    _mm256_maskstore_ps(p, vi_first(n), v);
}

static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

/* a > b; false where either is NaN. */
static inline vm vf_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}

/* a > b, or a is NaN and b is not. */
static inline vm vf_larger(vf a, vf b)
{
    return _mm256_and_ps(_mm256_cmp_ps(b, b, _CMP_ORD_Q),
                         _mm256_cmp_ps(a, b, _CMP_NLE_UQ));
}

static inline vm vm_and(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}

/* m ? a : b */
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}

/* m ? a : 0 */
static inline vf vf_keep(vm m, vf a)
{
    return _mm256_and_ps(m, a);
}

static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}

static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}

static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}

static inline vd vd_low(vf a)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(a));
}

static inline vd vd_high(vf a)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}

static inline double vd_sum(vd a)
{
    double x[4];
    _mm256_storeu_pd(x, a);
    return (x[0] + x[1]) + (x[2] + x[3]);
}

static inline vi vi_set1(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}

static inline vi vi_load(const uint32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}

static inline vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}

/* Each element by its own count, unsigned; 0 if that is 32 or more. */
static inline vi vi_shl(vi a, vi count)
{
    return _mm256_sllv_epi32(a, count);
}

static inline vi vi_shr(vi a, vi count)
{
    return _mm256_srlv_epi32(a, count);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}

static inline vm vi_eq(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}

/* a >= b, unsigned. */
static inline vm vi_ge(vi a, vi b)
{
    return vi_eq(_mm256_max_epu32(a, b), a);
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m));
}

/* 32 x 32 -> 64 bits: high and low words of the products. */
static inline void vi_mul_wide(vi a, vi b, vi *high, vi *low)
{
    const vi even = _mm256_mul_epu32(a, b);
    const vi odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline vi vi_zip_low32(vi a, vi b)
{
    return _mm256_unpacklo_epi32(a, b);
}

static inline vi vi_zip_high32(vi a, vi b)
{
    return _mm256_unpackhi_epi32(a, b);
}

static inline vi vi_zip_low64(vi a, vi b)
{
    return _mm256_unpacklo_epi64(a, b);
}

static inline vi vi_zip_high64(vi a, vi b)
{
    return _mm256_unpackhi_epi64(a, b);
}

/* VW bytes as 32-bit integers, and back. */
static inline vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(
        _mm_loadl_epi64((const __m128i *)(const void *)p));
}

static inline void vi_store_u8(uint8_t *p, vi a)
{
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(a),
                                           _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(words, words));
}

/* Elements below 65536. */
static inline void vi_store_u16(uint16_t *p, vi a)
{
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(a),
                                           _mm256_extracti128_si256(a, 1));
    _mm_storeu_si128((__m128i *)(void *)p, words);
}

/* Least and largest of unsigned words. */
static inline vi vi_min(vi a, vi b)
{
    return _mm256_min_epu32(a, b);
}

static inline vi vi_max(vi a, vi b)
{
    return _mm256_max_epu32(a, b);
}

static inline vi vf_bits(vf a)
{
    return _mm256_castps_si256(a);
}

static inline vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline int vm_all(vm m)
{
    return _mm256_movemask_ps(m) == 0xff;
}

/* All elements, which the compiler must not know: see below. */
static inline vi vi_hidden_all(void)
{
    vi all = _mm256_set1_epi32(-1);
    __asm__("" : "+x"(all));
    return all;
}

/* table[index]. A gather merges into what its register held, so that each would
 * wait for the vector before. It is told to merge into 0, which a compiler that
 * knows the mask would leave out. */
static inline vi vi_gather(const uint32_t *table, vi index)
{
    return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(),
                                       (const int *)(const void *)table, index,
                                       vi_hidden_all(), 4);
}

static inline vf vf_gather(const float *table, vi index)
{
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), table, index,
                                    _mm256_castsi256_ps(vi_hidden_all()), 4);
}

static inline vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}

static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}

static inline void vd_store(double *p, vd v)
{
    _mm256_storeu_pd(p, v);
}

#endif
