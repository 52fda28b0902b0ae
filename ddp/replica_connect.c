/* The collective half of building a replica: arenas in symmetric memory, the
 * reducer, equal parameters, the optimizer. */
#include "replica_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubt.h"
#include "local.h"
#include "memory.h"
#include "record.h"
#include "settings.h"
#include "tacit/clock.h"

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
    const tac_allocator own = tac_device_allocator(r->device);
    const tac_allocator shared =
        r->worker ? (tac_allocator){r->worker, symmetric_alloc, symmetric_free}
                  : own;
    const tac_allocator values =
        tac__memory_count(r, TAC__MEMORY_PARAMETERS, &own);
    const tac_allocator grads =
        tac__memory_count(r, TAC__MEMORY_GRADIENTS, &shared);
    const size_t n = tac_params_count(r->params);
    size_t *order = malloc((n + 1) * sizeof *order);
    tac_status s;

    if (!order)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for %zu parameters",
                        n);
    s = tac_tape_final_order(r->tape, order);
    if (s >= 0) s = tac_params_layout(r->params, order, &values, &grads);
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
void tac__replica_codec_spec(const tac_train_config *c, uint64_t steps,
                             char *out, size_t bytes)
{
    const char *given = c->compress;
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

    tac__replica_codec_spec(r->config, steps, spec, sizeof spec);
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
    s = tac_reducer_create(r->worker, desc, n, &rc, &r->reducer);
    free(desc);
    return s;
}

static tac_status on_ready(void *arg, size_t param, tac_queue *queue)
{
    tac_replica *r = arg;
    const uint64_t begin = tac_clock_ns();

    TAC_TRY(tac__doubt_ready(r, param, queue));
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

void tac__replica_average(tac_replica *r, int on)
{
    const tac_grad_hooks hooks = {r, on_ready, on_unused};
    tac_reducer *const idle = r->idle_reducer;

    if (on != !r->reducer) return;
    tac_tape_set_hooks(r->tape, on ? &hooks : NULL);
    r->idle_reducer = r->reducer;
    r->reducer = idle;
    r->worker = on ? r->comm : NULL;
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
    const tac_allocator own = tac_device_allocator(r->device);
    const tac_allocator state =
        tac__memory_count(r, TAC__MEMORY_OPTIMIZER, &own);
    tac__optimizer_settings settings;

    TAC_TRY(tac__settings_optimizer(r->ctx, r->config, &settings));
    TAC_TRY(
        tac__settings_schedule(r->ctx, r->config, total_steps, &r->schedule));
    settings.config.state = &state;
    TAC_TRY(tac_optimizer_create(r->params, &settings.config, &r->optimizer));
    return tac_optimizer_set_schedule(r->optimizer, &r->schedule);
}

tac_status tac_replica_connect(tac_replica *r, uint64_t total_steps)
{
    if (!strcmp(r->config->sync, "grad")) r->worker = r->comm;
    TAC_TRY(tac__local_split(r));
    TAC_TRY(
        tac__history_create(r, (size_t)(r->config->eval_batch > r->config->batch
                                            ? r->config->eval_batch
                                            : r->config->batch)));
    TAC_TRY(lay_out(r));
    if (r->worker) {
        TAC_TRY(make_reducer(r));
        if (r->worker == r->comm) TAC_TRY(make_codec(r, total_steps));
        TAC_TRY(make_hooks(r));
    }
    if (r->config->record && tac_comm_rank(r->comm) == 0)
        TAC_TRY(tac__record_create(r, &r->record));
    TAC_TRY(tac_params_init(r->params, r->config->seed));
    TAC_TRY(broadcast_params(r));
    TAC_TRY(make_optimizer(r, total_steps));
    TAC_TRY(tac__mixed_connect(r));
    return tac__local_create(r, total_steps);
}
