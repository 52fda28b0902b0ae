/* reduce_avx2.c: f32 reductions compiled for AVX2. */
#include "kernels/reduce_f32.h"
#include "tacit/cpu.h"

static int available(void)
{
    return tac_cpu_detect().avx2;
}

TABLE(avx2);
