/* avx2.c: the memory-bound kernels with 8 floats a vector. Compiled with the
 * flags of AVX2, FMA and F16C; empty on other processors. */
#include "cpu/kernel_sets.h"
#include "cpu/simd/quant_table.h"

#include <stdio.h>

#include "tacit/cpu.h"

static int available(char *why, size_t bytes)
{
#if defined(__AVX2__)
    const tac_cpu_features f = tac_cpu_detect();
    if (f.avx2 && f.fma && f.f16c) return 1;
    snprintf(why, bytes, "the processor has no AVX2 with FMA and F16C");
#else
    snprintf(why, bytes, "not built for x86-64");
#endif
    return 0;
}

#if defined(__AVX2__)
#include "cpu/simd/vec_avx2.h"

#define SIMD_SLOT TAC_CPU_SLOT_AVX2
#include "cpu/simd/simd_table.inc"
#else
static void apply(tac_kernels *table)
{
    (void)table;
}
#endif

const tac_kernel_set tac__avx2_set = {
    .name = "avx2",
    .doc = "memory-bound kernels, 8 floats a vector",
    .available = available,
    .apply = apply,
    .slot = TAC_CPU_SLOT_AVX2,
    .cache_create = tac__quant_table_create,
    .cache_destroy = tac__quant_table_destroy,
};
