/* ref_adamw8bit.c: AdamW with block-wise 8-bit moments, in portable C.
 *
 * Each block of 256 elements of one tensor: moments = map[code] * absmax; one
 * step of Adam on them; the block's new absmax; codes of the nearest map
 * values. The update uses the moments before they are rounded. Costs 16
 * bytes a parameter: value read and written, gradient read, two codes read and
 * written.
 * Reference: Dettmers et al., "8-bit Optimizers via Block-wise Quantization",
 * ICLR 2022; definitions as in bitsandbytes, with its open cases settled: an
 * absmax of 0 gives the code of 0, the last block may be short, a negative
 * exp_avg never becomes 0. */
#include <float.h>
#include <math.h>

#include "cpu/low.h"
#include "cpu/ref/ref.h"
#include "tacit/pool.h"

enum { BLOCK = TAC_QUANT_BLOCK, BLOCKS_A_PART = TAC_REF_GRAIN / BLOCK };

typedef struct adamw8bit {
    size_t n;
    const float *map1, *map2, *g;
    float *p, *absmax1, *absmax2;
    uint8_t *code1, *code2;
    float scale, clip, beta1, beta2, step, eps, decay;
    tac__low low;
} adamw8bit;

/* The largest exp_avg_sq that is taken: 1 / absmax must be a normal number. */
static const float limit = 0x1p126F;

/* The nearest entry: x above the middle of two belongs to the upper one. */
static uint8_t nearest(const float *map, float x)
{
    unsigned low = 0, high = 255;
    while (low < high) {
        const unsigned k = (low + high) / 2;
        if (x > (map[k] + map[k + 1]) * 0.5F)
            low = k + 1;
        else
            high = k;
    }
    return (uint8_t)low;
}

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? 0.0F : x;
}

static float inverse(float absmax)
{
    return absmax < FLT_MIN ? 0.0F : 1.0F / absmax;
}

/* Moments and value of element i; m and v are the new moments. */
static void update(const adamw8bit *o, size_t i, float *m, float *v)
{
    const float g = o->g[i] / o->scale * o->clip;
    const float m1 = flushed(o->beta1 * *m + (1 - o->beta1) * g);
    const float v1 = flushed(o->beta2 * *v + (1 - o->beta2) * g * g);

    *m = *v = 0;
    if (!(v1 < limit)) return;
    *m = m1;
    *v = v1;
    o->p[i] = (o->p[i] - o->step * m1 / (sqrtf(v1) + o->eps)) * o->decay;
}

static void quantise(const adamw8bit *o, size_t b, size_t count, const float *m,
                     const float *v, float most1, float most2)
{
    const size_t at = b * BLOCK;
    const float by1 = inverse(most1), by2 = inverse(most2);

    o->absmax1[b] = most1;
    o->absmax2[b] = most2;
    for (size_t i = 0; i < count; ++i) {
        const float x = m[i] * by1;
        const uint8_t code = nearest(o->map1, x);
        o->code1[at + i] =
            x < 0 && o->map1[code] == 0 ? (uint8_t)(code - 1) : code;
        o->code2[at + i] = nearest(o->map2, v[i] * by2);
    }
}

static void block(const adamw8bit *o, size_t b)
{
    const size_t at = b * BLOCK;
    const size_t count = o->n - at < BLOCK ? o->n - at : BLOCK;
    float m[BLOCK], v[BLOCK], most1 = 0, most2 = 0;

    for (size_t i = 0; i < count; ++i) {
        m[i] = o->map1[o->code1[at + i]] * o->absmax1[b];
        v[i] = o->map2[o->code2[at + i]] * o->absmax2[b];
        update(o, at + i, &m[i], &v[i]);
        if (fabsf(m[i]) > most1) most1 = fabsf(m[i]);
        if (v[i] > most2) most2 = v[i];
    }
    quantise(o, b, count, m, v, most1, most2);
    tac__low_write(&o->low, o->p, at, at + count);
}

static void range(void *arg, size_t begin, size_t end, int part)
{
    (void)part;
    for (size_t b = begin; b < end; ++b) block(arg, b);
}

tac_status tac__ref_adamw8bit(const tac_kctx *kc, size_t n,
                              const tac_adamw_args *a,
                              const tac_step_scalars *s, void *p,
                              const float *g, uint8_t *code1, float *absmax1,
                              uint8_t *code2, float *absmax2)
{
    const double lr = s->lr * a->lr_scale;
    const double root = sqrt(s->bias_correction2);
    adamw8bit o = {
        .n = n,
        .map1 = tac_quant_map(1),
        .map2 = tac_quant_map(0),
        .g = g,
        .p = p,
        .absmax1 = absmax1,
        .absmax2 = absmax2,
        .code1 = code1,
        .code2 = code2,
        .scale = s->grad_scale,
        .clip = (float)s->clip_coef,
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .step = (float)(lr * root / s->bias_correction1),
        .eps = (float)(root * a->eps),
        .decay = (float)(1 - lr * a->weight_decay),
        .low = {a->low, a->low_dtype},
    };

    if (s->found_inf != 0) return TAC_OK;
    tac_pool_for(kc->pool, (n + BLOCK - 1) / BLOCK, BLOCKS_A_PART, range, &o);
    return TAC_OK;
}

tac_status tac__no_adamw8bit(const tac_kctx *kc, size_t n,
                             const tac_adamw_args *a, const tac_step_scalars *s,
                             void *p, const float *g, uint8_t *code1,
                             float *absmax1, uint8_t *code2, float *absmax2)
{
    (void)n;
    (void)a;
    (void)s;
    (void)p;
    (void)g;
    (void)code1;
    (void)absmax1;
    (void)code2;
    (void)absmax2;
    return tac_fail(kc->ctx, TAC_ERR_UNSUPPORTED,
                    "adamw8bit has no kernel for f64; use adamw");
}
