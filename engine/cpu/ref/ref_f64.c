/* ref_f64.c: the reference kernels for double. */
#define REAL          double
#define FN(name)      ref_f64_##name
#define REF_DTYPE     TAC_F64
#define REF_APPLY     tac__ref_apply_f64
#define REF_ADAMW8BIT tac__no_adamw8bit
#define SQRT          sqrt
#include "ref_table.inc"
