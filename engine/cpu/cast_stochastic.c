/* cast_stochastic.c: f32 to f16 or bf16, rounded stochastically.
 *
 * Cost: one pass, and one Philox block for four elements. All in integers: no
 * floating-point mode changes a result. The dropped bits are moved to the top
 * of a word and compared with a random word; what an f16 subnormal drops
 * beyond 32 bits, a probability below 2^-32, is lost. */
#include <string.h>

#include "cpu/cast.h"
#include "tacit/half.h"
#include "tacit/pool.h"

enum {
    GRAIN = 4096,
    F32_INF = 0x7f800000,
    F16_MAX = 0x477fe000,        /* 65504 */
    F16_MIN_NORMAL = 0x38800000, /* 2^-14 */
};

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

uint16_t tac__round_bf16(float x, uint32_t random)
{
    const uint32_t u = bits_of(x), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
    if (a >= F32_INF) return tac_f32_to_bf16(x);
    const uint32_t b = (a >> 16) + ((a << 16) > random);
    return (uint16_t)(sign | (b < 0x7f80 ? b : 0x7f7f));
}

/* The value is m * 2^(e-150), a subnormal f16 a multiple of 2^-24: `dropped` of
 * m's bits are lost. An f32 subnormal is below what can be told from 0. */
static uint32_t to_subnormal(uint32_t a, uint32_t random)
{
    const uint32_t dropped = 126 - (a >> 23); /* 14 to 126 */
    const uint32_t m = (a & 0x7fffff) | 0x800000;
    if (dropped >= 64) return 0;
    if (dropped > 32) return (m >> (dropped - 32)) > random;
    if (dropped == 32) return m > random;
    return (m >> dropped) + (m << (32 - dropped) > random);
}

uint16_t tac__round_f16(float x, uint32_t random)
{
    const uint32_t u = bits_of(x), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
    const uint32_t v = a - 0x38000000; /* the exponent's bias made f16's */
    uint32_t h;
    if (a >= F32_INF) return tac_f32_to_f16(x);
    if (a >= F16_MAX)
        h = 0x7bff;
    else if (a >= F16_MIN_NORMAL)
        h = (v >> 13) + (v << 19 > random);
    else
        h = to_subnormal(a, random);
    return (uint16_t)(sign | h);
}

typedef struct rounding {
    const float *x;
    uint16_t *y;
    tac_rng_key key;
    uint64_t first;
    int bf16;
} rounding;

static void round_range(void *arg, size_t begin, size_t end, int part)
{
    const rounding *r = arg;
    uint32_t words[4];
    (void)part;
    for (size_t i = begin; i < end; ++i) {
        const uint64_t at = r->first + i;
        if (i == begin || at % 4 == 0) tac_rng_block(&r->key, at / 4, words);
        r->y[i] = r->bf16 ? tac__round_bf16(r->x[i], words[at % 4])
                          : tac__round_f16(r->x[i], words[at % 4]);
    }
}

tac_status tac__round_check(const tac_kctx *kc, tac_dtype to)
{
    if (to == TAC_F16 || to == TAC_BF16) return TAC_OK;
    return tac_fail(kc->ctx, TAC_ERR_ARG,
                    "can't round stochastically to %s; the choices are f16 and "
                    "bf16",
                    tac_dtype_name(to));
}

tac_status tac__cast_stochastic(const tac_kctx *kc, size_t n, const float *x,
                                tac_dtype to, void *y, const tac_round *r)
{
    rounding all = {.x = x,
                    .y = y,
                    .key = tac__round_key(r),
                    .first = r->first,
                    .bf16 = to == TAC_BF16};
    TAC_TRY(tac__round_check(kc, to));
    tac_pool_for(kc->pool, n, GRAIN, round_range, &all);
    return TAC_OK;
}
