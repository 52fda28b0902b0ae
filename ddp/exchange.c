/* --skip-compute: what an attempt sends, without what it computes. The reducer
 * takes all gradients at once and in the order in which backward makes them, so
 * nothing hides behind computing. */
#include "replica_impl.h"

#include "tacit/rng.h"

/* Small numbers, different ones on each rank, where gradients would be: zeros
 * are easier to encode. */
static void make_up_gradients(tac_replica *r)
{
    float *grads = tac_params_grads(r->params);
    const tac_rng_key key = {r->config->seed, TAC_STREAM_USER,
                             (uint64_t)tac_comm_rank(r->comm)};

    for (size_t i = 0; i < tac_params_padded(r->params); i++)
        grads[i] = (float)(tac_rng_uniform(&key, i) - 0.5) * 0x1p-10f;
}

tac_status tac__replica_exchange(tac_replica *r)
{
    if (r->attempts == 0) make_up_gradients(r);
    r->attempts++;
    if (!r->reducer) return TAC_OK;
    TAC_TRY(tac_reducer_begin(r->reducer, 1, r->scaling.scale));
    for (size_t k = 0; k < tac_params_count(r->params); k++)
        TAC_TRY(tac_reducer_ready(r->reducer, k, NULL));
    return tac_reducer_finish(r->reducer, 0);
}
