/* From a histogram to shares: at a scale of 2^k a value with exponent e has
 * the exponent e + k, and f16 has its borders at exponents. */
#include <math.h>

#include "underflow_impl.h"

enum {
    TINY = -25,    /* 2^-25 and above become at least the smallest, 2^-24 */
    NORMAL = -14,  /* the smallest number with all its bits */
    TOO_LARGE = 16 /* 2^16 and above become infinity */
};

tac_underflow_shares tac_underflow_at(const tac_underflow_row *row,
                                      double scale)
{
    uint64_t zero = 0, subnormal = 0, overflow = 0, all = 0;
    const tac_underflow_shares none = {0.0, 0.0, 0.0};

    if (!(scale > 0.0) || !isfinite(scale)) return none;
    const int k = ilogb(scale);
    for (int b = 0; b < TAC_UNDERFLOW_BINS; ++b) {
        const int e = b + TAC_UNDERFLOW_MIN + k;
        all += row->bins[b];
        if (e < TINY)
            zero += row->bins[b];
        else if (e < NORMAL)
            subnormal += row->bins[b];
        else if (e >= TOO_LARGE)
            overflow += row->bins[b];
    }
    if (all == 0) return none;
    return (tac_underflow_shares){(double)zero / (double)all,
                                  (double)subnormal / (double)all,
                                  (double)overflow / (double)all};
}
