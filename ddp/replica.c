/* Building a replica as far as no other rank is needed, and taking it down;
 * replica_connect.c is the other half. */
#include "replica_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubt.h"
#include "local.h"
#include "memory.h"
#include "record.h"
#include "settings.h"
#include "tacit/clock.h"

static tac_status make_device(tac_replica *r)
{
    const char *isa = r->config->isa;

    if (isa && !strcmp(isa, "auto")) isa = NULL;
    return tac_device_open(r->ctx, "cpu", isa, &r->device);
}

static tac_status make_model(tac_replica *r, const tac_dataset_info *data,
                             const tac_model_source *source)
{
    const tac_model_source named = {.spec = r->config->model};
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;

    mc.h = data->h;
    mc.w = data->w;
    mc.c = data->c;
    mc.classes = data->classes;
    mc.dropout = (float)r->config->dropout;
    TAC_TRY(tac_params_create(r->device, TAC_F32, &r->params));
    return tac_model_open(r->params, source ? source : &named, &mc, &r->model);
}

tac_status tac__replica_inputs(tac_replica *r, const tac_batch *batch,
                               tac_tensor **x, tac_tensor **y)
{
    const tac_model_config *mc = tac_model_config_of(r->model);
    const size_t xs[4] = {batch->count, mc->h, mc->w, mc->c};

    TAC_TRY(tac_tape_input(r->tape, "images", TAC_F32, 4, xs, batch->x, 0, x));
    return tac_tape_input(r->tape, "labels", TAC_I32, 1, xs, batch->y, 0, y);
}

/* The region of the dry step. Working weights are not there yet, but will be,
 * so that weights take no place in the step; nothing is read through the
 * pointer. */
static tac_status set_dry_region(tac_replica *r)
{
    const tac_tape_autocast a = {.struct_size = sizeof a,
                                 .low = r->low,
                                 .rule = tac_autocast_rule,
                                 .cache = 1,
                                 .weights = r};

    return r->low == TAC_F32 ? TAC_OK : tac_tape_set_autocast(r->tape, &a);
}

/* One step with shapes alone: sets the order of the parameters' gradients and
 * the size of the step arena. */
static tac_status dry_step(tac_replica *r)
{
    const tac_tape_step step = {.flags = TAC_TAPE_DRY};
    const tac_batch batch = {.count = (size_t)r->config->batch};
    tac_tensor *x, *y, *logits;
    tac_xent xent;

    TAC_TRY(set_dry_region(r));
    TAC_TRY(tac_tape_begin(r->tape, &step));
    TAC_TRY(tac__replica_inputs(r, &batch, &x, &y));
    TAC_TRY(tac_model_forward(r->model, r->tape, x, &logits));
    TAC_TRY(tac_op_softmax_cross_entropy(r->tape, logits, y, &xent));
    TAC_TRY(tac_tape_set_autocast(r->tape, NULL));
    return tac_tape_backward(r->tape, xent.loss, 1.0);
}

tac_status tac_replica_open(tac_context *ctx, tac_comm *comm,
                            const tac_train_config *config,
                            const tac_dataset_info *data,
                            const tac_model_source *model, tac_replica **out)
{
    tac_tape_config tc = TAC_TAPE_CONFIG_INIT;
    tac_replica *r = calloc(1, sizeof *r);
    tac_status s;

    if (!r) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a replica");
    r->ctx = ctx;
    r->comm = comm;
    r->config = config;
    s = tac__memory_create(r);
    tc.seed = config->seed;
    tc.recompute = !strcmp(config->recompute, "block");
    if (s >= 0) s = tac_precision_parse(ctx, config->precision, &r->low);
    if (s >= 0) s = make_device(r);
    if (s >= 0) s = make_model(r, data, model);
    if (s >= 0) {
        const tac_allocator own = tac_device_allocator(r->device);
        const tac_allocator a =
            tac__memory_count(r, TAC__MEMORY_ACTIVATIONS, &own);
        tc.activations = &a;
        s = tac_tape_create(r->params, &tc, &r->tape);
    }
    if (s >= 0) s = dry_step(r);
    if (s < 0) {
        tac_replica_close(r);
        return s;
    }
    *out = r;
    return TAC_OK;
}

void tac_replica_close(tac_replica *r)
{
    if (!r) return;
    tac__local_destroy(r);
    tac__doubt_destroy(r);
    tac_underflow_destroy(r->underflow);
    tac_master_destroy(r->master);
    tac_scaler_destroy(r->scaler);
    tac_optimizer_destroy(r->optimizer);
    tac_reducer_destroy(r->reducer);
    tac_reducer_destroy(r->idle_reducer);
    tac_codec_destroy(r->codec);
    tac__history_destroy(r);
    tac__record_destroy(r->record);
    free(r->places);
    tac_tape_destroy(r->tape);
    tac_model_destroy(r->model);
    tac_params_destroy(r->params);
    tac_comm_destroy(r->own_worker);
    tac__memory_destroy(r);
    tac_device_close(r->device);
    free(r);
}

void tac_replica_update_times(tac_replica *r)
{
    tac_reducer_stats stats;
    double comm_s = 0, exposed_s = 0, wait_s = 0;

    if (r->reducer) {
        tac_reducer_stats_get(r->reducer, &stats);
        comm_s = stats.total.comm_s;
        exposed_s = stats.total.exposed_s;
        wait_s = stats.total.wait_s;
    }
    if (r->local) {
        comm_s += r->local->sync_s;
        exposed_s += r->local->sync_s;
        wait_s += tac__local_wait_s(r);
    }
    r->times.comm_s = r->before.comm_s + comm_s;
    r->times.comm_exposed_s = r->before.comm_exposed_s + exposed_s;
    r->times.wait_s = r->before.wait_s + wait_s;
}

double tac_replica_grad_norm(tac_replica *r)
{
    const tac_device_ops *ops = tac_device_ops_of(r->device);
    void *impl = tac_device_impl(r->device);
    double norm = NAN;

    if (ops->copy(impl, &norm, tac_optimizer_norm(r->optimizer), sizeof norm,
                  TAC_COPY_DEVICE_TO_HOST, NULL) < 0 ||
        ops->queue_sync(impl, NULL) < 0)
        return NAN;
    return norm;
}
