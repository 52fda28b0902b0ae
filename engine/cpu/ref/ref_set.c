/* ref_set.c: the reference kernels as a set. */
#include "cpu/kernel_sets.h"
#include "cpu/ref/ref.h"

static int available(char *why, size_t bytes)
{
    (void)why;
    (void)bytes;
    return 1;
}

static void apply(tac_kernels *table)
{
    if (table->dtype == TAC_F64)
        tac__ref_apply_f64(table);
    else if (table->dtype == TAC_F32)
        tac__ref_apply_f32(table);
}

const tac_kernel_set tac__ref_set = {
    .name = "ref",
    .doc = "portable C, f32 and f64, sums in f64",
    .available = available,
    .apply = apply,
};
