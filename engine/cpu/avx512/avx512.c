/* avx512.c: the memory-bound kernels with 16 floats a vector. Compiled with the
 * flags of AVX-512 F, BW, VL and DQ; empty on other processors. */
#include "cpu/avx512/conv_entries.h"
#include "cpu/kernel_sets.h"
#include "cpu/simd/quant_table.h"

#include <stdio.h>

#include "tacit/cpu.h"

static int available(char *why, size_t bytes)
{
#if defined(__AVX512F__)
    const tac_cpu_features f = tac_cpu_detect();
    if (f.avx512f && f.avx512bw && f.avx512vl && f.avx512dq) return 1;
    snprintf(why, bytes, "the processor has no AVX-512 F, BW, VL and DQ");
#else
    snprintf(why, bytes, "not built for x86-64");
#endif
    return 0;
}

#if defined(__AVX512F__)
#include "cpu/simd/vec_avx512.h"

#define SIMD_SLOT TAC_CPU_SLOT_AVX512
#include "cpu/simd/simd_table.inc"
#else
static void apply(tac_kernels *table)
{
    (void)table;
}
#endif

static void apply_all(tac_kernels *table)
{
    apply(table);
    if (table->dtype == TAC_F32) tac__avx512_conv_apply(table);
}

const tac_kernel_set tac__avx512_set = {
    .name = "avx512",
    .doc = "memory-bound kernels, 16 floats a vector; first convolutions",
    .available = available,
    .apply = apply_all,
    .slot = TAC_CPU_SLOT_AVX512,
    .cache_create = tac__quant_table_create,
    .cache_destroy = tac__quant_table_destroy,
};
