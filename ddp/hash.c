/* Are all replicas the same, to the bit? XXH3-64 over the parameters' values
 * in registration order, so the layout of the arena doesn't matter. */
#include "replica_impl.h"

#include "tacit/data_parallel.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdlib.h>

/* Of the elements' bytes, whatever their dtype. */
static tac_status hash(tac_params *params, uint64_t *out)
{
    tac_device *device = tac_params_device(params);
    const tac_device_ops *ops = tac_device_ops_of(device);
    const size_t size = tac_dtype_size(tac_params_dtype(params));
    const size_t bytes = tac_params_padded(params) * size;
    XXH3_state_t *state = XXH3_createState();
    char *host = malloc(bytes + 1);
    tac_status s = TAC_ERR_NOMEM;

    if (!state || !host) goto done;
    s = ops->copy(tac_device_impl(device), host, tac_params_values(params),
                  bytes, TAC_COPY_DEVICE_TO_HOST, NULL);
    if (s >= 0) s = ops->queue_sync(tac_device_impl(device), NULL);
    if (s < 0) goto done;
    XXH3_64bits_reset(state);
    for (size_t i = 0; i < tac_params_count(params); i++) {
        const tac_param *p = tac_params_get(params, i);

        XXH3_64bits_update(state, host + p->offset * size, p->count * size);
    }
    *out = XXH3_64bits_digest(state);
done:
    free(host);
    XXH3_freeState(state);
    if (s == TAC_ERR_NOMEM)
        return tac_fail(tac_device_context(device), s,
                        "no memory to hash the parameters");
    return s;
}

tac_status tac_replica_hash(tac_replica *r, uint64_t *out)
{
    return hash(r->params, out);
}

tac_status tac_data_parallel_hash(tac_params *params, uint64_t *out)
{
    return hash(params, out);
}

static tac_status compare(tac_replica *r, const int64_t *all)
{
    for (int k = 1; k < tac_comm_size(r->comm); k++)
        if (all[k] != all[0])
            return tac_fail(r->ctx, TAC_ERR_MISMATCH,
                            "replicas differ: params_hash is %016" PRIx64
                            " on rank %d and %016" PRIx64
                            " on rank 0; please report it",
                            (uint64_t)all[k], k, (uint64_t)all[0]);
    return TAC_OK;
}

tac_status tac_replica_verify_equal(tac_replica *r)
{
    uint64_t hash = 0;
    int64_t mine, *all = malloc((size_t)tac_comm_size(r->comm) * sizeof *all);
    tac_req *req = NULL;
    tac_status s;

    if (!all) return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for hashes");
    s = tac_replica_hash(r, &hash);
    mine = (int64_t)hash;
    if (s >= 0) s = tac_allgather(r->comm, &mine, all, 1, TAC_I64, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    if (s >= 0) s = compare(r, all);
    free(all);
    return s;
}
