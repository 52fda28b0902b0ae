/* The stages of an optimizer, and the check for inf and NaN.
 *
 * An optimizer that is not listed is READY. It is listed by a check
 * (UNSCALED), becomes STEPPED, and the list is emptied by the update: it holds
 * no pointer from one iteration to the next, so an optimizer may be destroyed
 * between them.
 *
 * A check begins with forgetting what was known of the gradients, because only
 * the caller knows that they are new: a norm measured for a log before the last
 * backward would hide an inf. */
#include "scaler_impl.h"

tac__scaler_entry *tac__scaler_find(tac_scaler *s, const tac_optimizer *o)
{
    for (size_t i = 0; i < s->n_entries; ++i)
        if (s->entries[i].optimizer == o) return &s->entries[i];
    return NULL;
}

static tac_status check_ready(tac_scaler *s, const tac_optimizer *o,
                              const char *call)
{
    const tac__scaler_entry *e = tac__scaler_find(s, o);

    if (e != NULL && e->stage == TAC__UNSCALED)
        return tac_fail(s->ctx, TAC_ERR_STATE,
                        "%s() has already been called on this optimizer since "
                        "the last update(); call it once an iteration, after "
                        "the last backward",
                        call);
    if (e != NULL)
        return tac_fail(s->ctx, TAC_ERR_STATE,
                        "%s() is being called after step(); call it before "
                        "step(), and update() after it",
                        call);
    if (tac_params_device(tac_optimizer_params(o)) != s->dev)
        return tac_fail(s->ctx, TAC_ERR_ARG,
                        "loss scaling: the optimizer and the scaler are on "
                        "different devices");
    if (s->n_entries == TAC__SCALER_OPTIMIZERS)
        return tac_fail(s->ctx, TAC_ERR_ARG,
                        "loss scaling: more than %d optimizers share one "
                        "scaler in one iteration; use several scalers",
                        (int)TAC__SCALER_OPTIMIZERS);
    return TAC_OK;
}

/* Looks for inf and NaN and makes the ranks agree. */
static tac_status look(tac_scaler *s, tac_optimizer *o, int in_place,
                       tac_queue *queue)
{
    TAC_TRY(tac_optimizer_clear_found_inf(o, queue));
    TAC_TRY(tac_optimizer_set_grad_scale(o, &s->part->view.state.scale, queue));
    TAC_TRY(in_place ? tac_optimizer_unscale(o, queue)
                     : tac_optimizer_check(o, queue));
    if (s->agree == NULL) return TAC_OK;
    return s->agree(s->agree_arg, &tac_optimizer_scalars(o)->found_inf, queue);
}

static tac_status check(tac_scaler *s, tac_optimizer *o, int in_place,
                        const char *call, tac_queue *queue)
{
    if (!s->config.enabled) return TAC_OK;
    TAC_TRY(check_ready(s, o, call));
    TAC_TRY(look(s, o, in_place, queue));
    s->entries[s->n_entries++] = (tac__scaler_entry){o, TAC__UNSCALED};
    return TAC_OK;
}

tac_status tac_scaler_unscale(tac_scaler *s, tac_optimizer *o, tac_queue *queue)
{
    return check(s, o, 1, "unscale_", queue);
}

tac_status tac_scaler_check(tac_scaler *s, tac_optimizer *o, tac_queue *queue)
{
    return check(s, o, 0, "check", queue);
}
