/* What an optimizer shows: its state to visitors, its settings to dumps. */
#include <stdio.h>

#include "optim_impl.h"

static tac_status visit_part(tac_optimizer *o, const tac_param *q,
                             const tac__state_part *part,
                             const tac_state_visitor *v)
{
    char name[512];

    snprintf(name, sizeof name, "optimizer.%s.%s", part->name, q->name);
    return tac_state_visit(v, name, part->dtype, part->ndim, part->shape,
                           o->state + part->offset);
}

tac_status tac_optimizer_walk(void *optimizer, const tac_state_visitor *v)
{
    tac_optimizer *o = optimizer;

    TAC_TRY(
        tac_state_visit_u64(v, "optimizer.applied", &o->part->scalars.applied));
    for (size_t i = 0; i < tac_params_count(o->params); ++i)
        for (int m = 0; m < o->slots[i].n_parts; ++m)
            TAC_TRY(visit_part(o, tac_params_get(o->params, i),
                               &o->slots[i].parts[m], v));
    return TAC_OK;
}

tac_status tac_optimizer_settings(const tac_optimizer *o, size_t param,
                                  tac_param_settings *out)
{
    const tac__slot *slot = &o->slots[param];
    size_t bytes = 0;

    if (param >= tac_params_count(o->params))
        return tac_fail(o->ctx, TAC_ERR_ARG,
                        "optimizer: settings of parameter %zu of %zu", param,
                        tac_params_count(o->params));
    for (int m = 0; m < slot->n_parts; ++m) bytes += slot->parts[m].bytes;
    *out = (tac_param_settings){
        .lr_scale = slot->lr_scale,
        .weight_decay = slot->weight_decay,
        .group = slot->group,
        .state = slot->text,
        .state_bytes = bytes,
    };
    return TAC_OK;
}
