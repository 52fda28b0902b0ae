/* Building and taking down a replica, in two halves: what is local, and what
 * all ranks do together. */
#include "replica_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "tacit/clock.h"

/* ---- local -------------------------------------------------------------- */

static tac_status make_device(tac_replica *r)
{
    const char *isa = r->config->isa;

    if (isa && !strcmp(isa, "auto")) isa = NULL;
    return tac_device_open(r->ctx, "cpu", isa, &r->device);
}

static tac_status make_model(tac_replica *r, const tac_dataset_info *data)
{
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;

    mc.h = data->h;
    mc.w = data->w;
    mc.c = data->c;
    mc.classes = data->classes;
    mc.dropout = (float)r->config->dropout;
    TAC_TRY(tac_params_create(r->device, TAC_F32, &r->params));
    return tac_model_create(r->params, r->config->model, &mc, &r->model);
}

tac_status tac__replica_inputs(tac_replica *r, const tac_batch *batch,
                               tac_tensor **x, tac_tensor **y)
{
    const tac_model_config *mc = tac_model_config_of(r->model);
    const size_t xs[4] = {batch->count, mc->h, mc->w, mc->c};

    TAC_TRY(tac_tape_input(r->tape, "images", TAC_F32, 4, xs, batch->x, 0, x));
    return tac_tape_input(r->tape, "labels", TAC_I32, 1, xs, batch->y, 0, y);
}

/* One step with shapes alone: sets the order of the parameters' gradients and
 * the size of the step arena. */
static tac_status dry_step(tac_replica *r)
{
    const tac_tape_step step = {.flags = TAC_TAPE_DRY};
    const tac_batch batch = {.count = (size_t)r->config->batch};
    tac_tensor *x, *y, *logits;
    tac_xent xent;

    TAC_TRY(tac_tape_begin(r->tape, &step));
    TAC_TRY(tac__replica_inputs(r, &batch, &x, &y));
    TAC_TRY(tac_model_forward(r->model, r->tape, x, &logits));
    TAC_TRY(tac_op_softmax_cross_entropy(r->tape, logits, y, &xent));
    return tac_tape_backward(r->tape, xent.loss, 1.0);
}

tac_status tac_replica_open(tac_context *ctx, tac_comm *comm,
                            const tac_train_config *config,
                            const tac_dataset_info *data, tac_replica **out)
{
    tac_tape_config tc = TAC_TAPE_CONFIG_INIT;
    tac_replica *r = calloc(1, sizeof *r);
    tac_status s;

    if (!r) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a replica");
    r->ctx = ctx;
    r->comm = comm;
    r->config = config;
    tc.seed = config->seed;
    s = make_device(r);
    if (s >= 0) s = make_model(r, data);
    if (s >= 0) s = tac_tape_create(r->params, &tc, &r->tape);
    if (s >= 0) s = dry_step(r);
    if (s >= 0) s = tac__history_create(r, (size_t)config->batch);
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
    tac_optimizer_destroy(r->optimizer);
    tac_reducer_destroy(r->reducer);
    tac_codec_destroy(r->codec);
    tac__history_destroy(r);
    tac__record_destroy(r->record);
    free(r->places);
    tac_tape_destroy(r->tape);
    tac_model_destroy(r->model);
    tac_params_destroy(r->params);
    tac_device_close(r->device);
    free(r);
}

/* ---- collective ---------------------------------------------------------- */

static tac_status symmetric_alloc(void *arg, size_t bytes, void **out)
{
    return tac_mem_alloc(arg, bytes, out);
}

static void symmetric_free(void *arg, void *p)
{
    tac_mem_free(arg, p);
}

static tac_status lay_out(tac_replica *r)
{
    const tac_allocator grads = {r->comm, symmetric_alloc, symmetric_free};
    const size_t n = tac_params_count(r->params);
    size_t *order = malloc((n + 1) * sizeof *order);
    tac_status s;

    if (!order)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for %zu parameters",
                        n);
    s = tac_tape_final_order(r->tape, order);
    if (s >= 0) s = tac_params_layout(r->params, order, NULL, &grads);
    free(order);
    return s;
}

/* The reducer's list: parameters in the order of the arena. */
static void describe(const tac_replica *r, tac_param_desc *desc)
{
    const size_t *order = tac_params_order(r->params);

    for (size_t k = 0; k < tac_params_count(r->params); k++) {
        const tac_param *p = tac_params_get(r->params, order[k]);

        desc[k] = (tac_param_desc){.name = p->name,
                                   .count = p->count,
                                   .dtype = TAC_F32,
                                   .grad = tac_params_grad(r->params, order[k]),
                                   .ndim = p->ndim,
                                   .shape = p->shape};
    }
}

/* What --compress leaves open and the length of a run decides: topk sends small
 * parameters whole and begins with more elements, as is the practice, or it
 * falls behind by points in a few epochs. */
