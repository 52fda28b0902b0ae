/* half_bf16.c: the kernels in bf16. */
#define UP         tac_bf16_to_f32_n
#define DOWN       tac_f32_to_bf16_n
#define DTYPE      TAC_BF16
#define INFINITE   0x7f80
#define HALF_APPLY tac__half_apply_bf16

#include "half_table.inc"
