/* quant_table.c: filling the buckets; what they are says quant_table.h. */
#include "cpu/simd/quant_table.h"

#include <stdlib.h>
#include <string.h>

#include "tacit/kernels.h"

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* map: the entries from 0.0 on, count of them. A bucket without a boundary
 * has one that no value lies above. */
static void fill(uint32_t *words, uint32_t buckets, uint32_t first,
                 unsigned shift, const float *map, uint32_t count)
{
    const uint32_t mask = (1U << shift) - 1;
    uint32_t entry = 0;

    for (uint32_t b = 0; b < buckets; ++b) {
        uint32_t boundary = UINT32_MAX;
        if (entry + 1 < count)
            boundary = bits_of((map[entry] + map[entry + 1]) * 0.5F);
        const int here = boundary >> shift == first + b;
        words[b] = entry << shift | (here ? boundary & mask : mask);
        entry += (uint32_t)here;
    }
}

tac_status tac__quant_table_create(tac_context *ctx, void **out)
{
    tac__quant_table *t = malloc(sizeof *t);

    if (t == NULL)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a table of codes");
    fill(t->words1, TAC_QUANT_COUNT1, TAC_QUANT_FIRST1, TAC_QUANT_SHIFT1,
         tac_quant_map(1) + 127, 129);
    fill(t->words2, TAC_QUANT_COUNT2, TAC_QUANT_FIRST2, TAC_QUANT_SHIFT2,
         tac_quant_map(0), 256);
    *out = t;
    return TAC_OK;
}

void tac__quant_table_destroy(void *table)
{
    free(table);
}
