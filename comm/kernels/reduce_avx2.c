/* reduce_avx2.c: reductions with AVX2 and F16C. */
#include "kernels/reduce_loops.h"

#include <immintrin.h>

#include "tacit/cpu.h"

typedef __m256 vec;
enum { LANES = 8 };

static inline vec splat(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec sum(vec acc, vec x)
{
    return _mm256_add_ps(acc, x);
}

static inline vec prod(vec acc, vec x)
{
    return _mm256_mul_ps(acc, x);
}

static inline vec times(vec x, vec by)
{
    return _mm256_mul_ps(x, by);
}

static inline vec divided(vec x, vec by)
{
    return _mm256_div_ps(x, by);
}

/* The instructions return the second operand if one is NaN. */
static inline vec min(vec acc, vec x)
{
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_ps(_mm256_min_ps(x, acc), x, nan);
}

static inline vec max(vec acc, vec x)
{
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_ps(_mm256_max_ps(x, acc), x, nan);
}

static inline vec load_f32(const char *x)
{
    return _mm256_loadu_ps((const float *)(const void *)x);
}

static inline __m128i load_halves(const char *x)
{
    return _mm_loadu_si128((const __m128i *)(const void *)x);
}

static inline vec load_f16(const char *x)
{
    return _mm256_cvtph_ps(load_halves(x));
}

static inline vec load_bf16(const char *x)
{
    const __m256i wide = _mm256_cvtepu16_epi32(load_halves(x));
    const __m256i nan =
        _mm256_cmpgt_epi32(_mm256_and_si256(wide, _mm256_set1_epi32(0x7fff)),
                           _mm256_set1_epi32(0x7f80));
    const __m256i quiet = _mm256_and_si256(nan, _mm256_set1_epi32(0x40));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_or_si256(wide, quiet), 16));
}

static inline void store_f32(char *x, vec v, int stream)
{
    if (stream)
        _mm256_stream_ps((float *)(void *)x, v);
    else
        _mm256_storeu_ps((float *)(void *)x, v);
}

static inline void store_halves(char *x, __m128i h, int stream)
{
    if (stream)
        _mm_stream_si128((__m128i *)(void *)x, h);
    else
        _mm_storeu_si128((__m128i *)(void *)x, h);
}

static inline void store_f16(char *x, vec v, int stream)
{
    store_halves(x, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), stream);
}

static inline void store_bf16(char *x, vec v, int stream)
{
    const __m256i u = _mm256_castps_si256(v), top = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, bias), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    const __m256i h = _mm256_blendv_epi8(rounded, quiet, nan);
    /* Packing works within 128-bit halves. */
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h),
                                                    _MM_SHUFFLE(3, 1, 2, 0));
    store_halves(x, _mm256_castsi256_si128(packed), stream);
}

static inline void copy_line(char *dst, const char *src, int stream)
{
    const vec lo = load_f32(src), hi = load_f32(src + 32);
    store_f32(dst, lo, stream);
    store_f32(dst + 32, hi, stream);
}

#include "kernels/reduce_vector.h"

static int available(void)
{
    const tac_cpu_features f = tac_cpu_detect();
    return f.avx2 && f.f16c;
}

TABLE(avx2, reduce, copy);
