/* kernels_avx512.c: codec loops for AVX-512 (F, BW, VL, DQ), 16 elements at a
 * time. bf16 is rounded in integers, because VCVTNEPS2BF16 takes subnormals
 * for zero. */
#include <immintrin.h>

#include "tacit/cpu.h"

enum { LANES = 16 };
typedef __m512 vec;

static vec load(const float *x)
{
    return _mm512_loadu_ps(x);
}

static void store(float *y, vec x)
{
    _mm512_storeu_ps(y, x);
}

static vec splat(float x)
{
    return _mm512_set1_ps(x);
}

static vec add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static vec mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static vec divide(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

static __m256i in_32_bytes(const char *h)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)h);
}

static void out_32_bytes(char *h, __m256i x)
{
    _mm256_storeu_si256((__m256i *)(void *)h, x);
}

static vec half_in(const char *h)
{
    return _mm512_cvtph_ps(in_32_bytes(h));
}

static void half_out(char *h, vec x)
{
    out_32_bytes(h, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

/* A NaN stays one, quiet. */
static vec bf_in(const char *h)
{
    const __m512i wide = _mm512_cvtepu16_epi32(in_32_bytes(h));
    const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(0x7fff));
    const __mmask16 is_nan =
        _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f80));
    const __m512i fixed =
        _mm512_mask_or_epi32(wide, is_nan, wide, _mm512_set1_epi32(0x40));
    return _mm512_castsi512_ps(_mm512_slli_epi32(fixed, 16));
}

static void bf_out(char *h, vec x)
{
    const __m512i u = _mm512_castps_si512(x);
    const __m512i top = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, bias), 16);
    const __m512i magnitude =
        _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 is_nan =
        _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
    out_32_bytes(h, _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(
                        rounded, is_nan, top, _mm512_set1_epi32(0x40))));
}

static vec byte_in(const char *q)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)q);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b));
}

static void byte_out(char *q, vec x)
{
    const __m512i most = _mm512_set1_epi32(127);
    const __m512i least = _mm512_set1_epi32(-127);
    const __m512i i =
        _mm512_max_epi32(_mm512_min_epi32(_mm512_cvtps_epi32(x), most), least);
    _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtepi32_epi8(i));
}

#include "codecs/kernels_loops.h"

static int available(void)
{
    const tac_cpu_features f = tac_cpu_detect();
    return f.avx512f && f.avx512bw && f.avx512vl && f.avx512dq;
}

TABLE(avx512);
