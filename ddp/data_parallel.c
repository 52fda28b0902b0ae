/* The wrap for loops of one's own: a dry backward, arenas in its order, a
 * reducer behind the tape's hooks. replica_connect.c does the same with more
 * around it. */
#include "data_parallel_impl.h"

#include <stdlib.h>

static tac_status no_memory(const tac_data_parallel *dp)
{
    return tac_fail(dp->ctx, TAC_ERR_NOMEM, "no memory for %zu parameters",
                    tac_params_count(dp->params));
}

static tac_status symmetric_alloc(void *arg, size_t bytes, void **out)
{
    return tac_mem_alloc(arg, bytes, out);
}

static void symmetric_free(void *arg, void *p)
{
    tac_mem_free(arg, p);
}

static tac_status on_ready(void *arg, size_t param, tac_queue *queue)
{
    tac_data_parallel *dp = arg;

    return tac_reducer_ready(dp->reducer, dp->places[param], queue);
}

static tac_status on_unused(void *arg, size_t param, tac_queue *queue)
{
    tac_data_parallel *dp = arg;

    (void)queue;
    return tac_reducer_unused(dp->reducer, dp->places[param]);
}

static tac_status lay_out(tac_data_parallel *dp, tac_tensor *loss)
{
    const tac_allocator grads = {dp->comm, symmetric_alloc, symmetric_free};
    size_t *order = malloc((tac_params_count(dp->params) + 1) * sizeof *order);
    tac_status s;

    if (!order) return no_memory(dp);
    s = tac_tape_backward(dp->tape, loss, 1.0);
    if (s >= 0) s = tac_tape_final_order(dp->tape, order);
    if (s >= 0) s = tac_params_layout(dp->params, order, NULL, &grads);
    free(order);
    return s;
}

/* Parameters in the order of the arena. */
static void describe(tac_data_parallel *dp, tac_param_desc *desc)
{
    const size_t *order = tac_params_order(dp->params);

    for (size_t k = 0; k < tac_params_count(dp->params); k++) {
        const tac_param *p = tac_params_get(dp->params, order[k]);

        dp->places[order[k]] = k;
        desc[k] =
            (tac_param_desc){.name = p->name,
                             .count = p->count,
                             .dtype = tac_params_grad_dtype(dp->params),
                             .grad = tac_params_grad(dp->params, order[k]),
                             .ndim = p->ndim,
                             .shape = p->shape};
    }
}

static tac_status connect(tac_data_parallel *dp,
                          const tac_reducer_config *config)
{
    const tac_grad_hooks hooks = {dp, on_ready, on_unused};
    const size_t n = tac_params_count(dp->params);
    tac_reducer_config rc = TAC_REDUCER_CONFIG_INIT;
    tac_param_desc *desc = calloc(n + 1, sizeof *desc);
    tac_status s;

    dp->places = calloc(n + 1, sizeof *dp->places);
    if (!desc || !dp->places) {
        free(desc);
        return no_memory(dp);
    }
    describe(dp, desc);
    if (config) rc = *config;
    rc.arena = tac_params_grads(dp->params);
    rc.arena_bytes = tac_params_padded(dp->params) *
                     tac_dtype_size(tac_params_grad_dtype(dp->params));
    s = tac_reducer_create(dp->comm, desc, n, &rc, &dp->reducer);
    free(desc);
    if (s >= 0) tac_tape_set_hooks(dp->tape, &hooks);
    return s;
}

static tac_status make_equal(tac_data_parallel *dp, uint64_t seed)
{
    tac_req *req = NULL;

    TAC_TRY(tac_params_init(dp->params, seed));
    TAC_TRY(tac_broadcast(dp->comm, tac_params_values(dp->params),
                          tac_params_padded(dp->params),
                          tac_params_dtype(dp->params), 0, NULL, &req));
    return tac_wait(req, 0);
}

