/* reduce_avx512.c: f32 reductions compiled for AVX-512. */
#include "kernels/reduce_f32.h"
#include "tacit/cpu.h"

static int available(void)
{
    const tac_cpu_features f = tac_cpu_detect();
    return f.avx512f && f.avx512bw && f.avx512vl && f.avx512dq;
}

TABLE(avx512);
