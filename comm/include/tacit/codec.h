/* tacit/codec.h: compression of gradients on their way.
 *
 * Stateless casts are a call's wire_dtype (TAC_F16, TAC_BF16): f32 elements
 * travel as 16 bits, are added in f32 and rounded once more. Everything else is
 * a codec: an object that belongs to one communicator's calls, given as
 * tac_coll_opt.codec or to a reducer (tac_reducer_set_codec). A codec
 * compresses f32 allreduces (sum and avg).
 *
 * Specifications (what ddp_train --compress takes):
 *
 *     none               no codec (tac_codec_create: *out is NULL)
 *     fp16, bf16         the casts, as codecs, so that they can have feedback
 *     int8               blocks of 256, scale max|x|/127
 *     fp4                blocks of 256, scale max|x|; a sign and three bits of
 *                        exponent (E3M0): 0, 2^-6, 2^-5, ... 1 times the scale
 *     topk:F             the F * n elements of the largest magnitude of each
 *                        parameter (rounded to the nearest, at least 1; ties by
 *                        the lower index), 0 < F <= 1; values as f32 or in
 *                        few bits, indices as u32 or within chunks
 *     powersgd:R         rank R >= 1 (Vogels et al. 2019, algorithm 1), warm
 *                        start; 1-d parameters and those where it would not
 *                        save travel as they are
 *
 * followed by options, separated by commas:
 *
 *     ef, noef           error feedback (default: on for int8, fp4, topk
 *                        and powersgd, off for casts)
 *     start=N            calls of a parameter that are sent as f32 before the
 *                        codec begins (default 0; powersgd 10)
 *     stochastic         int8, fp4: rounds stochastically, without bias
 *     seed=N             int8, fp4, powersgd: of what is random (default 0)
 *     bits=B             topk: bits of a value: 32 (f32, the default), or 8, 4
 *                        or 2: a sign, and one of 2^(B-1) magnitudes that lie
 *                        evenly between two levels of each 256 values: smallest
 *                        and largest; for 2 bits the best pair in the sense of
 *                        squares
 *     chunk=N            topk: F of each N neighbours (a power of two, 16 to
 *                        65536; the last chunk may be shorter), at least one;
 *                        indices then have log2 N bits; default 0: of the whole
 *                        parameter
 *     min=N              topk: parameters of fewer elements are sent whole, as
 *                        f32 (default 1: none)
 *     warmup=N           topk: in N calls F falls from 1/4 over 1/16, 1/64, ...
 *                        to its value, in stages of equal length (default 0)
 *     min-rate=X         powersgd: a matrix of n rows and m columns (all
 *                        extents but the first) is compressed only if
 *                        (n + m) R X < n m (default 2)
 *
 * Bytes on the wire that a rank contributes, of n elements:
 *
 *     fp16               2 n + 2 ceil(n / 1024)
 *     bf16               2 n
 *     int8               n + 4 ceil(n / 256)
 *     fp4                ceil(n / 2) + 4 ceil(n / 256)
 *     topk               for each parameter 8 k; with i = log2 N bits of an
 *                        index (else 32): 4 k + 4 ceil(k i / 32), and with bits
 *                        8 ceil(k / 256) + 4 ceil(k (i + B) / 32); 4 n for
 * those sent whole (in a warm-up k is larger) powersgd           4 (n + m) R
 * for each matrix; 4 n for the others
 *
 * Error feedback. What encoding has lost is added to the next contribution.
 * Residuals are keyed by parameter name, so a rebuild of buckets moves nothing;
 * they are kept without the loss scale. A call whose result has an infinity or
 * a NaN leaves all residuals as they were, on all ranks. The casts, int8 and
 * fp4 encode the sum once more: the rank that does so keeps what that loses,
 * too.
 *
 * All ranks get identical bits. Codecs must be created with the same
 * specification on all ranks; it is compared by the first call for each
 * arrangement of parameters, with the arrangement itself: MISMATCH names both.
 * In a world of one nothing is compressed.
 * Thread-safety: one thread at a time. */
#ifndef TACIT_CODEC_H
#define TACIT_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/comm.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

typedef struct tac_codec tac_codec;

/* A stretch of the buffer that is one parameter. */
typedef struct tac_codec_part {
    const char *name;     /* key of its state; copied at first sight; no two
                             parameters may have the same */
    size_t offset, count; /* elements in the buffer */
    int ndim;             /* 0: {count} */
    const size_t *shape;  /* rows are shape[0], columns the rest */
} tac_codec_part;

/* What a buffer is made of; parts in ascending order. topk and powersgd don't
 * send what lies between parts: it becomes 0. NULL instead of a pointer to this
 * structure: one part, keyed by the call's tag. */
typedef struct tac_codec_layout {
    size_t n;
    const tac_codec_part *parts;
    double grad_scale; /* the loss scale that the buffer carries; 0: 1 */
} tac_codec_layout;

/* Parses and creates. Errors: ARG (the message names the part that is wrong and
 * what is possible), NOMEM. "none": *out NULL. */
TAC_API tac_status tac_codec_create(tac_context *ctx, const char *spec,
                                    tac_codec **out);
/* After the calls that use it are complete. NULL is legal. */
TAC_API void tac_codec_destroy(tac_codec *c);

/* The specification with every default written out. Owned by the codec. */
TAC_API const char *tac_codec_spec(const tac_codec *c);
/* Does it keep anything from one call to the next (feedback, warm starts)? */
TAC_API int tac_codec_has_state(const tac_codec *c);

/* Bytes that this rank contributes to the wire for such a buffer, once the
 * codec has begun and warmed up; exact. `layout` NULL: one part. */
TAC_API size_t tac_codec_wire_bytes(const tac_codec *c, size_t count,
                                    const tac_codec_layout *layout);

/* Bytes of memory that such a buffer makes the codec hold among `ranks` ranks:
 * residuals, warm starts, messages. And what it holds by now. */
TAC_API size_t tac_codec_predict(const tac_codec *c, size_t count,
                                 const tac_codec_layout *layout, int ranks);
TAC_API size_t tac_codec_held(const tac_codec *c);

/* The same of its `call`-th call, counted from 0, which `start` and a warm-up
 * may make larger. (In a world of one it is 4 * count.) */
TAC_API size_t tac_codec_wire_bytes_at(const tac_codec *c, size_t count,
                                       const tac_codec_layout *layout,
                                       uint64_t call);

/* Declares parameters before their first call, so that a saved state can be
 * loaded (offsets are ignored). The reducer does it for its own. Errors: ARG
 * (the same name with another size, or twice), NOMEM. */
TAC_API tac_status tac_codec_expect(tac_codec *c,
                                    const tac_codec_layout *layout);

typedef struct tac_codec_stats {
    uint64_t calls, calls_plain; /* of these, sent as f32 (start, world 1) */
    uint64_t bytes_before, bytes_after;
    uint64_t calls_not_finite; /* residuals left as they were */
    double residual_norm;      /* L2 over all parameters, unscaled */
} tac_codec_stats;
TAC_API void tac_codec_stats_get(const tac_codec *c, tac_codec_stats *out);

/* Residuals, warm starts and counters of this rank, in an order that depends on
 * names only; for checkpoints. A codec that is to be loaded must know its
 * parameters (tac_codec_expect, or calls). */
TAC_API tac_status tac_codec_visit(tac_codec *c, const tac_state_visitor *v);

TAC_END_DECLS

#endif
