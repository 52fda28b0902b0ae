/* half_avx512.c: bulk conversions with AVX-512 (F, BW, VL), 16 values at a
 * time.
 *
 * Only the tail uses masks: nothing beyond n is read or written. In a loop with
 * masks they took most of the time of data in a first-level cache. bf16 is
 * rounded in
 * integers, because VCVTNEPS2BF16 takes subnormals for zero. */
#include "half_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* The lower `left` lanes, fewer than 16. */
static __mmask16 lanes(size_t left)
{
    return (__mmask16)((1u << left) - 1u);
}

static __m256i load_halves(const uint16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static void store_halves(uint16_t *p, __m256i h)
{
    _mm256_storeu_si256((__m256i *)(void *)p, h);
}

void tac__f32_to_f16_avx512(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        store_halves(dst + i, _mm512_cvtps_ph(_mm512_loadu_ps(src + i),
                                              _MM_FROUND_TO_NEAREST_INT));
    const __mmask16 m = lanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(m, src + i);
    _mm256_mask_storeu_epi16(dst + i, m,
                             _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

void tac__f16_to_f32_avx512(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(load_halves(src + i)));
    const __mmask16 m = lanes(n - i);
    const __m256i h = _mm256_maskz_loadu_epi16(m, src + i);
    _mm512_mask_storeu_ps(dst + i, m, _mm512_cvtph_ps(h));
}

static __m256i round_to_bf16(__m512i u)
{
    const __m512i top = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, bias), 16);
    const __m512i magnitude =
        _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 is_nan =
        _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
    return _mm512_cvtepi32_epi16(
        _mm512_mask_or_epi32(rounded, is_nan, top, _mm512_set1_epi32(0x40)));
}

void tac__f32_to_bf16_avx512(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        store_halves(dst + i, round_to_bf16(_mm512_loadu_si512(src + i)));
    const __mmask16 m = lanes(n - i);
    const __m512i u = _mm512_maskz_loadu_epi32(m, src + i);
    _mm256_mask_storeu_epi16(dst + i, m, round_to_bf16(u));
}

/* NaN becomes quiet. */
static __m512i widen_bf16(__m256i h)
{
    const __m512i wide = _mm512_cvtepu16_epi32(h);
    const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(0x7fff));
    const __mmask16 is_nan =
        _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f80));
    const __m512i fixed =
        _mm512_mask_or_epi32(wide, is_nan, wide, _mm512_set1_epi32(0x40));
    return _mm512_slli_epi32(fixed, 16);
}

void tac__bf16_to_f32_avx512(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        _mm512_storeu_si512(dst + i, widen_bf16(load_halves(src + i)));
    const __mmask16 m = lanes(n - i);
    const __m256i h = _mm256_maskz_loadu_epi16(m, src + i);
    _mm512_mask_storeu_epi32(dst + i, m, widen_bf16(h));
}
#else
typedef int tac__no_avx512; /* a translation unit needs a declaration */
#endif
