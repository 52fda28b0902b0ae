/* quant_table.h: the nearest entry of a dynamic map from a float's bits.
 *
 * The magnitudes from 2^-23 to 1 are cut into buckets by exponent and leading
 * bits of the mantissa (7; 6 suffice for the signed map), so narrow that at
 * most one boundary between two entries falls into each. A bucket's word
 * holds the entry below the boundary and the boundary's remaining bits:
 *
 *     w = word[bits >> 16];  entry = (w >> 16) + ((bits & 0xffff) > (w &
 * 0xffff))
 *
 * which is exact, without a branch, and one gather. Private to cpu/. */
#ifndef TAC_CPU_QUANT_TABLE_H
#define TAC_CPU_QUANT_TABLE_H

#include <stdint.h>

#include "tacit/context.h"

enum {
    TAC_QUANT_SHIFT1 = 17, /* bits below a bucket: signed map */
    TAC_QUANT_SHIFT2 = 16, /* unsigned map */
    TAC_QUANT_FIRST1 = 104 << (23 - TAC_QUANT_SHIFT1), /* 2^-23 */
    TAC_QUANT_FIRST2 = 104 << (23 - TAC_QUANT_SHIFT2),
    TAC_QUANT_COUNT1 = (23 << (23 - TAC_QUANT_SHIFT1)) + 1, /* to 1 */
    TAC_QUANT_COUNT2 = (23 << (23 - TAC_QUANT_SHIFT2)) + 1,
};

/* The entries are counted from 0.0: for the signed map 0 to 128 upwards. */
typedef struct tac__quant_table {
    uint32_t words1[TAC_QUANT_COUNT1], words2[TAC_QUANT_COUNT2];
} tac__quant_table;

/* As a kernel set's cache functions. Errors: NOMEM. */
tac_status tac__quant_table_create(tac_context *ctx, void **out);
void tac__quant_table_destroy(void *table); /* NULL is legal */

#endif
