/* kernel_sets.h: the sets of CPU kernels, one folder each. Private to cpu/.
 *
 * A set whose code this build does not contain is still listed; its
 * `available` says why it can't be used. */
#ifndef TAC_CPU_KERNEL_SETS_H
#define TAC_CPU_KERNEL_SETS_H

#include "tacit/kernels.h"

extern const tac_kernel_set tac__ref_set;
extern const tac_kernel_set tac__avx2_set;
extern const tac_kernel_set tac__avx512_set;
extern const tac_kernel_set tac__onednn_set;

/* Bytes of scratch that the sets' states hold. */
size_t tac__cache_bytes(const tac_cpu_cache *cache);

#endif
