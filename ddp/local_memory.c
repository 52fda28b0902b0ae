/* Memory of the local modes: predicted from the configuration, and counted. */
#include "local.h"

#include <stdlib.h>
#include <string.h>

#include "local_options.h"

/* f32 elements of the optimizer that are averaged, too. */
static size_t merged(const tac_replica *r)
{
    const int adamw = !strcmp(r->config->optimizer, "adamw");

    if (strcmp(r->config->moments, "average") != 0) return 0;
    return (adamw ? 2 : 1) * tac_params_elements(r->params);
}

/* Sizes of the layers; frozen parameters are in none. */
static tac_localsgd_model model_of(const tac_replica *r, const int64_t *layer,
                                   size_t *sizes)
{
    tac_localsgd_model m = {.params = sizes, .merged = merged(r)};

    for (size_t i = 0; i < tac_params_count(r->params); i++) {
        const tac_param *p = tac_params_get(r->params, i);

        if (p->flags & TAC_PARAM_FROZEN) continue;
        sizes[layer[i]] += p->count;
        m.layers = layer[i] + 1;
    }
    return m;
}

/* tac_localsgd's own, and that of the leaders, where not all ranks are. */
static size_t comm_bytes(const tac_comm *world, const tac_localsgd_config *c,
                         int workers)
{
    size_t sum = tac_localsgd_predict_comm_bytes(world, c, workers);

    if (workers < tac_comm_size(world))
        sum += tac_comm_child_bytes(world, workers, 0);
    return sum;
}

tac_status tac__local_predict(const tac_replica *r, uint64_t total_steps,
                              uint64_t *bytes)
{
    const size_t n = tac_params_count(r->params);
    const int workers = tac_comm_size(r->comm) / (int)r->config->worker_size;
    int64_t *layer = calloc(n + 1, sizeof *layer);
    size_t *sizes = calloc(n + 1, sizeof *sizes);
    tac_localsgd_config c;
    size_t held = 0;
    tac_status s = TAC_OK;

    if (!layer || !sizes)
        s = tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for a prediction");
    if (s >= 0) s = tac__local_configure(r, total_steps, layer, &c);
    if (s >= 0) {
        const tac_localsgd_model model = model_of(r, layer, sizes);
        s = tac_localsgd_predict_memory(r->ctx, &c, &model, workers, &held);
    }
    if (s >= 0) *bytes = held + comm_bytes(r->comm, &c, workers);
    free(sizes);
    free(layer);
    return s;
}

uint64_t tac__local_held(const tac_replica *r)
{
    const tac__local *l = r->local;

    if (!l || !l->lsgd) return 0;
    return (l->leaders ? tac_comm_bytes(l->leaders) : 0) +
           tac_localsgd_bytes(l->lsgd) + tac_localsgd_comm_bytes(l->lsgd);
}
