/* kernels.h: the loops of wire formats and codecs, compiled once for each
 * instruction set.
 *
 * All tables give the same bits: every element's arithmetic is the same
 * sequence of f32 operations (nothing is contracted), and sums over elements
 * have a fixed number of partial sums. Messages have no alignment; elements
 * have their own. n may be 0. */
#ifndef TACIT_COMM_CODEC_KERNELS_H
#define TACIT_COMM_CODEC_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define TAC__F32_INF UINT32_C(0x7f800000)

typedef struct tac__codec_kernels {
    const char *name; /* "avx512", "avx2", "ref" */
    int (*available)(void);

    /* The largest |x| as bits; TAC__F32_INF and above: some x is not finite. */
    uint32_t (*max_bits)(const float *x, size_t n);
    /* y = x * by + old * scale; old may be NULL (no such term). */
    void (*prepare)(float *y, const float *x, float by, const float *old,
                    float scale, size_t n);
    /* next = (x - sent) / scale; next may be x. */
    void (*loss)(float *next, const float *x, const float *sent, float scale,
                 size_t n);
    /* y += x * by */
    void (*axpy)(float *y, float by, const float *x, size_t n);
    /* The sum of x * y, in 16 partial sums. */
    float (*dot)(const float *x, const float *y, size_t n);

    /* Halves: put stores x * a * b rounded, get is h * a * b, add is
     * y += h * a * b. Two factors, because a power of two that brings
     * subnormals up or down need not be one float. */
    void (*f16_put)(void *h, const float *x, float a, float b, size_t n);
    void (*f16_get)(float *y, const void *h, float a, float b, size_t n);
    void (*f16_add)(float *y, const void *h, float a, float b, size_t n);

    void (*bf16_put)(void *h, const float *x, size_t n);
    void (*bf16_get)(float *y, const void *h, size_t n);
    void (*bf16_add)(float *y, const void *h, size_t n);

    /* Bytes in units of scale > 0, at most 127 of them; get takes any scale. */
    void (*i8_put)(void *q, const float *x, float scale, size_t n);
    void (*i8_get)(float *y, const void *q, float scale, size_t n);
    void (*i8_add)(float *y, const void *q, float scale, size_t n);
    /* As put, rounded down after adding u(key, first + i) in [0, 1). */
    void (*i8_dither)(void *q, const float *x, float scale, uint64_t key,
                      uint64_t first, size_t n);

    /* Nibbles in units of scale > 0, |x| <= scale; element 2i in the low half
     * of byte i. Sign and k: 0 is 0, else 2^(k - 7). To nearest, ties away from
     * zero; dither goes to either neighbour, so that the mean is x. */
    void (*f4_put)(void *q, const float *x, float scale, size_t n);
    void (*f4_get)(float *y, const void *q, float scale, size_t n);
    void (*f4_add)(float *y, const void *q, float scale, size_t n);
    void (*f4_dither)(void *q, const float *x, float scale, uint64_t key,
                      uint64_t first, size_t n);
} tac__codec_kernels;

/* Best first, NULL-terminated; the last is always available. */
extern const tac__codec_kernels *const tac__codec_kernel_tables[];
const tac__codec_kernels *tac__codec_kernels_best(void);

extern const tac__codec_kernels tac__codec_avx512;
extern const tac__codec_kernels tac__codec_avx2;
extern const tac__codec_kernels tac__codec_ref;

#endif
