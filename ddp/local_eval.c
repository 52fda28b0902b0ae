/* Evaluation sees the averaged model: between two synchronisations each replica
 * is another one. The parameters change places with their mean, so one array
 * more is enough. */
#include "local.h"

#include "replica_impl.h"

static tac_status exchange_floats(tac_replica *r)
{
    float *mean = r->local->mean;
    const size_t *order = tac_params_order(r->params);

    for (size_t k = 0; k < tac_params_count(r->params); k++) {
        float *x = tac_params_value(r->params, order[k]);
        const size_t n = tac_params_get(r->params, order[k])->count;

        for (size_t i = 0; i < n; i++) {
            const float kept = x[i];
            x[i] = mean[i];
            mean[i] = kept;
        }
        mean += n;
    }
    return tac_replica_refresh(r);
}

static tac_status share_mean(tac_replica *r)
{
    tac_req *req = NULL;

    if (!r->worker) return TAC_OK;
    TAC_TRY(tac_broadcast(r->worker, r->local->mean,
                          tac_params_elements(r->params), TAC_F32, 0, NULL,
                          &req));
    return tac_wait(req, 0);
}

static int is_needed(const tac_replica *r)
{
    return r->local && r->local->workers > 1 && !r->local->clean;
}

tac_status tac__local_show_mean(tac_replica *r)
{
    if (!is_needed(r)) return TAC_OK;
    if (r->local->lsgd)
        TAC_TRY(tac_localsgd_mean(r->local->lsgd, r->local->mean));
    TAC_TRY(share_mean(r));
    return exchange_floats(r);
}

tac_status tac__local_hide_mean(tac_replica *r)
{
    return is_needed(r) ? exchange_floats(r) : TAC_OK;
}
