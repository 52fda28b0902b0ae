/* A scaler's settings: ranges. What the kernel sees are f32 and i32, so the
 * ranges are those of the rounded values. */
#include <float.h>
#include <math.h>

#include "scaler_impl.h"

static tac_status check_factors(tac_context *ctx, const tac_scaler_config *c,
                                tac_status code)
{
    const float growth = (float)c->growth_factor;
    const float backoff = (float)c->backoff_factor;

    if (!(growth > 1.0F) || !isfinite(growth))
        return tac_fail(ctx, code,
                        "loss scaling: growth_factor is %g; it must be above "
                        "1, as the 2 that is usual",
                        c->growth_factor);
    if (!(backoff > 0.0F && backoff < 1.0F))
        return tac_fail(ctx, code,
                        "loss scaling: backoff_factor is %g; it must be "
                        "between 0 and 1, as the 0.5 that is usual",
                        c->backoff_factor);
    if (c->growth_interval < 0 || c->growth_interval > INT32_MAX)
        return tac_fail(ctx, code,
                        "loss scaling: growth_interval is %lld; it must be in "
                        "[1, 2^31), or 0 for a static scale",
                        (long long)c->growth_interval);
    return TAC_OK;
}

static tac_status check_scales(tac_context *ctx, const tac_scaler_config *c,
                               tac_status code)
{
    const float init = (float)c->init_scale;

    if (!(init > 0.0F) || !isfinite(init))
        return tac_fail(ctx, code,
                        "loss scaling: init_scale is %g; it must be above 0 "
                        "and finite in f32",
                        c->init_scale);
    if (!(c->min_scale >= (double)FLT_MIN) || !(c->max_scale >= c->min_scale))
        return tac_fail(ctx, code,
                        "loss scaling: a scale in [%g, %g] is no range; "
                        "min_scale must be at least 1.2e-38, so that the scale "
                        "is never 0, and max_scale not below it",
                        c->min_scale, c->max_scale);
    if (init < (float)c->min_scale || init > (float)c->max_scale)
        return tac_fail(ctx, code,
                        "loss scaling: init_scale %g is outside [%g, %g]; "
                        "change it or min_scale and max_scale",
                        c->init_scale, c->min_scale, c->max_scale);
    return TAC_OK;
}

tac_status tac__scaler_check_config(tac_context *ctx,
                                    const tac_scaler_config *c, tac_status code)
{
    TAC_TRY(check_factors(ctx, c, code));
    TAC_TRY(check_scales(ctx, c, code));
    if (c->max_skips < 0 || c->max_skips > UINT32_MAX)
        return tac_fail(ctx, code,
                        "loss scaling: max_skips is %lld; it must be in "
                        "[1, 2^32), or 0 for never",
                        (long long)c->max_skips);
    return TAC_OK;
}
