/* The scaler's state under torch's names.
 *
 * A visitor may write (a loader does), so what it leaves is checked, and what
 * was there before comes back if it is no state of a scaler. A state that was
 * saved by a scaler that was not enabled is empty: a loader that asks for an
 * item and finds none fails by itself. */
#include <math.h>

#include "scaler_impl.h"

static tac_status visit_f32(const tac_state_visitor *v, const char *name,
                            float *value)
{
    return tac_state_visit(v, name, TAC_F32, 0, NULL, value);
}

static tac_status visit_i32(const tac_state_visitor *v, const char *name,
                            void *value)
{
    return tac_state_visit(v, name, TAC_I32, 0, NULL, value);
}

static tac_status visit_all(tac_scaler *s, const tac_state_visitor *v)
{
    tac_scaler_config *c = &s->config;
    tac_scaler_state *x = &s->part->view.state;

    TAC_TRY(visit_f32(v, "scaler.scale", &x->scale));
    TAC_TRY(tac_state_visit_f64(v, "scaler.growth_factor", &c->growth_factor));
    TAC_TRY(
        tac_state_visit_f64(v, "scaler.backoff_factor", &c->backoff_factor));
    TAC_TRY(tac_state_visit(v, "scaler.growth_interval", TAC_I64, 0, NULL,
                            &c->growth_interval));
    TAC_TRY(visit_i32(v, "scaler._growth_tracker", &x->growth_tracker));
    TAC_TRY(tac_state_visit_u64(v, "scaler.updates", &x->updates));
    TAC_TRY(tac_state_visit_u64(v, "scaler.skipped", &x->skipped));
    return visit_i32(v, "scaler.consecutive", &x->consecutive);
}

static tac_status check(const tac_scaler *s, const tac_scaler_state *x)
{
    TAC_TRY(tac__scaler_check_config(s->ctx, &s->config, TAC_ERR_DATA));
    if (x->scale > 0.0F && isfinite(x->scale) && x->growth_tracker >= 0)
        return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_DATA,
                    "loss scaling: a state with scale %g and growth tracker "
                    "%d is none; take another checkpoint",
                    (double)x->scale, (int)x->growth_tracker);
}

static tac_status copy_state(tac_scaler *s, void *dst, const void *src,
                             tac_copy_kind kind)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);

    TAC_TRY(ops->copy(impl, dst, src, sizeof(tac_scaler_state), kind, NULL));
    return ops->queue_sync(impl, NULL);
}

static tac_status visit_checked(tac_scaler *s, const tac_state_visitor *v)
{
    tac_scaler_state now;

    TAC_TRY(visit_all(s, v));
    TAC_TRY(copy_state(s, &now, &s->part->view.state, TAC_COPY_DEVICE_TO_HOST));
    return check(s, &now);
}

tac_status tac_scaler_walk(void *scaler, const tac_state_visitor *v)
{
    tac_scaler *s = scaler;
    tac_scaler_state before;

    if (!s->config.enabled) return TAC_OK;
    const tac_scaler_config config = s->config;
    TAC_TRY(
        copy_state(s, &before, &s->part->view.state, TAC_COPY_DEVICE_TO_HOST));
    const tac_status r = visit_checked(s, v);
    if (r < 0) {
        s->config = config;
        (void)copy_state(s, &s->part->view.state, &before,
                         TAC_COPY_HOST_TO_DEVICE);
        return r;
    }
    return tac__scaler_mirror_now(s, NULL);
}
