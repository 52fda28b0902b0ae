/* wire.h: what travels instead of f32 elements.
 *
 * A wire format turns stretches of f32 into messages and back. Elements form
 * blocks of `block`, which share a scale; a message is self-contained, and
 * every encoder chooses its scales alone, so ranks need not agree on any
 * beforehand. Pieces of a buffer that become messages are cut at multiples of
 * `block` (the last one excepted), so where the cuts are does not change a
 * value.
 *
 *   fp16  2 bytes an element and 2 for each 1024: a power-of-two exponent, so
 *         that the block's largest magnitude lies in [2^14, 2^15). Infinity and
 *         NaN stay what they are.
 *   bf16  2 bytes an element, no scale.
 *   int8  1 byte an element and 4 for each 256: scale = max|x| / 127. A block
 *         with infinity or NaN decodes to NaN.
 *   fp4   half a byte an element and 4 for each 256: scale = max|x|; 0 or a
 * sign and a power of two from 2^-6 to 1. Not finite: as int8.
 *
 * Encoding rounds to nearest, ties to even (fp4: away from zero); int8 and fp4
 * on request stochastically, keyed by (seed, step, sender, element), never by
 * where a piece begins.
 *
 * Algorithms: every rank's contribution is encoded once on its way out
 * (tac__wire_out), the owner of a stretch adds the decoded messages in f32 in
 * rank order, its own included, and encodes the result once (tac__wire_reduce),
 * and every rank decodes that, the owner too (tac__wire_in): identical bits on
 * all ranks. Kernels exist for AVX-512, AVX2 and portable C, all with the same
 * bits (codecs/kernels.h). */
#ifndef TACIT_COMM_WIRE_H
#define TACIT_COMM_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "codecs/kernels.h"
#include "tacit/dtype.h"

struct tac_req;

typedef struct tac__wire {
    const char *name; /* "fp16", "bf16", "int8", "fp4" */
    size_t block;     /* elements; a power of two that divides 1024 */
    /* Bytes of a message of n elements. */
    size_t (*bytes)(size_t n);
    /* x[0..n) are the elements at .. at + n of a message of `total` elements;
     * at is a multiple of block, and so is n unless at + n == total. `key` 0:
     * to nearest; else the key of stochastic rounding, where `first` is the
     * number of the message's first element in the request's buffer. */
    void (*encode)(const tac__codec_kernels *k, void *msg, size_t total,
                   size_t at, const float *x, size_t n, uint64_t key,
                   uint64_t first);
    void (*decode)(const tac__codec_kernels *k, const void *msg, size_t total,
                   size_t at, float *x, size_t n);
    /* acc += what decode gives */
    void (*add)(const tac__codec_kernels *k, const void *msg, size_t total,
                size_t at, float *acc, size_t n);
} tac__wire;

extern const tac__wire tac__wire_fp16, tac__wire_bf16, tac__wire_int8,
    tac__wire_fp4;
/* Of a dtype on the wire (F16, BF16); NULL: none. */
const tac__wire *tac__wire_of(int wire_dtype);

/* Stochastic rounding; seed 0: to nearest. */
typedef struct tac__dither {
    uint64_t seed, step;
} tac__dither;

/* Error feedback of a request: what encoding lost, given back the next time.
 * Element i of the buffer has old[i], in units of the unscaled gradient: x =
 * src[i] + grad_scale * old[i] is encoded and next[i] becomes (x - decoded) /
 * grad_scale. Only what this rank encodes on its way out is touched. The same
 * for the result, at the rank that encodes it: sum_old and sum_next. All NULL:
 * none. Whoever passes a part of a request on as another one passes
 * tac__feedback_at. */
typedef struct tac__feedback {
    const float *old;
    float *next;
    const float *sum_old;
    float *sum_next;
    float grad_scale; /* 0 is taken as 1 */
    tac__dither dither;
} tac__feedback;

/* The feedback of a buffer that begins `at` elements into f's. */
tac__feedback tac__feedback_at(const tac__feedback *f, size_t at);

/* Bytes that n elements of this request's dtype take in a message. */
size_t tac__wire_bytes(const struct tac_req *req, size_t n);
/* Elements [at, at + n) of this rank's source, prescaled, with feedback, as one
 * message. */
void tac__wire_out(struct tac_req *req, size_t at, size_t n, void *msg);
/* The p messages of elements [at, at + n) in scratch.srcs, in rank order,
 * become one (which may be one of them). avg and postscale are applied before
 * the rounding. */
void tac__wire_reduce(struct tac_req *req, size_t at, size_t n, void *msg);
/* A message becomes elements [at, at + n) of the destination. */
void tac__wire_in(struct tac_req *req, size_t at, size_t n, const void *msg);

#endif