tac_status tac__data_parallel_wrap(tac_data_parallel *dp, tac_tensor *loss,
                                   uint64_t seed,
                                   const tac_reducer_config *config)
{
    TAC_TRY(lay_out(dp, loss));
    TAC_TRY(connect(dp, config));
    return make_equal(dp, seed);
}

tac_status tac_data_parallel_create(tac_comm *comm, tac_tape *tape,
                                    tac_tensor *loss, uint64_t seed,
                                    const tac_reducer_config *config,
                                    tac_data_parallel **out)
{
    tac_data_parallel *dp = calloc(1, sizeof *dp);
    tac_context *ctx = tac_device_context(tac_tape_device(tape));
    tac_status s;

    if (!dp) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a wrap");
    dp->ctx = ctx;
    dp->comm = comm;
    dp->tape = tape;
    dp->params = tac_tape_params(tape);
    s = tac__data_parallel_wrap(dp, loss, seed, config);
    if (s < 0) {
        tac_data_parallel_destroy(dp);
        return s;
    }
    *out = dp;
    return TAC_OK;
}

void tac_data_parallel_destroy(tac_data_parallel *dp)
{
    if (!dp) return;
    for (size_t i = 0; i < dp->n_loaders; i++) {
        tac_loader_destroy(dp->loaders[i].loader);
        tac_sampler_destroy(dp->loaders[i].sampler);
    }
    tac_reducer_destroy(dp->reducer);
    free(dp->places);
    if (dp->device) {
        tac_tape_destroy(dp->tape);
        tac_model_destroy(dp->model);
        tac_params_destroy(dp->params);
        tac_device_close(dp->device);
    }
    free(dp);
}

/* Codecs want to know the scale, so with a scaler it is read: at once on the
 * CPU. */
static tac_status begin(tac_data_parallel *dp, tac_scaler *scaler, int sync)
{
    tac_scaler_report known = {.scale = 1};

    if (scaler) TAC_TRY(tac_scaler_poll(scaler, &known));
    return tac_reducer_begin(dp->reducer, sync, known.scale);
}

tac_status tac_data_parallel_backward(tac_data_parallel *dp, tac_tensor *loss,
                                      double samples, tac_scaler *scaler,
                                      int sync)
{
    const double scale = samples > 0 ? tac_comm_size(dp->comm) / samples : 0;

    TAC_TRY(begin(dp, scaler, sync));
    TAC_TRY(tac_tape_backward_scaled(dp->tape, loss, scale,
                                     scaler ? tac_scaler_scale(scaler) : NULL));
    return tac_reducer_finish(dp->reducer, 0);
}

tac_status tac_data_parallel_loader(tac_data_parallel *dp, tac_dataset *set,
                                    size_t batch, int shuffle, uint64_t seed,
                                    tac_loader **out)
{
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    const size_t i = dp->n_loaders;

    if (i == TAC_DATA_PARALLEL_LOADERS)
        return tac_fail(dp->ctx, TAC_ERR_ARG,
                        "tac_data_parallel_loader: there are %zu already; make "
                        "others with tac_sampler_create and tac_loader_create",
                        i);
    sc.count = tac_dataset_get_info(set).count;
    sc.replicas = (size_t)tac_comm_size(dp->comm);
    sc.rank = (size_t)tac_comm_rank(dp->comm);
    sc.shuffle = shuffle;
    sc.seed = seed;
    lc.batch = batch;
    TAC_TRY(tac_sampler_create(dp->ctx, &sc, &dp->loaders[i].sampler));
    dp->n_loaders++;
    TAC_TRY(tac_loader_create(dp->ctx, set, dp->loaders[i].sampler, &lc,
                              &dp->loaders[i].loader));
    *out = dp->loaders[i].loader;
    return TAC_OK;
}

tac_reducer *tac_data_parallel_reducer(tac_data_parallel *dp)
{
    return dp->reducer;
}
