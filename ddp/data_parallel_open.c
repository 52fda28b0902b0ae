/* The wrap with a model of its own: what replica.c builds for the trainer, as
 * far as a loop of one's own needs it. */
#include "data_parallel_impl.h"

#include <stdlib.h>
#include <string.h>

#include "agree.h"

static tac_status build(tac_data_parallel *dp,
                        const tac_data_parallel_config *c,
                        const tac_dataset *set)
{
    const tac_dataset_info info = tac_dataset_get_info(set);
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;
    tac_tape_config tc = TAC_TAPE_CONFIG_INIT;

    mc.h = info.h;
    mc.w = info.w;
    mc.c = info.c;
    mc.classes = info.classes;
    mc.dropout = c->dropout;
    tc.seed = c->seed;
    tc.recompute = c->recompute;
    TAC_TRY(tac_device_open(dp->ctx, "cpu", NULL, &dp->device));
    TAC_TRY(tac_params_create(dp->device, TAC_F32, &dp->params));
    TAC_TRY(tac_model_open(dp->params, c->model, &mc, &dp->model));
    return tac_tape_create(dp->params, &tc, &dp->tape);
}

static tac_status dry_step(tac_data_parallel *dp, size_t count, tac_xent *loss)
{
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    const tac_batch shapes = {.count = count};

    TAC_TRY(tac_tape_begin(dp->tape, &dry));
    return tac_data_parallel_forward(dp, &shapes, loss);
}

tac_status tac_data_parallel_open(tac_comm *comm,
                                  const tac_data_parallel_config *config,
                                  const tac_dataset *set,
                                  tac_data_parallel **out)
{
    tac_data_parallel_config c = TAC_DATA_PARALLEL_CONFIG_INIT;
    tac_context *ctx = comm ? tac_comm_context(comm) : NULL;
    tac_data_parallel *dp;
    tac_xent loss;
    tac_status s;

    if (!comm || !config || !set || !out ||
        config->struct_size < sizeof(size_t))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_data_parallel_open: comm, a config from "
                        "TAC_DATA_PARALLEL_CONFIG_INIT, set and out are "
                        "needed");
    memcpy(&c, config,
           config->struct_size < sizeof c ? config->struct_size : sizeof c);
    if (!c.model || c.batch == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_data_parallel_open: config.model is %s and "
                        "config.batch %zu: give both",
                        c.model ? "given" : "NULL", c.batch);
    dp = calloc(1, sizeof *dp);
    if (!dp) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a wrap");
    dp->ctx = ctx;
    dp->comm = comm;
    dp->low = c.autocast;
    s = build(dp, &c, set);
    if (s >= 0) s = dry_step(dp, c.batch, &loss);
    s = tac__agree(comm, s); /* nobody waits for one that has failed alone */
    if (s >= 0) s = tac__data_parallel_wrap(dp, loss.loss, c.seed, c.reducer);
    if (s < 0) {
        tac_data_parallel_destroy(dp);
        return s;
    }
    *out = dp;
    return TAC_OK;
}

static tac_status record(tac_data_parallel *dp, const tac_batch *b,
                         tac_xent *loss)
{
    const tac_model_config *mc = tac_model_config_of(dp->model);
    const size_t shape[] = {b->count, mc->h, mc->w, mc->c};
    tac_tensor *x, *y, *logits;

    TAC_TRY(tac_tape_input(dp->tape, "inputs", TAC_F32, 4, shape, b->x, 0, &x));
    TAC_TRY(
        tac_tape_input(dp->tape, "targets", TAC_I32, 1, shape, b->y, 0, &y));
    TAC_TRY(tac_model_forward(dp->model, dp->tape, x, &logits));
    return tac_op_softmax_cross_entropy(dp->tape, logits, y, loss);
}

tac_status tac_data_parallel_forward(tac_data_parallel *dp,
                                     const tac_batch *batch, tac_xent *loss)
{
    tac_autocast region;
    tac_status s;

    if (!batch || !loss)
        return tac_fail(dp->ctx, TAC_ERR_ARG,
                        "tac_data_parallel_forward: batch and loss are needed");
    if (!dp->model)
        return tac_fail(dp->ctx, TAC_ERR_STATE,
                        "tac_data_parallel_forward: this wrap is over a tape "
                        "of yours (tac_data_parallel_create)");
    TAC_TRY(tac_autocast_begin(dp->tape, dp->low, NULL, &region));
    s = record(dp, batch, loss);
    TAC_TRY(tac_autocast_end(&region));
    return s;
}

tac_device *tac_data_parallel_device(const tac_data_parallel *dp)
{
    return tac_tape_device(dp->tape);
}

tac_params *tac_data_parallel_params(const tac_data_parallel *dp)
{
    return dp->params;
}

tac_tape *tac_data_parallel_tape(const tac_data_parallel *dp)
{
    return dp->tape;
}
