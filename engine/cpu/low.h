/* low.h: 16-bit copies of f32 parameters, kept by the kernels that update them.
 * Private to cpu/.
 *
 * A kernel updates a piece of LOW_PIECE parameters and then rounds it, while it
 * is in the first-level cache: 2 bytes a parameter more to write, where a pass
 * of its own reads 4 and writes 2. The conversion is tac__cast's, so that the
 * bits are, too. */
#ifndef TAC_CPU_LOW_H
#define TAC_CPU_LOW_H

#include "tacit/half.h"
#include "tacit/kernels.h"

enum { TAC_LOW_PIECE = 1024 }; /* 4 KiB; TAC_QUANT_BLOCK divides it */

/* Where the copy is; p NULL: there is none. */
typedef struct tac__low {
    uint16_t *p;
    tac_dtype dtype;
} tac__low;

/* The end of the piece that begins at `at`. */
static inline size_t tac__low_piece_end(size_t at, size_t end)
{
    return end - at < TAC_LOW_PIECE ? end : at + TAC_LOW_PIECE;
}

/* Parameters [begin, end) have been updated. */
static inline void tac__low_write(const tac__low *low, const float *p,
                                  size_t begin, size_t end)
{
    if (!low->p) return;
    if (low->dtype == TAC_F16)
        tac_f32_to_f16_n(low->p + begin, p + begin, end - begin);
    else
        tac_f32_to_bf16_n(low->p + begin, p + begin, end - begin);
}

#endif