static void complete_codec(const char *given, uint64_t steps, char *out,
                           size_t bytes)
{
    const int topk = strncmp(given, "topk:", 5) == 0;
    char warmup[40] = "";

    if (topk && !strstr(given, ",warmup="))
        snprintf(warmup, sizeof warmup, ",warmup=%" PRIu64, steps / 10);
    snprintf(out, bytes, "%s%s%s", given,
             topk && !strstr(given, ",min=") ? ",min=32768" : "", warmup);
}

static tac_status make_codec(tac_replica *r, uint64_t steps)
{
    char spec[256];

    complete_codec(r->config->compress, steps, spec, sizeof spec);
    TAC_TRY(tac_codec_create(r->ctx, spec, &r->codec));
    return tac_reducer_set_codec(r->reducer, r->codec);
}

static tac_status make_reducer(tac_replica *r)
{
    tac_reducer_config rc = TAC_REDUCER_CONFIG_INIT;
    const size_t n = tac_params_count(r->params);
    tac_param_desc *desc = calloc(n + 1, sizeof *desc);
    tac_status s;

    if (!desc)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for %zu parameters",
                        n);
    describe(r, desc);
    rc.first_bucket_bytes = (size_t)(r->config->first_bucket_mb * 1048576.0);
    rc.bucket_bytes = (size_t)(r->config->bucket_mb * 1048576.0);
    if (rc.first_bucket_bytes == 0) rc.first_bucket_bytes = 1;
    if (rc.bucket_bytes == 0) rc.bucket_bytes = 1;
    rc.arena = tac_params_grads(r->params);
    rc.arena_bytes = tac_params_padded(r->params) * sizeof(float);
    s = tac_reducer_create(r->comm, desc, n, &rc, &r->reducer);
    free(desc);
    return s;
}

static tac_status on_ready(void *arg, size_t param, tac_queue *queue)
{
    tac_replica *r = arg;
    const uint64_t begin = tac_clock_ns();

    tac__record_ready(r->record, r->places[param], begin);
    const tac_status s = tac_reducer_ready(r->reducer, r->places[param], queue);

    r->hook_s += (double)(tac_clock_ns() - begin) * 1e-9;
    return s;
}

static tac_status on_unused(void *arg, size_t param, tac_queue *queue)
{
    tac_replica *r = arg;

    (void)queue;
    tac__record_ready(r->record, r->places[param], tac_clock_ns());
    return tac_reducer_unused(r->reducer, r->places[param]);
}

static tac_status make_hooks(tac_replica *r)
{
    const tac_grad_hooks hooks = {r, on_ready, on_unused};
    const size_t *order = tac_params_order(r->params);
    const size_t n = tac_params_count(r->params);

    r->places = calloc(n + 1, sizeof *r->places);
    if (!r->places)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for %zu parameters",
                        n);
    for (size_t k = 0; k < n; k++) r->places[order[k]] = k;
    tac_tape_set_hooks(r->tape, &hooks);
    return TAC_OK;
}

static tac_status broadcast_params(tac_replica *r)
{
    tac_req *req = NULL;

    TAC_TRY(tac_broadcast(r->comm, tac_params_values(r->params),
                          tac_params_padded(r->params), TAC_F32, 0, NULL,
                          &req));
    return tac_wait(req, 0);
}

static tac_status make_optimizer(tac_replica *r, uint64_t total_steps)
{
    const tac_train_config *c = r->config;
    tac_optimizer_kind kind;
    tac_optimizer_config oc;

    TAC_TRY(tac_optimizer_parse(r->ctx, c->optimizer, &kind));
    oc = tac_optimizer_defaults(kind);
    oc.lr = c->lr;
    oc.weight_decay = c->weight_decay;
    oc.momentum = c->momentum;
    oc.nesterov = c->nesterov;
    oc.beta1 = c->beta1;
    oc.beta2 = c->beta2;
    oc.eps = c->eps;
    TAC_TRY(tac_schedule_parse(r->ctx, c->schedule, &r->schedule.kind));
    r->schedule.lr = c->lr;
    r->schedule.warmup = (uint64_t)c->warmup_steps;
    r->schedule.total = total_steps;
    return tac_optimizer_create(r->params, &oc, &r->optimizer);
}

tac_status tac_replica_connect(tac_replica *r, uint64_t total_steps)
{
    TAC_TRY(lay_out(r));
    if (strcmp(r->config->sync, "none")) {
        TAC_TRY(make_reducer(r));
        TAC_TRY(make_codec(r, total_steps));
        TAC_TRY(make_hooks(r));
    }
    if (r->config->record && tac_comm_rank(r->comm) == 0)
        TAC_TRY(tac__record_create(r, &r->record));
    TAC_TRY(tac_params_init(r->params, r->config->seed));
    TAC_TRY(broadcast_params(r));
    return make_optimizer(r, total_steps);
}

void tac_replica_update_times(tac_replica *r)
{
    tac_reducer_stats stats;

    if (!r->reducer) return;
    tac_reducer_stats_get(r->reducer, &stats);
    r->times.comm_s = stats.total.comm_s;
    r->times.comm_exposed_s = stats.total.exposed_s;
    r->times.wait_s = stats.total.wait_s;
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
