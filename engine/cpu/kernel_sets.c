/* kernel_sets.c: the list of CPU kernel sets, in the order of application. */
#include "cpu/kernel_sets.h"

const tac_kernel_set *const *tac_cpu_kernel_sets(void)
{
    static const tac_kernel_set *const sets[] = {
        &tac__ref_set, &tac__avx2_set, &tac__avx512_set, &tac__onednn_set, NULL,
    };
    return sets;
}
