/* cpu.c: what this processor can do. */
#include "tacit/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum { AMX_BF16 = 1 << 22 }; /* leaf 7, EDX */

/* The builtins also look whether the operating system saves the registers. */
tac_cpu_features tac_cpu_detect(void)
{
    tac_cpu_features f = {0};
    unsigned a = 0, b = 0, c = 0, d = 0;
    __builtin_cpu_init();
    f.avx2 = !!__builtin_cpu_supports("avx2");
    f.fma = !!__builtin_cpu_supports("fma");
    f.avx512f = !!__builtin_cpu_supports("avx512f");
    f.avx512bw = !!__builtin_cpu_supports("avx512bw");
    f.avx512vl = !!__builtin_cpu_supports("avx512vl");
    f.avx512dq = !!__builtin_cpu_supports("avx512dq");
    f.avx512_bf16 = !!__builtin_cpu_supports("avx512bf16");
    if (__builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d))
        f.f16c = (c & bit_F16C) != 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        f.amx_bf16 = (d & AMX_BF16) != 0;
    return f;
}
#else
tac_cpu_features tac_cpu_detect(void)
{
    return (tac_cpu_features){0};
}
#endif
