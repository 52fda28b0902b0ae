/* conv_entries.h: convolutions of few input channels in the table. */
#ifndef TAC_CPU_AVX512_CONV_ENTRIES_H
#define TAC_CPU_AVX512_CONV_ENTRIES_H

#include "tacit/kernels.h"

/* Overrides forward and backward weights; other shapes go to the reference. */
void tac__avx512_conv_apply(tac_kernels *table);

#endif
