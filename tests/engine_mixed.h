/* engine_mixed.h: what the tests of mixed precision share: a policy as amp's,
 * and opening a region with it. */
#ifndef TAC_ENGINE_MIXED_H
#define TAC_ENGINE_MIXED_H

#include "engine_test.h"
#include "tac_check.h"

static const tac_dtype mix_lows[2] = {TAC_F16, TAC_BF16};

/* Half a unit in the last place, relative to the number. */
static inline double mix_unit(tac_dtype t)
{
    return t == TAC_F16 ? 1.0 / 2048 : t == TAC_BF16 ? 1.0 / 256 : 0x1p-24;
}

static inline tac_cast_rule mix_rule(const char *op)
{
    static const char *const low[] = {"linear", "conv2d", "conv2d_max_pool2d",
                                      "attention"};
    static const char *const wide[] = {"softmax_cross_entropy", "layer_norm"};

    for (size_t i = 0; i < sizeof low / sizeof *low; ++i)
        if (strcmp(op, low[i]) == 0) return TAC_CAST_LOW;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; ++i)
        if (strcmp(op, wide[i]) == 0) return TAC_CAST_F32;
    return strcmp(op, "add") == 0 ? TAC_CAST_WIDEST : TAC_CAST_NONE;
}

static inline tac_cast_rule mix_all_low(const char *op)
{
    (void)op;
    return TAC_CAST_LOW;
}

static inline tac_cast_rule mix_all_f32(const char *op)
{
    (void)op;
    return TAC_CAST_F32;
}

static inline tac_cast_rule mix_none(const char *op)
{
    (void)op;
    return TAC_CAST_NONE;
}

static inline tac_status mix_begin(tac_tape *t, tac_dtype low,
                                   tac_cast_rule (*rule)(const char *),
                                   int cache, const void *weights)
{
    const tac_tape_autocast a = {sizeof a, low, rule, cache, weights};
    return tac_tape_set_autocast(t, &a);
}

/* A copy of the value arena in `low`, to be freed. */
static inline void *mix_weights(const tac_params *p, tac_dtype low)
{
    const size_t n = tac_params_padded(p);
    void *w = malloc(2 * n + 1);

    for (size_t i = 0; i < n; ++i)
        eng_set(low, w, i,
                eng_get(tac_params_dtype(p), tac_params_values(p), i));
    return w;
}

#endif
