/* kernels_table.c: the codec loops that this build has, best first. */
#include "codecs/kernels.h"

const tac__codec_kernels *const tac__codec_kernel_tables[] = {
#if defined(__x86_64__)
    &tac__codec_avx512,
    &tac__codec_avx2,
#endif
    &tac__codec_ref,
    NULL,
};

const tac__codec_kernels *tac__codec_kernels_best(void)
{
    size_t i = 0;
    while (!tac__codec_kernel_tables[i]->available()) i++;
    return tac__codec_kernel_tables[i];
}
