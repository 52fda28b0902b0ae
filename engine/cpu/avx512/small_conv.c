/* small_conv.c: direct convolution with AVX-512 for 9 or 27 taps.
 *
 * Forward: 7 pixels x 32 channels stay in registers while all taps are added:
 * two loads of weights and seven broadcasts feed 14 multiply-adds. Backward
 * weights: 9 taps x 32 channels stay in registers over all pixels of an image;
 * images are then added in memory, so that rounding errors grow with the root
 * of 784 and not of a whole batch. Output channels come in vectors of 16. */
#include "cpu/small_conv.h"

#include <stddef.h>
#include <string.h>

#include "cpu/kernel_sets.h"

#if defined(__AVX512F__)
#include <immintrin.h>

enum {
    LANES = 16,
    PIXELS = 7,
    GROUP = 9, /* taps whose gradients fit into registers */
    MAX_TAPS = 27,
    MAX_CHANNELS = 128,
    MAX_IMAGE = 8192, /* floats of a padded image */
};

/* What all images of a call share. */
typedef struct job {
    const tac_conv2d *d;
    size_t taps, row;        /* row: floats of a padded image's row */
    size_t offset[MAX_TAPS]; /* of a tap from a pixel's corner */
} job;

static size_t padded_width(const tac_conv2d *d)
{
    return d->w + 2 * d->pad;
}

static int fits(const tac_conv2d *d)
{
    const size_t taps = d->kh * d->kw * d->ic;
    if (taps == 0 || taps % GROUP != 0 || taps > MAX_TAPS) return 0;
    if (d->oc == 0 || d->oc % LANES != 0 || d->oc > MAX_CHANNELS) return 0;
    if (d->pad >= MAX_IMAGE || d->h >= MAX_IMAGE || d->w >= MAX_IMAGE) return 0;
    return (d->h + 2 * d->pad) * padded_width(d) * d->ic <= MAX_IMAGE;
}

static job job_of(const tac_conv2d *d)
{
    job j = {
        .d = d, .taps = d->kh * d->kw * d->ic, .row = padded_width(d) * d->ic};
    size_t t = 0;
    for (size_t i = 0; i < d->ic; ++i)
        for (size_t ky = 0; ky < d->kh; ++ky)
            for (size_t kx = 0; kx < d->kw; ++kx)
                j.offset[t++] = ky * j.row + kx * d->ic + i;
    return j;
}

/* Copies one image between zeros that were put there before. */
static void pad_image(const job *j, const float *x, float *padded)
{
    const tac_conv2d *d = j->d;
    const size_t row = d->w * d->ic;
    for (size_t y = 0; y < d->h; ++y)
        memcpy(padded + (y + d->pad) * j->row + d->pad * d->ic, x + y * row,
               row * sizeof *x);
}

/* `pixels` x `vectors` outputs from x on; step: floats from pixel to pixel. */
static inline __attribute__((always_inline)) void
forward_tile(const job *j, const float *x, size_t step, const float *w,
             const float *bias, int relu, float *y, int pixels, int vectors)
{
    const size_t oc = j->d->oc;
    __m512 sum[PIXELS][2];
    for (int p = 0; p < pixels; ++p)
        for (int v = 0; v < vectors; ++v)
            sum[p][v] = _mm512_loadu_ps(bias + v * LANES);
    for (size_t t = 0; t < j->taps; ++t) {
        const float *at = x + j->offset[t];
        for (int p = 0; p < pixels; ++p) {
            const __m512 xs = _mm512_set1_ps(at[(size_t)p * step]);
            for (int v = 0; v < vectors; ++v)
                sum[p][v] = _mm512_fmadd_ps(
                    xs, _mm512_loadu_ps(w + t * oc + (size_t)v * LANES),
                    sum[p][v]);
        }
    }
    for (int p = 0; p < pixels; ++p)
        for (int v = 0; v < vectors; ++v) {
            const __m512 r = relu
                                 ? _mm512_max_ps(sum[p][v], _mm512_setzero_ps())
                                 : sum[p][v];
            _mm512_storeu_ps(y + (size_t)p * oc + (size_t)v * LANES, r);
        }
}

static inline __attribute__((always_inline)) void
forward_rows(const job *j, const float *padded, const float *w,
             const float *bias, int relu, float *y, int vectors)
{
    const tac_conv2d *d = j->d;
    const size_t step = d->stride * d->ic;
    for (size_t oy = 0; oy < d->oh; ++oy) {
        const float *x = padded + oy * d->stride * j->row;
        float *to = y + oy * d->ow * d->oc;
        size_t ox = 0;
        for (; ox + PIXELS <= d->ow; ox += PIXELS)
            forward_tile(j, x + ox * step, step, w, bias, relu, to + ox * d->oc,
                         PIXELS, vectors);
        for (; ox < d->ow; ++ox)
            forward_tile(j, x + ox * step, step, w, bias, relu, to + ox * d->oc,
                         1, vectors);
    }
}

