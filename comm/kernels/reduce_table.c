/* reduce_table.c: the f32 reductions that this build has, best first. */
#include "kernels/reduce.h"

const tac__reduce_table *const tac__reduce_tables[] = {
#if defined(__x86_64__)
    &tac__reduce_avx512,
    &tac__reduce_avx2,
#endif
    &tac__reduce_ref,
    NULL,
};

const tac__reduce_table *tac__reduce_table_best(void)
{
    size_t i = 0;
    while (!tac__reduce_tables[i]->available()) i++;
    return tac__reduce_tables[i];
}
