/* kernels_avx2.c: codec loops for AVX2 and F16C, 8 elements at a time. */
#include <immintrin.h>

#include "tacit/cpu.h"

enum { LANES = 8 };
typedef __m256 vec;

static vec load(const float *x)
{
    return _mm256_loadu_ps(x);
}

static void store(float *y, vec x)
{
    _mm256_storeu_ps(y, x);
}

static vec splat(float x)
{
    return _mm256_set1_ps(x);
}

static vec add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static vec mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static vec divide(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

static __m128i in_16_bytes(const char *h)
{
    return _mm_loadu_si128((const __m128i *)(const void *)h);
}

static void out_16_bytes(char *h, __m128i x)
{
    _mm_storeu_si128((__m128i *)(void *)h, x);
}

static vec half_in(const char *h)
{
    return _mm256_cvtph_ps(in_16_bytes(h));
}

static void half_out(char *h, vec x)
{
    out_16_bytes(h, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

/* A NaN stays one, quiet. */
static vec bf_in(const char *h)
{
    const __m256i wide = _mm256_cvtepu16_epi32(in_16_bytes(h));
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7fff));
    const __m256i is_nan =
        _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f80));
    const __m256i quiet = _mm256_and_si256(is_nan, _mm256_set1_epi32(0x40));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_or_si256(wide, quiet), 16));
}

static void bf_out(char *h, vec x)
{
    const __m256i u = _mm256_castps_si256(x);
    const __m256i top = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, bias), 16);
    const __m256i magnitude =
        _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
    const __m256i is_nan =
        _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    const __m256i w = _mm256_blendv_epi8(rounded, quiet, is_nan);
    out_16_bytes(h, _mm_packus_epi32(_mm256_castsi256_si128(w),
                                     _mm256_extracti128_si256(w, 1)));
}

static vec byte_in(const char *q)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)q);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
}

static void byte_out(char *q, vec x)
{
    const __m256i most = _mm256_set1_epi32(127);
    const __m256i least = _mm256_set1_epi32(-127);
    const __m256i i =
        _mm256_max_epi32(_mm256_min_epi32(_mm256_cvtps_epi32(x), most), least);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(i),
                                          _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *)(void *)q, _mm_packs_epi16(words, words));
}

#include "codecs/kernels_loops.h"

static int available(void)
{
    const tac_cpu_features f = tac_cpu_detect();
    return f.avx2 && f.f16c;
}

TABLE(avx2);
