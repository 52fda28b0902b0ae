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
 *     topk:F             the F * n elements of the largest magnitude of each
 *                        parameter (at least 1), 0 < F <= 1, indices as u32
 *     powersgd:R         rank R >= 1 (Vogels et al. 2019, algorithm 1), warm
 *                        start; 1-d parameters and those where it would not
 *                        save travel as they are
 *
 * followed by options: ",ef" or ",noef" (error feedback; default: on for topk
 * and powersgd and int8, off for casts), ",stochastic" (int8), ",seed=N",
 * ",min-rate=X" (powersgd: compress only if (n + m) R X < n m; default 2),
 * ",start=N" (steps sent as f32 before the codec begins; default 0; powersgd
 * 10). docs/comm.md has the bytes of each on the wire.
 *
 * Error feedback. Residuals are keyed by parameter name, so a rebuild of
 * buckets moves nothing; they are kept without the loss scale. A call whose
 * result has an infinity or a NaN leaves all residuals as they were.
 *
 * All ranks get identical bits. Codecs must be created with the same
 * specification on all ranks (compared by the first call that uses it).
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
    const char *name;     /* key of its state; copied at first sight */
    size_t offset, count; /* elements in the buffer */
    int ndim;             /* 0: {count} */
    const size_t *shape;  /* rows are shape[0], columns the rest */
} tac_codec_part;

/* What a buffer is made of; parts in ascending order, gaps are sent as f32
 * zeros are: not at all. NULL: one part, keyed by the call's tag. */
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

/* The specification with every default written out. */
TAC_API const char *tac_codec_spec(const tac_codec *c);

/* Bytes that this rank contributes to the wire for such a buffer, once the
 * codec has begun; exact. */
TAC_API size_t tac_codec_wire_bytes(const tac_codec *c, size_t count,
                                    const tac_codec_layout *layout);

typedef struct tac_codec_stats {
    uint64_t calls, calls_plain; /* of these, sent as f32 (start, world 1) */
    uint64_t bytes_before, bytes_after;
    uint64_t calls_not_finite; /* residuals left as they were */
    double residual_norm;      /* L2 over all parameters, unscaled */
} tac_codec_stats;
TAC_API void tac_codec_stats_get(const tac_codec *c, tac_codec_stats *out);

/* Residuals, warm starts and counters, in an order that depends on names only;
 * for checkpoints. */
TAC_API tac_status tac_codec_visit(tac_codec *c, tac_state_visitor *v);

TAC_END_DECLS

#endif
