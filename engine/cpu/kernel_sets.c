/* kernel_sets.c: the list of CPU kernel sets, in the order of application. */
#include "cpu/kernel_sets.h"

const tac_kernel_set *const *tac_cpu_kernel_sets(void)
{
    static const tac_kernel_set *const sets[] = {
        &tac__ref_set, &tac__avx2_set, &tac__avx512_set, &tac__onednn_set, NULL,
    };
    return sets;
}

size_t tac__cache_bytes(const tac_cpu_cache *cache)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    size_t bytes = 0;
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->cache_bytes && cache->slots[sets[i]->slot])
            bytes += sets[i]->cache_bytes(cache->slots[sets[i]->slot]);
    return bytes;
}
