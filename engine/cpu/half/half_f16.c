/* half_f16.c: the kernels in f16. */
#define UP         tac_f16_to_f32_n
#define DOWN       tac_f32_to_f16_n
#define DTYPE      TAC_F16
#define INFINITE   0x7c00
#define HALF_APPLY tac__half_apply_f16

#include "half_table.inc"
