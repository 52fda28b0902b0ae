/* mean.c: the averaged model, for evaluation. */
#include "impl.h"

tac_status tac_localsgd_mean(tac_localsgd *l, float *out)
{
    tac_req *req = NULL;
    size_t at = 0;
    if (!l || (!out && l->elements > 0)) return TAC_ERR_ARG;
    if (l->failed < 0) return l->failed;
    if (!l->started)
        return tac_fail(l->ctx, TAC_ERR_STATE,
                        "localsgd: a mean before tac_localsgd_start");
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac_localsgd_tensor *t = &l->tensors[i].t;
        if (t->role != TAC_ROLE_PARAM) continue;
        tac__copy_scaled(out + at, t->data, 1.0f, t->count);
        at += t->count;
    }
    if (at == 0) return TAC_OK;
    TAC_TRY(tac__lsgd_poison(l, tac_allreduce(l->levels[l->n_levels - 1].data,
                                              NULL, out, at, TAC_F32, TAC_AVG,
                                              NULL, &req)));
    TAC_TRY(tac__await(l, &req));
    l->mean_bytes += at * sizeof(float);
    return TAC_OK;
}
