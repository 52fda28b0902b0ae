/* A step's scalars and a scaler's state on a device whose memory the host can
 * reach: tiny kernels on small structures. A GPU's table brings its own. */
#include <math.h>

#include "device_impl.h"
#include "tacit/schedule.h"

/* pow in f64: in f32 it would drift for large counts. */
static tac_status step_begin(const tac_kctx *kc, double beta1, double beta2,
                             const struct tac_schedule *schedule,
                             tac_step_scalars *s)
{
    const double t = (double)s->applied + 1.0;

    (void)kc;
    if (schedule != NULL) s->lr = tac_schedule_lr(schedule, s->applied);
    s->bias_correction1 = 1.0 - pow(beta1, t);
    s->bias_correction2 = 1.0 - pow(beta2, t);
    return TAC_OK;
}

static tac_status step_end(const tac_kctx *kc, tac_step_scalars *s)
{
    (void)kc;
    if (s->found_inf == 0.0F) s->applied += 1;
    s->clip_coef = 1.0;
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
    s->clip_coef = coef >= 1.0 ? 1.0 : coef;
    return TAC_OK;
}

static tac_status check_finite(const tac_kctx *kc, const double *sum_squares,
                               tac_step_scalars *s)
{
    (void)kc;
    if (!isfinite(*sum_squares)) s->found_inf = 1.0F;
    return TAC_OK;
}

static void back_off(const tac_scaler_args *a, const uint64_t *bad,
                     tac_scaler_state *state)
{
    state->skipped += 1;
    state->consecutive += 1;
    state->first_bad = bad != NULL ? *bad : UINT64_MAX;
    state->growth_tracker = 0;
    if (a->growth_interval > 0)
        state->scale = fmaxf(state->scale * a->backoff_factor, a->min_scale);
}

/* A scale beyond the numbers is not taken, as in PyTorch. */
static void grow(const tac_scaler_args *a, tac_scaler_state *state)
{
    state->consecutive = 0;
    if (a->growth_interval == 0) return;
    state->growth_tracker += 1;
    if (state->growth_tracker < a->growth_interval) return;
    state->growth_tracker = 0;
    const float scale = state->scale * a->growth_factor;
    if (isfinite(scale)) state->scale = fminf(scale, a->max_scale);
}

static tac_status scaler_update(const tac_kctx *kc, const tac_scaler_args *a,
                                const float *const *found_inf, size_t n,
                                const uint64_t *bad, tac_scaler_state *state)
{
    int found = 0;

    (void)kc;
    for (size_t i = 0; i < n; ++i) found |= *found_inf[i] != 0.0F;
    state->updates += 1;
    if (found)
        back_off(a, bad, state);
    else
        grow(a, state);
    return TAC_OK;
}

void tac__step_scalars_apply(tac_kernels *table)
{
    if (table->step_begin == NULL) table->step_begin = step_begin;
    if (table->step_end == NULL) table->step_end = step_end;
    if (table->clip_coef == NULL) table->clip_coef = clip_coef;
    if (table->check_finite == NULL) table->check_finite = check_finite;
    if (table->scaler_update == NULL) table->scaler_update = scaler_update;
}
