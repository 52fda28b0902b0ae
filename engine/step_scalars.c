/* A step's scalars on a device whose memory the host can reach: three tiny
 * kernels on one structure. A GPU's table brings its own. */
#include <math.h>

#include "device_impl.h"

/* pow in f64: in f32 it would drift for large counts. */
static tac_status step_begin(const tac_kctx *kc, double beta1, double beta2,
                             tac_step_scalars *s)
{
    const double t = (double)s->applied + 1.0;

    (void)kc;
    s->bias_correction1 = (float)(1.0 - pow(beta1, t));
    s->bias_correction2 = (float)(1.0 - pow(beta2, t));
    return TAC_OK;
}

static tac_status step_end(const tac_kctx *kc, tac_step_scalars *s)
{
    (void)kc;
    if (s->found_inf == 0.0F) s->applied += 1;
    s->clip_coef = 1.0F;
    return TAC_OK;
}

static tac_status clip_coef(const tac_kctx *kc, const double *sum_squares,
                            double max_norm, tac_step_scalars *s, double *norm)
{
    const double total = sqrt(*sum_squares) / (double)s->grad_scale;
    const double coef = max_norm / (total + 1e-6);

    (void)kc;
    *norm = total;
    /* Written so that not-a-number stays one. */
    s->clip_coef = coef >= 1.0 ? 1.0F : (float)coef;
    return TAC_OK;
}

void tac__step_scalars_apply(tac_kernels *table)
{
    if (table->step_begin == NULL) table->step_begin = step_begin;
    if (table->step_end == NULL) table->step_end = step_end;
    if (table->clip_coef == NULL) table->clip_coef = clip_coef;
}
