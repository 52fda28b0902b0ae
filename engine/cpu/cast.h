/* cast.h: conversions between floating-point types, in portable C. Private to
 * cpu/. Entries of every table of the CPU. */
#ifndef TAC_CPU_CAST_H
#define TAC_CPU_CAST_H

#include "tacit/kernels.h"

tac_status tac__cast(const tac_kctx *kc, size_t n, tac_dtype from,
                     const void *x, tac_dtype to, void *y, int accumulate);

tac_status tac__cast_stochastic(const tac_kctx *kc, size_t n, const float *x,
                                tac_dtype to, void *y, const tac_round *r);

/* Is `to` f16 or bf16? Errors: ARG, told. */
tac_status tac__round_check(const tac_kctx *kc, tac_dtype to);

/* One value, with 32 random bits. */
uint16_t tac__round_f16(float x, uint32_t random);
uint16_t tac__round_bf16(float x, uint32_t random);

/* The key of r's random numbers. */
static inline tac_rng_key tac__round_key(const tac_round *r)
{
    return (tac_rng_key){
        .seed = r->seed,
        .stream = TAC_STREAM_ROUND,
        .step = (*r->step << 16) + r->tensor,
    };
}

#endif
