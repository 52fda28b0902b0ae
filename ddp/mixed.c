/* What a replica has for precision: working weights, the loss scaler, a look at
 * underflow; and what the host learns of them. */
#include "replica_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "doubt.h"
#include "memory.h"
#include "settings.h"

static tac_status make_scaler(tac_replica *r)
{
    tac_scaler_config sc;

    TAC_TRY(tac__settings_scaler(r->ctx, r->config, &sc));
    return tac_scaler_create(r->device, &sc, &r->scaler);
}

static tac_status make_master(tac_replica *r)
{
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;

    const tac_allocator own = tac_device_allocator(r->device);
    const tac_allocator weights =
        tac__memory_count(r, TAC__MEMORY_WEIGHTS, &own);

    if (r->low == TAC_F32) return TAC_OK;
    mc.alloc = &weights;
    mc.low = r->low;
    mc.stochastic = !strcmp(r->config->rounding, "stochastic");
    mc.seed = r->config->seed;
    mc.step = &tac_optimizer_scalars(r->optimizer)->applied;
    TAC_TRY(tac_master_create(r->params, &mc, &r->master));
    return tac_master_follow(r->master, r->optimizer);
}

/* All ranks have the same gradients, so one of them looks. */
static tac_status make_underflow(tac_replica *r)
{
    if (r->config->underflow_every == 0 || tac_comm_rank(r->comm) != 0)
        return TAC_OK;
    return tac_underflow_create(r->params, &r->underflow);
}

tac_status tac__mixed_connect(tac_replica *r)
{
    TAC_TRY(make_scaler(r));
    TAC_TRY(make_master(r));
    TAC_TRY(make_underflow(r));
    TAC_TRY(tac__doubt_create(r));
    return tac_replica_refresh(r);
}

tac_status tac__mixed_region(tac_replica *r, tac_autocast *region)
{
    tac_autocast_config ac = TAC_AUTOCAST_CONFIG_INIT;

    ac.master = r->master;
    return tac_autocast_begin(r->tape, r->low, &ac, region);
}

tac_status tac__mixed_observe(tac_replica *r)
{
    double scale = 1;

    if (!r->underflow ||
        (r->attempts + 1) % (uint64_t)r->config->underflow_every != 0)
        return TAC_OK;
    TAC_TRY(tac_scaler_get_scale(r->scaler, &scale, NULL));
    return tac_underflow_observe(r->underflow, scale, NULL);
}

tac_status tac__mixed_poll(tac_replica *r)
{
    TAC_TRY(tac_scaler_poll(r->scaler, &r->scaling));
    tac__doubt_judge(r);
    return TAC_OK;
}

tac_status tac_replica_refresh(tac_replica *r)
{
    if (r->master) TAC_TRY(tac_master_refresh(r->master, NULL));
    return tac_scaler_poll(r->scaler, &r->scaling);
}

tac_status tac_replica_poll(tac_replica *r, tac_scaler_report *out)
{
    TAC_TRY(tac__mixed_poll(r));
    if (out) *out = r->scaling;
    return tac__doubt_verdict(r);
}

/* Adafactor's own rate at applied step t (from 1), as in tacit/optim.h. */
static double relative_step(const tac_train_config *c, double t)
{
    const double most = c->warmup_init ? 1e-6 * t : 1e-2;

    return fmin(most, 1 / sqrt(t));
}

uint64_t tac__replica_applied(const tac_replica *r)
{
    return r->attempts - r->dropped - r->scaling.skipped;
}

double tac__replica_rate(const tac_replica *r, uint64_t t)
{
    const double lr = tac_schedule_lr(&r->schedule, t - 1);

    return isnan(r->config->lr) ? lr * relative_step(r->config, (double)t) : lr;
}

double tac_replica_lr(const tac_replica *r)
{
    const uint64_t applied = tac__replica_applied(r);

    return applied > 0 ? tac__replica_rate(r, applied) : 0;
}
