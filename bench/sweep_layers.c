/* The layers of the model, as training groups its parameters: those that are
 * called alike up to the last dot ("fc1.weight", "fc1.bias") are one. */
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "tacit/device.h"
#include "tacit/model.h"

static size_t stem(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? (size_t)(dot - name) : strlen(name);
}

static int same_layer(const char *a, const char *b)
{
    return stem(a) == stem(b) && strncmp(a, b, stem(a)) == 0;
}

/* The first parameter of each layer, in `first`. */
static tac_status group(sweep *s, const tac_params *p)
{
    const size_t n = tac_params_count(p);
    const char **first = calloc(n + 1, sizeof *first);

    s->layer_params = calloc(n + 1, sizeof *s->layer_params);
    if (!first || !s->layer_params) {
        free(first);
        return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory for layers");
    }
    for (size_t i = 0; i < n; i++) {
        const tac_param *q = tac_params_get(p, i);
        int64_t l = 0;

        while (l < s->layers && !same_layer(first[l], q->name)) l++;
        if (l == s->layers) first[s->layers++] = q->name;
        s->layer_params[l] += (double)q->count;
        s->params += (double)q->count;
    }
    free(first);
    return TAC_OK;
}

/* Its parameters are registered, not allocated. */
static tac_status describe(sweep *s, tac_device *device,
                           const tac_model_config *mc)
{
    tac_params *params = NULL;
    tac_model *model = NULL;

    TAC_TRY(tac_params_create(device, TAC_F32, &params));
    tac_status status = tac_model_create(params, s->o->model, mc, &model);
    if (status >= 0) status = group(s, params);
    tac_model_destroy(model);
    tac_params_destroy(params);
    return status;
}

tac_status sweep_layers(sweep *s, const tac_dataset *set)
{
    const tac_dataset_info info = tac_dataset_get_info(set);
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;
    tac_device *device = NULL;

    mc.h = info.h;
    mc.w = info.w;
    mc.c = info.c;
    mc.classes = info.classes;
    TAC_TRY(tac_device_open(s->ctx, "cpu", NULL, &device));
    const tac_status status = describe(s, device, &mc);
    tac_device_close(device);
    return status;
}
