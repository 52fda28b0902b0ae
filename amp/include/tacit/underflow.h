/* tacit/underflow.h: how much of each gradient is lost in f16.
 *
 * For each parameter a histogram of the binary exponents of its gradient's
 * values, unscaled, summed over the steps that were observed. From it follows
 * for any loss scale which share of the nonzero values would become 0, be
 * subnormal (losing precision), or overflow in f16. That is what loss scaling
 * is for: at scale 1 much of a network's gradient is below 6e-8.
 *
 * Reads the gradient arena: one pass an observation, on the host; meant for
 * every so many steps. Thread-safety: one thread at a time an object. */
#ifndef TACIT_UNDERFLOW_H
#define TACIT_UNDERFLOW_H

#include "tacit/params.h"

TAC_BEGIN_DECLS

typedef struct tac_underflow tac_underflow;

/* bins[b] counts values with |g| = m * 2^e, m in [1,2), e = b + MIN; smaller
 * ones are in the first bin, larger ones in the last. */
enum { TAC_UNDERFLOW_MIN = -150, TAC_UNDERFLOW_BINS = 279 };

typedef struct tac_underflow_row {
    const char *name;                 /* the parameter's; borrowed */
    uint64_t count, zeros, nonfinite; /* values seen; of them exactly 0; inf or
                                         NaN */
    uint64_t bins[TAC_UNDERFLOW_BINS];
} tac_underflow_row;

/* Shares of the nonzero finite values. */
typedef struct tac_underflow_shares {
    double zero;      /* |scale * g| rounds to 0: at most 2^-25 */
    double subnormal; /* above that, below 2^-14 */
    double overflow;  /* |scale * g| rounds to infinity: 65520 and above */
} tac_underflow_shares;

TAC_API tac_status tac_underflow_create(tac_params *params,
                                        tac_underflow **out);
TAC_API void tac_underflow_destroy(tac_underflow *u); /* NULL is legal */
/* Adds the present gradients, which are `grad_scale` times too large (1 after
 * tac_scaler_unscale). Waits for the queue. Errors: ARG for a grad_scale that
 * is not above 0 and finite; STATE before the parameters' layout; NOMEM, the
 * device's. */
TAC_API tac_status tac_underflow_observe(tac_underflow *u, double grad_scale,
                                         tac_queue *queue);
TAC_API void tac_underflow_reset(tac_underflow *u);
TAC_API size_t tac_underflow_rows(const tac_underflow *u);
/* In registration order; NULL out of range. Valid until the next call. */
TAC_API const tac_underflow_row *tac_underflow_get(const tac_underflow *u,
                                                   size_t i);
/* From a row's bins, so exact for scales that are powers of two; another scale
 * counts as the power of two below it. Three borders are not at a bin's edge,
 * and what lies between is counted with its bin: 2^-25 itself (which rounds to
 * 0) as subnormal; [2^-14 - 2^-25, 2^-14) (which rounds up to the smallest
 * normal number) as subnormal; [65520, 65536) (which overflows) as none of the
 * three. All shares are 0 for a scale that is not above 0 and finite. */
TAC_API tac_underflow_shares tac_underflow_at(const tac_underflow_row *row,
                                              double scale);

TAC_END_DECLS

#endif
