/* ref.h: the portable reference kernels.
 *
 * They define what every other set has to compute: plain loops in the order of
 * the formulas, one source (the .inc files) compiled for float and for double,
 * sums in double. They are correct first and many times slower than the rest;
 * the double table serves gradient checks and is the oracle of the tests. */
#ifndef TAC_CPU_REF_H
#define TAC_CPU_REF_H

#include "tacit/kernels.h"

/* Fill every entry of the table. */
void tac__ref_apply_f32(tac_kernels *table);
void tac__ref_apply_f64(tac_kernels *table);

/* AdamW with 8-bit moments: in f32, and what says that f64 has none. */
tac_status tac__ref_adamw8bit(const tac_kctx *kc, size_t n,
                              const tac_adamw_args *a,
                              const tac_step_scalars *s, void *p,
                              const float *g, uint8_t *code1, float *absmax1,
                              uint8_t *code2, float *absmax2);
tac_status tac__no_adamw8bit(const tac_kctx *kc, size_t n,
                             const tac_adamw_args *a, const tac_step_scalars *s,
                             void *p, const float *g, uint8_t *code1,
                             float *absmax1, uint8_t *code2, float *absmax2);

/* Elements that one thread at least should get of a cheap pass. */
enum { TAC_REF_GRAIN = 16384 };

/* A sum is made of at most this many parts, added in their order. */
enum { TAC_REF_MAX_PARTS = 256 };

#endif
