/* Cutting the flat arenas into runs of equal weight decay.
 *
 * A run takes its tensors' padding along, where everything is 0 and stays 0;
 * but 0 / (sqrt(0) + eps) is no number if eps is 0, so then each tensor is a
 * run of its own, without padding. */
#include <stdlib.h>

#include "optim_impl.h"

static int is_decayed(const tac_optimizer *o, const tac_param *q)
{
    if ((q->flags & TAC_PARAM_NO_DECAY) != 0) return 0;
    return o->config.decay == TAC_DECAY_ALL || q->ndim >= 2;
}

static float decay_of(const tac_optimizer *o, const tac_param *q)
{
    return is_decayed(o, q) ? (float)o->config.weight_decay : 0.0F;
}

/* Where the parameter after place k begins. */
static size_t end_of(const tac_optimizer *o, size_t k)
{
    const size_t *order = tac_params_order(o->params);

    if (k + 1 == tac_params_count(o->params))
        return tac_params_padded(o->params);
    return tac_params_get(o->params, order[k + 1])->offset;
}

static void add_place(tac_optimizer *o, size_t k, int alone)
{
    const tac_param *q =
        tac_params_get(o->params, tac_params_order(o->params)[k]);
    const float decay = decay_of(o, q);
    tac__run *last = o->n_runs > 0 ? &o->runs[o->n_runs - 1] : NULL;
    const size_t end = alone ? q->offset + q->count : end_of(o, k);

    if (last != NULL && !alone && last->weight_decay == decay) {
        last->count = end - last->offset;
        return;
    }
    o->runs[o->n_runs++] = (tac__run){q->offset, end - q->offset, decay};
}

tac_status tac__optimizer_make_runs(tac_optimizer *o)
{
    const size_t n = tac_params_count(o->params);
    const int alone =
        o->config.kind == TAC_OPTIMIZER_ADAMW && (float)o->config.eps == 0.0F;

    o->runs = calloc(n + 1, sizeof *o->runs);
    if (o->runs == NULL)
        return tac_fail(o->ctx, TAC_ERR_NOMEM,
                        "optimizer: no memory for %zu runs", n);
    for (size_t k = 0; k < n; ++k) add_place(o, k, alone);
    return TAC_OK;
}

size_t tac_optimizer_runs(const tac_optimizer *o)
{
    return o->n_runs;
}
