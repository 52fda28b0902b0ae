/* half_f16c.c: bulk conversions with F16C and AVX2, 8 or 16 values a turn.
 *
 * The tail of fewer values is scalar: the bits are the same. VCVTPS2PH and
 * VCVTPH2PS ignore the caller's flush-to-zero setting for f16 values. */
#include "half_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>

static __m128i load_128(const uint16_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

void tac__f32_to_f16_f16c(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(src + i),
                                          _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(dst + i), h);
    }
    for (; i < n; ++i) dst[i] = tac_f32_to_f16(src[i]);
}

void tac__f16_to_f32_f16c(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(load_128(src + i)));
    for (; i < n; ++i) dst[i] = tac_f16_to_f32(src[i]);
}

/* Eight f32 bit patterns to bf16 in the lower halves of eight 32-bit lanes. */
static __m256i round_to_bf16(const float *p)
{
    const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i top = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, bias), 16);
    const __m256i magnitude =
        _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
    const __m256i is_nan =
        _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

void tac__f32_to_bf16_avx2(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        const __m256i lo = round_to_bf16(src + i);
        const __m256i hi = round_to_bf16(src + i + 8);
        /* Packing works within 128-bit halves: lo0 hi0 lo1 hi1. */
        const __m256i packed = _mm256_permute4x64_epi64(
            _mm256_packus_epi32(lo, hi), _MM_SHUFFLE(3, 1, 2, 0));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), packed);
    }
    for (; i < n; ++i) dst[i] = tac_f32_to_bf16(src[i]);
}

void tac__bf16_to_f32_avx2(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        const __m256i wide = _mm256_cvtepu16_epi32(load_128(src + i));
        const __m256i magnitude =
            _mm256_and_si256(wide, _mm256_set1_epi32(0x7fff));
        const __m256i is_nan =
            _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f80));
        const __m256i quiet = _mm256_and_si256(is_nan, _mm256_set1_epi32(0x40));
        const __m256i u = _mm256_slli_epi32(_mm256_or_si256(wide, quiet), 16);
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), u);
    }
    for (; i < n; ++i) dst[i] = tac_bf16_to_f32(src[i]);
}
#else
typedef int tac__no_f16c; /* a translation unit needs a declaration */
#endif
