/* ref_f32.c: the reference kernels for float. */
#define REAL          float
#define FN(name)      ref_f32_##name
#define REF_DTYPE     TAC_F32
#define REF_APPLY     tac__ref_apply_f32
#define REF_ADAMW8BIT tac__ref_adamw8bit
#define SQRT          sqrtf
#include "ref_table.inc"
