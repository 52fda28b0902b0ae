/* reduce_avx512.c: reductions with AVX-512 (F, BW, VL, DQ). */
#include "kernels/reduce_loops.h"

#include <immintrin.h>

#include "tacit/cpu.h"

typedef __m512 vec;
enum { LANES = 16 };

static inline vec splat(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec sum(vec acc, vec x)
{
    return _mm512_add_ps(acc, x);
}

static inline vec prod(vec acc, vec x)
{
    return _mm512_mul_ps(acc, x);
}

static inline vec times(vec x, vec by)
{
    return _mm512_mul_ps(x, by);
}

static inline vec divided(vec x, vec by)
{
    return _mm512_div_ps(x, by);
}

/* The instructions return the second operand if one is NaN. */
static inline vec min(vec acc, vec x)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_min_ps(x, acc), nan, x);
}

static inline vec max(vec acc, vec x)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_max_ps(x, acc), nan, x);
}

static inline vec load_f32(const char *x)
{
    return _mm512_loadu_ps(x);
}

static inline __m256i load_halves(const char *x)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

static inline vec load_f16(const char *x)
{
    return _mm512_cvtph_ps(load_halves(x));
}

static inline vec load_bf16(const char *x)
{
    const __m512i wide = _mm512_cvtepu16_epi32(load_halves(x));
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(
        _mm512_and_si512(wide, _mm512_set1_epi32(0x7fff)),
        _mm512_set1_epi32(0x7f80));
    const __m512i quiet =
        _mm512_mask_or_epi32(wide, nan, wide, _mm512_set1_epi32(0x40));
    return _mm512_castsi512_ps(_mm512_slli_epi32(quiet, 16));
}

static inline void store_f32(char *x, vec v, int stream)
{
    if (stream)
        _mm512_stream_ps((float *)(void *)x, v);
    else
        _mm512_storeu_ps(x, v);
}

static inline void store_halves(char *x, __m256i h, int stream)
{
    if (stream)
        _mm256_stream_si256((__m256i *)(void *)x, h);
    else
        _mm256_storeu_si256((__m256i *)(void *)x, h);
}

static inline void store_f16(char *x, vec v, int stream)
{
    store_halves(x, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), stream);
}

/* As base/half_avx512.c: VCVTNEPS2BF16 takes subnormals for zero. */
static inline void store_bf16(char *x, vec v, int stream)
{
    const __m512i u = _mm512_castps_si512(v), top = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, bias), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    store_halves(x,
                 _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(
                     rounded, nan, top, _mm512_set1_epi32(0x40))),
                 stream);
}

static inline void copy_line(char *dst, const char *src, int stream)
{
    store_f32(dst, load_f32(src), stream);
}

#include "kernels/reduce_vector.h"

static int available(void)
{
    const tac_cpu_features f = tac_cpu_detect();
    return f.avx512f && f.avx512bw && f.avx512vl && f.avx512dq;
}

TABLE(avx512, reduce, copy);
