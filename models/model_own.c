/* Models of the program's own, and where a model comes from. */
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"

/* A caller built with an older header hands a shorter structure. */
static tac_status read_ops(tac_context *ctx, const tac_model_ops *from,
                           tac_model_ops *to)
{
    memset(to, 0, sizeof(*to));
    if (from && from->struct_size >= sizeof(size_t))
        memcpy(to, from,
               from->struct_size < sizeof(*to) ? from->struct_size
                                               : sizeof(*to));
    if (to->name && to->forward) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_ARG,
                    "tac_model_create_from: ops needs struct_size, name and "
                    "forward");
}

tac_status tac_model_create_from(tac_params *params, const tac_model_ops *ops,
                                 void *impl, const tac_model_config *config,
                                 tac_model **out)
{
    static const tac_model_config defaults = TAC_MODEL_CONFIG_INIT;
    tac_context *ctx =
        params ? tac_device_context(tac_params_device(params)) : NULL;
    tac_model_ops given;
    if (!params || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_model_create_from: params and out are needed");
    TAC_TRY(read_ops(ctx, ops, &given));
    if (!config) config = &defaults;
    TAC_TRY(tac__model_check_config(ctx, config));
    tac_model *m = calloc(1, sizeof(*m));
    if (m) m->spec = strdup(given.name);
    if (!m || !m->spec) {
        free(m);
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a model");
    }
    m->ctx = ctx;
    m->params = params;
    m->config = *config;
    m->own = (tac__model_ops){NULL, given.forward, given.destroy};
    m->ops = &m->own;
    m->impl = impl;
    m->flop_forward = given.flop_forward;
    m->flop_step = given.flop_per_sample;
    *out = m;
    return TAC_OK;
}

tac_status tac_model_open(tac_params *params, const tac_model_source *source,
                          const tac_model_config *config, tac_model **out)
{
    tac_context *ctx =
        params ? tac_device_context(tac_params_device(params)) : NULL;
    tac_model *m = NULL;
    if (!source || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_model_open: source and out are needed");
    if (!source->build)
        return tac_model_create(params, source->spec, config, out);
    TAC_TRY(source->build(source->arg, params, config, &m));
    if (!m)
        return tac_fail(ctx, TAC_ERR_STATE,
                        "model %s: its build returned success and no model",
                        source->spec ? source->spec : "of the program");
    *out = m;
    return TAC_OK;
}