static void forward_image(const job *j, const float *padded, const float *w,
                          const float *bias, int relu, float *y)
{
    const size_t oc = j->d->oc;
    size_t o = 0;
    for (; o + 2 * LANES <= oc; o += 2 * LANES)
        forward_rows(j, padded, w + o, bias + o, relu, y + o, 2);
    if (o < oc) forward_rows(j, padded, w + o, bias + o, relu, y + o, 1);
}

static void forward(const tac_conv2d *d, const float *x, const float *w,
                    const float *b, tac_act act, float *y)
{
    const job j = job_of(d);
    float padded[MAX_IMAGE], by_tap[MAX_TAPS * MAX_CHANNELS];
    float bias[MAX_CHANNELS];
    memset(padded, 0, (d->h + 2 * d->pad) * j.row * sizeof *padded);
    for (size_t o = 0; o < d->oc; ++o) {
        bias[o] = b ? b[o] : 0;
        for (size_t t = 0; t < j.taps; ++t)
            by_tap[t * d->oc + o] = w[o * j.taps + t];
    }
    for (size_t n = 0; n < d->n; ++n) {
        pad_image(&j, x + n * d->h * d->w * d->ic, padded);
        forward_image(&j, padded, by_tap, bias, act == TAC_ACT_RELU,
                      y + n * d->oh * d->ow * d->oc);
    }
}

/* Adds one image's gradients of GROUP taps and, if db, of the bias, for
 * `vectors` x 16 channels. */
static inline __attribute__((always_inline)) void
backward_group(const job *j, const float *padded, const size_t *offset,
               const float *dy, float *dw, float *db, int vectors)
{
    const tac_conv2d *d = j->d;
    __m512 sum[GROUP][2], all[2];
    for (int v = 0; v < vectors; ++v) {
        all[v] = _mm512_setzero_ps();
        for (int t = 0; t < GROUP; ++t) sum[t][v] = _mm512_setzero_ps();
    }
    for (size_t oy = 0; oy < d->oh; ++oy) {
        const float *x = padded + oy * d->stride * j->row;
        for (size_t ox = 0; ox < d->ow; ++ox, x += d->stride * d->ic) {
            const float *from = dy + (oy * d->ow + ox) * d->oc;
            for (int v = 0; v < vectors; ++v) {
                const __m512 g = _mm512_loadu_ps(from + v * LANES);
                all[v] = _mm512_add_ps(all[v], g);
                for (int t = 0; t < GROUP; ++t)
                    sum[t][v] = _mm512_fmadd_ps(_mm512_set1_ps(x[offset[t]]), g,
                                                sum[t][v]);
            }
        }
    }
    for (int v = 0; v < vectors; ++v) {
        for (int t = 0; t < GROUP; ++t) {
            float *to = dw + (size_t)t * d->oc + v * LANES;
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sum[t][v]));
        }
        if (!db) continue;
        _mm512_storeu_ps(
            db + v * LANES,
            _mm512_add_ps(_mm512_loadu_ps(db + v * LANES), all[v]));
    }
}

/* dw (taps,oc) and db (oc) are added to. */
static void backward_image(const job *j, const float *padded, const float *dy,
                           float *dw, float *db)
{
    const size_t oc = j->d->oc;
    for (size_t t = 0; t < j->taps; t += GROUP) {
        const size_t *offset = j->offset + t;
        size_t o = 0;
        for (; o + 2 * LANES <= oc; o += 2 * LANES)
            backward_group(j, padded, offset, dy + o, dw + t * oc + o,
                           t == 0 ? db + o : NULL, 2);
        if (o < oc)
            backward_group(j, padded, offset, dy + o, dw + t * oc + o,
                           t == 0 ? db + o : NULL, 1);
    }
}

static void put(float *to, float v, int add)
{
    *to = add ? *to + v : v;
}

static void backward_weights(const tac_conv2d *d, const float *x,
                             const float *dy, float *dw, float *db, int add)
{
    const job j = job_of(d);
    float padded[MAX_IMAGE], by_tap[MAX_TAPS * MAX_CHANNELS] = {0};
    float bias[MAX_CHANNELS] = {0};
    memset(padded, 0, (d->h + 2 * d->pad) * j.row * sizeof *padded);
    for (size_t n = 0; n < d->n; ++n) {
        pad_image(&j, x + n * d->h * d->w * d->ic, padded);
        backward_image(&j, padded, dy + n * d->oh * d->ow * d->oc, by_tap,
                       bias);
    }
    for (size_t o = 0; o < d->oc; ++o) {
        for (size_t t = 0; t < j.taps; ++t)
            put(&dw[o * j.taps + t], by_tap[t * d->oc + o], add);
        if (db) put(&db[o], bias[o], add);
    }
}

const tac__small_conv *tac__small_conv_find(void)
{
    static const tac__small_conv small = {fits, forward, backward_weights};
    char why[128];
    return tac__avx512_set.available(why, sizeof why) ? &small : NULL;
}

#else

const tac__small_conv *tac__small_conv_find(void)
{
    return NULL;
}

#endif
