/* tacit/cpu.h: what this processor can do, for choosing kernels at run time. */
#ifndef TACIT_CPU_H
#define TACIT_CPU_H

#include "tacit/export.h"

TAC_BEGIN_DECLS

typedef struct tac_cpu_features {
    int avx2, fma, f16c, avx512f, avx512bw, avx512vl, avx512dq, avx512_bf16;
    int amx_bf16;
} tac_cpu_features;

/* Features that both the processor and the operating system support.
 * Thread-safe. */
TAC_API tac_cpu_features tac_cpu_detect(void);

TAC_END_DECLS

#endif
