/* half_table.c: implementations of the bulk conversions, best first.
 *
 * VCVTNEPS2BF16 (AVX512-BF16) is not among them: it takes subnormals for zero,
 * and the bits must not depend on the CPU. Memory is the limit anyway. */
#include "half_impl.h"

/* These builtins read what the compiler's runtime found at load time. They cost
 * a load and a test a call, where CPUID can cost microseconds in a virtual
 * machine. clang 14 knows none for F16C, which every CPU with AVX2 has. */
#if defined(__x86_64__)
static int has_f16c(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void)
{
    return has_f16c() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static int always(void)
{
    return 1;
}

static void f32_to_f16_scalar(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = tac_f32_to_f16(src[i]);
}

static void f16_to_f32_scalar(float *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = tac_f16_to_f32(src[i]);
}

static void f32_to_bf16_scalar(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = tac_f32_to_bf16(src[i]);
}

static void bf16_to_f32_scalar(float *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = tac_bf16_to_f32(src[i]);
}

static const tac_half_impl half_table[] = {
#if defined(__x86_64__)
    {"avx512", has_avx512, tac__f32_to_f16_avx512, tac__f16_to_f32_avx512,
     tac__f32_to_bf16_avx512, tac__bf16_to_f32_avx512},
    {"f16c", has_f16c, tac__f32_to_f16_f16c, tac__f16_to_f32_f16c,
     tac__f32_to_bf16_avx2, tac__bf16_to_f32_avx2},
#endif
    {"scalar", always, f32_to_f16_scalar, f16_to_f32_scalar, f32_to_bf16_scalar,
     bf16_to_f32_scalar},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

const tac_half_impl *tac_half_impls(void)
{
    return half_table;
}
